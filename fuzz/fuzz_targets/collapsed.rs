//! Collapsed stacks and bare ones.

#![no_main]

use hotspan_formats::{DecodeOptions, Limits, collapsed};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits { max_bytes: 16 << 20, max_decoded_bytes: 64 << 20, ..Limits::default() };
    let options = DecodeOptions { limits, ..DecodeOptions::default() };
    let _ = collapsed::decode(bytes, &options);
    let _ = collapsed::decode_lines(bytes, &options);
});
