//! What the Pyroscope agent sends beside a recording: any bytes give an answer, read whole and chunk by chunk alike.

#![no_main]

use hotspan_formats::{DecodeOptions, Limits, jfr};
use libfuzzer_sys::fuzz_target;

/// A recording whose events refer to contexts.
const RECORDING: &[u8] = include_bytes!("../../crates/hotspan-formats/tests/fixtures/pyroscope-agent.jfr");

fuzz_target!(|labels: &[u8]| {
    let limits = Limits { max_bytes: 16 << 20, max_decoded_bytes: 64 << 20, ..Limits::default() };
    let options = DecodeOptions { limits, ..DecodeOptions::default() };
    let whole = jfr::decode(RECORDING, Some(labels), &options);
    let streamed = jfr::JfrReader::new(RECORDING, Some(labels), options).and_then(|mut reader| reader.next_chunk());
    match (whole, streamed) {
        (Ok(whole), Ok(Some(chunk))) => assert_eq!(whole.sample_count(), chunk.sample_count()),
        (whole, streamed) => assert!(whole.is_err() && streamed.is_err()),
    }
});
