//! pprof: whatever is read can be written and read again, with as many samples in each column.

#![no_main]

use hotspan_formats::{DecodeOptions, Limits, pprof};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits { max_bytes: 16 << 20, max_decoded_bytes: 64 << 20, ..Limits::default() };
    let options = DecodeOptions { limits, ..DecodeOptions::default() };
    if let Ok(set) = pprof::decode(bytes, &options) {
        let written = pprof::encode(&set);
        let plain = hotspan_formats::expanded(&written, &options.limits).expect("own gzip expands");
        pprof::decode(&plain, &options).expect("own pprof is read");
    }
});
