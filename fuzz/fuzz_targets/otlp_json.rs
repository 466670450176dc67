//! Any text gives an answer.
#![no_main]

use hotspan_formats::Limits;
use hotspan_formats::otlp::json::{ProfilesJson, decode_traces_json};
use hotspan_model::{Resource, Scope, Span, TraceSink};
use libfuzzer_sys::fuzz_target;

struct Nothing;

impl TraceSink for Nothing {
    fn resource(&mut self, _: &Resource<'_>) {}
    fn scope(&mut self, _: &Scope<'_>) {}
    fn span(&mut self, _: &Span<'_>) {}
}

fuzz_target!(|json: &[u8]| {
    let limits = Limits::default();
    let _ = decode_traces_json(json, &limits, &mut Nothing);
    if let Ok(profiles) = ProfilesJson::parse(json, &limits) {
        // What was translated is sound protobuf, whatever it says.
        match profiles.decode(&limits, 42) {
            Ok(_) => {}
            Err(error) => assert!(error.is_too_large(), "{error}"),
        }
    }
});
