//! JFR: at once and as a stream; neither may read what the other refuses.

#![no_main]

use hotspan_formats::{DecodeOptions, Limits, jfr};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits { max_bytes: 16 << 20, max_decoded_bytes: 64 << 20, ..Limits::default() };
    let options = DecodeOptions { limits, ..DecodeOptions::default() };
    let whole = jfr::decode(bytes, None, &options);
    let mut reader = jfr::JfrReader::new(bytes, None, options).expect("memory can be read");
    let streamed = loop {
        match reader.next_chunk() {
            Ok(Some(_)) => {}
            Ok(None) => break true,
            Err(_) => break false,
        }
    };
    assert!(whole.is_err() || streamed);
});
