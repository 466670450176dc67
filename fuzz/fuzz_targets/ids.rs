//! Ids of spans, traces and tenants in every spelling: what was read reads as the same in hex, in base64 and as a number,
//! and a label that holds an id never stays a label.

#![no_main]

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use hotspan_formats::span_identity::{Identity, IdentityLabel, classify, parse_span_id, parse_trace_id};
use hotspan_model::{ProfileId, SpanId, TenantId, TraceId};
use libfuzzer_sys::fuzz_target;

fn check_span(id: SpanId) {
    assert!(!id.is_zero());
    let number = u64::from_be_bytes(id.0);
    let spellings = [id.to_string(), id.to_string().to_uppercase(), format!(" 0x{number:x} ")];
    for text in spellings.iter().chain([&STANDARD.encode(id.0), &URL_SAFE.encode(id.0)]) {
        assert_eq!(parse_span_id(text), Some(id), "{text}");
    }
    // A plus sign that was not escaped in an address.
    assert_eq!(parse_span_id(&STANDARD.encode(id.0).replace('+', " ")), Some(id));
    let mut by_number = Identity::default();
    assert!(by_number.take_number("span_id", number as i64));
    let mut by_bytes = Identity::default();
    assert!(by_bytes.take_bytes("span.id", &id.0));
    let mut by_decimal = Identity::default();
    assert!(by_decimal.take_text("dd.span_id", &number.to_string()));
    assert_eq!([by_number.span, by_bytes.span, by_decimal.span], [Some(id); 3]);
}

fn check_trace(id: TraceId) {
    assert!(!id.is_zero());
    for text in [id.to_string(), id.to_string().to_uppercase(), STANDARD.encode(id.0), URL_SAFE.encode(id.0)] {
        assert_eq!(parse_trace_id(&text), Some(id), "{text}");
    }
    assert_eq!(parse_trace_id(&STANDARD.encode(id.0).replace('+', " ")), Some(id));
}

fuzz_target!(|bytes: &[u8]| {
    SpanId::from_slice(bytes).map(check_span);
    TraceId::from_slice(bytes).map(check_trace);
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    parse_span_id(text).map(check_span);
    parse_trace_id(text).map(check_trace);
    match text.parse::<SpanId>() {
        Ok(id) => assert_eq!(parse_span_id(text), Some(id)),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    if let Ok(id) = text.parse::<ProfileId>() {
        assert_eq!(id.to_string().parse(), Ok(id));
    }
    if let Ok(tenant) = text.parse::<TenantId>() {
        assert!(tenant.as_str() == text && !text.contains(['/', '\\', '\0']) && text != "..");
    }
    let (name, value) = text.split_once('=').unwrap_or((text, ""));
    let mut identity = Identity::default();
    let taken = identity.take_text(name, value);
    match classify(name) {
        Some(IdentityLabel::SpanName) => assert!(!taken),
        // What can't be read is left to its sample, and leaves nothing here.
        Some(_) => assert!(taken || identity == Identity::default()),
        None => assert!(!taken || identity.local_root.is_some()),
    }
});
