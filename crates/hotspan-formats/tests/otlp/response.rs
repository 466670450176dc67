//! Answers out, read back by the generated types.

use std::time::Duration;

use hotspan_formats::Limits;
use hotspan_formats::otlp::Outcome;
use hotspan_formats::otlp::response::{Format, Status, profiles_response, trace_response};
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceResponse;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use prost::Message as _;

use crate::encode::Message;
use crate::traces::{good_span, request, told};

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

/// Scenario: everything kept, and one span refused.
/// Guarantee: the empty message, and the count with the reason, in both encodings.
#[test]
fn full_and_partial_success() {
    let clean = Outcome { accepted: 5, ..Outcome::default() };
    assert_eq!(trace_response(&clean, Format::Protobuf), b"");
    assert_eq!(text(profiles_response(&clean, Format::Json)), "{}");

    let (_, outcome) = told(&request(&[good_span(), Message::new()]), &Limits::default()).unwrap();
    let reason = "resource_spans[0].scope_spans[0].spans[1].trace_id has 0 bytes, 16 expected";
    let answer = ExportTraceServiceResponse::decode(&trace_response(&outcome, Format::Protobuf)[..]).unwrap();
    let partial = answer.partial_success.unwrap();
    assert_eq!((partial.rejected_spans, partial.error_message.as_str()), (1, reason));
    let answer = ExportProfilesServiceResponse::decode(&profiles_response(&outcome, Format::Protobuf)[..]).unwrap();
    assert_eq!(answer.partial_success.unwrap().rejected_profiles, 1);
    assert_eq!(
        text(trace_response(&outcome, Format::Json)),
        format!("{{\"partialSuccess\":{{\"rejectedSpans\":\"1\",\"errorMessage\":\"{reason}\"}}}}")
    );
}

#[derive(Clone, PartialEq, prost::Message)]
struct RpcStatus {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<RpcAny>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct RpcAny {
    #[prost(string, tag = "1")]
    type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

/// Scenario: a failure worth another try.
/// Guarantee: a `google.rpc.Status` with `RetryInfo`, in both encodings.
#[test]
fn failures_say_when_to_try_again() {
    let status = Status::new(Status::UNAVAILABLE, "the \"queue\" is full").retry_after(Duration::from_millis(1500));
    let decoded = RpcStatus::decode(&status.encode(Format::Protobuf)[..]).unwrap();
    assert_eq!((decoded.code, decoded.message.as_str()), (14, "the \"queue\" is full"));
    assert_eq!(decoded.details[0].type_url, "type.googleapis.com/google.rpc.RetryInfo");
    // RetryInfo { retry_delay: Duration { seconds: 1, nanos: 500000000 } }
    let duration = Message::new().varint(1, 1).varint(2, 500_000_000);
    assert_eq!(decoded.details[0].value, Message::new().message(1, &duration).0);
    assert_eq!(
        text(status.encode(Format::Json)),
        "{\"code\":14,\"message\":\"the \\\"queue\\\" is full\",\"details\":[{\"@type\":\
         \"type.googleapis.com/google.rpc.RetryInfo\",\"retryDelay\":\"1.500000000s\"}]}"
    );
    assert_eq!(text(Status::new(3, "no").encode(Format::Json)), "{\"code\":3,\"message\":\"no\"}");
}
