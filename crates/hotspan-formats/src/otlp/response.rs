//! Answers: full and partial success, and `google.rpc.Status` for failures, as protobuf and as JSON.
//!
//! OTLP demands the answer in the request's encoding, and a `Status` body for every error, with `RetryInfo` where
//! the sender should wait before it tries again.

use std::fmt::Write as _;
use std::time::Duration;

use hotspan_model::attribute::write_json_string;

use super::outcome::Outcome;

/// The encoding of a request and its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `application/x-protobuf`
    Protobuf,
    /// `application/json`
    Json,
}

impl Format {
    /// The value for `Content-Type`.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Protobuf => "application/x-protobuf",
            Self::Json => "application/json",
        }
    }
}

/// `ExportTraceServiceResponse`: empty if every span was kept as sent.
pub fn trace_response(outcome: &Outcome, format: Format) -> Vec<u8> {
    partial_success(outcome, "rejectedSpans", format)
}

/// `ExportProfilesServiceResponse`: empty if every profile was kept as sent.
///
/// Samples that were refused from a profile that was kept do not count as a rejected profile; the message tells.
pub fn profiles_response(outcome: &Outcome, format: Format) -> Vec<u8> {
    partial_success(outcome, "rejectedProfiles", format)
}

fn partial_success(outcome: &Outcome, count_name: &str, format: Format) -> Vec<u8> {
    if outcome.is_clean() {
        return match format {
            Format::Protobuf => Vec::new(),
            Format::Json => b"{}".to_vec(),
        };
    }
    let rejected = i64::try_from(outcome.rejected).unwrap_or(i64::MAX);
    let message = outcome.message();
    match format {
        Format::Protobuf => {
            let mut inner = Vec::new();
            put_number(&mut inner, 1, rejected as u64);
            put_bytes(&mut inner, 2, message.as_bytes());
            let mut out = Vec::new();
            put_bytes(&mut out, 1, &inner);
            out
        }
        Format::Json => {
            let mut out = String::from("{\"partialSuccess\":{");
            if rejected > 0 {
                // 64-bit numbers are strings in OTLP/JSON. Writing into a String can't fail.
                let _ = write!(out, "\"{count_name}\":\"{rejected}\",");
            }
            out.push_str("\"errorMessage\":");
            write_json_string(&message, &mut out);
            out.push_str("}}");
            out.into_bytes()
        }
    }
}

/// A failure in the words of gRPC, which OTLP over HTTP uses as well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// gRPC code: 3 invalid argument, 8 resource exhausted, 14 unavailable, …
    pub code: i32,
    /// What went wrong, for a person.
    pub message: String,
    /// How long to wait before trying again; none where trying again is pointless.
    pub retry_after: Option<Duration>,
}

const RETRY_INFO: &str = "type.googleapis.com/google.rpc.RetryInfo";

impl Status {
    /// gRPC's INVALID_ARGUMENT: the request is wrong and will stay wrong.
    pub const INVALID_ARGUMENT: i32 = 3;
    /// gRPC's RESOURCE_EXHAUSTED: too large, or too much at the moment.
    pub const RESOURCE_EXHAUSTED: i32 = 8;
    /// gRPC's UNAVAILABLE: try again.
    pub const UNAVAILABLE: i32 = 14;

    /// A failure that is final.
    pub fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), retry_after: None }
    }

    /// The same failure, worth another try after a while.
    pub fn retry_after(self, wait: Duration) -> Self {
        Self { retry_after: Some(wait), ..self }
    }

    /// The body of the answer; as protobuf it also serves for `grpc-status-details-bin`.
    pub fn encode(&self, format: Format) -> Vec<u8> {
        match format {
            Format::Protobuf => self.to_protobuf(),
            Format::Json => self.to_json().into_bytes(),
        }
    }

    fn to_protobuf(&self) -> Vec<u8> {
        let mut out = Vec::new();
        // A negative int32 takes ten bytes on the wire, like the int64 of the same value.
        put_number(&mut out, 1, i64::from(self.code) as u64);
        put_bytes(&mut out, 2, self.message.as_bytes());
        if let Some(wait) = self.retry_after {
            let mut duration = Vec::new();
            put_number(&mut duration, 1, wait.as_secs());
            put_number(&mut duration, 2, u64::from(wait.subsec_nanos()));
            let mut retry_info = Vec::new();
            put_bytes(&mut retry_info, 1, &duration);
            let mut detail = Vec::new();
            put_bytes(&mut detail, 1, RETRY_INFO.as_bytes());
            put_bytes(&mut detail, 2, &retry_info);
            put_bytes(&mut out, 3, &detail);
        }
        out
    }

    fn to_json(&self) -> String {
        let mut out = format!("{{\"code\":{},\"message\":", self.code);
        write_json_string(&self.message, &mut out);
        if let Some(wait) = self.retry_after {
            let _ = write!(
                out,
                ",\"details\":[{{\"@type\":\"{RETRY_INFO}\",\"retryDelay\":\"{}.{:09}s\"}}]",
                wait.as_secs(),
                wait.subsec_nanos()
            );
        }
        out.push('}');
        out
    }
}

fn put_number(out: &mut Vec<u8>, field: u8, number: u64) {
    if number != 0 {
        out.push(field << 3);
        put_varint(out, number);
    }
}

fn put_bytes(out: &mut Vec<u8>, field: u8, bytes: &[u8]) {
    out.push(field << 3 | 2);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}
