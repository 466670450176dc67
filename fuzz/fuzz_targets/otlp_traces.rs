//! Whatever the generated types read, our reader reads to the same spans; whatever else comes, it answers.
#![no_main]

use hotspan_formats::Limits;
use hotspan_formats::otlp::decode_traces;
use libfuzzer_sys::fuzz_target;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message as _;

#[path = "../../crates/hotspan-formats/tests/otlp/trace_oracle.rs"]
mod trace_oracle;

fuzz_target!(|bytes: &[u8]| {
    // The generated types nest a hundred messages deep, and have no limits of their own.
    let limits = Limits { max_nesting: 200, max_item_bytes: usize::MAX / 2, ..Limits::default() };
    let mut told = trace_oracle::Told::default();
    let read = decode_traces(bytes, &limits, &mut told);
    if let Ok(request) = ExportTraceServiceRequest::decode(bytes) {
        let outcome = read.expect("the generated types accept it");
        (told.accepted, told.rejected) = (outcome.accepted, outcome.rejected);
        assert_eq!(told, trace_oracle::translate(&request));
    }
});
