//! V8's CPU and heap profiles.

#![no_main]

use hotspan_formats::{DecodeOptions, Limits, v8};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits { max_bytes: 16 << 20, max_decoded_bytes: 64 << 20, ..Limits::default() };
    let options = DecodeOptions { limits, ..DecodeOptions::default() };
    let _ = v8::decode_cpu(bytes, &options);
    let _ = v8::decode_heap(bytes, &options);
});
