//! The text of perf script.

#![no_main]

use hotspan_formats::{DecodeOptions, Limits, perf_script};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits { max_bytes: 16 << 20, max_decoded_bytes: 64 << 20, ..Limits::default() };
    let options = DecodeOptions { limits, ..DecodeOptions::default() };
    let _ = perf_script::decode(bytes, &options);
});
