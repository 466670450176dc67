//! Flamebearer.

#![no_main]

use hotspan_formats::{DecodeOptions, Limits, flamebearer};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits { max_bytes: 16 << 20, max_decoded_bytes: 64 << 20, ..Limits::default() };
    let options = DecodeOptions { limits, ..DecodeOptions::default() };
    let _ = flamebearer::decode(bytes, &options);
});
