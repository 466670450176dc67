//! TraceQL: what a person types. Canonical text means the same, and an error can always be drawn below its query.

#![no_main]

use hotspan_traceql::{Program, parse_syntax};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(query) = parse_syntax(text) {
        let written = query.to_string();
        assert_eq!(parse_syntax(&written).as_ref().ok(), Some(&query), "{written}");
    }
    if let Err(error) = Program::new(text) {
        assert!(!error.render(text).is_empty());
    }
});
