//! Calls in the protocols that clients of one method use: gRPC, gRPC-Web, Connect and plain HTTP.
//!
//! All carry one message in, and one out or, with gRPC, a stream of them; they differ in framing and in how an error is told. A method is
//! written once, as bytes in and bytes out, and answers in the protocol it was asked in. A library for gRPC
//! alone would leave the others to be written again, and would unpack a message before there is room for it.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use bytes::{BufMut, Bytes, BytesMut};
use futures::{Stream, StreamExt, stream};
use hotspan_formats::{DecompressError, Encoding, decompress};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use http_body_util::StreamBody;
use hyper::body::Frame;

use crate::app::App;
use crate::receive::{BodyError, Intake, unknown_otlp_path};

/// How the message is framed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// `application/grpc`: a frame in, a frame and trailers out.
    Grpc,
    /// `application/grpc-web`: the same with the trailers as a last frame.
    GrpcWeb {
        /// Whether everything is base64 (`application/grpc-web-text`).
        text: bool,
    },
    /// The bare message as body.
    Unary,
}

/// Whether a message is protobuf or JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Codec {
    /// Protobuf.
    Protobuf,
    /// JSON.
    Json,
}

impl Codec {
    /// The content type of a bare message.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Protobuf => "application/x-protobuf",
            Self::Json => "application/json",
        }
    }
}

/// A call: its message, still compressed, and how to answer it.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) protocol: Protocol,
    pub(crate) codec: Codec,
    pub(crate) headers: HeaderMap,
    pub(crate) encoding: Encoding,
    pub(crate) message: Bytes,
    content_type: String,
}

/// What is told of a body that nothing says of how it is compressed.
const COMPRESSED_UNSAID: &str = "the body is compressed with gzip, and no header says so; send Content-Encoding: gzip";

/// What is wrong with a request before its message is looked at.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    /// A content type that no protocol here has.
    #[error("content type {0:?} is not supported; use application/x-protobuf, application/json or application/grpc")]
    ContentType(String),
    /// An encoding that is not supported.
    #[error("content encoding {0:?} is not supported; use gzip, zstd or none")]
    Encoding(String),
    /// The body was not read to its end.
    #[error(transparent)]
    Body(#[from] BodyError),
    /// The message or its frame is broken.
    #[error("{0}")]
    Broken(String),
}

/// gRPC status codes that are used here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub(crate) enum Code {
    InvalidArgument = 3,
    NotFound = 5,
    AlreadyExists = 6,
    ResourceExhausted = 8,
    Unimplemented = 12,
    Internal = 13,
    Unavailable = 14,
    Unauthenticated = 16,
}

impl Code {
    /// The name that Connect gives it.
    pub(crate) fn connect_name(self) -> &'static str {
        match self {
            Self::InvalidArgument => "invalid_argument",
            Self::NotFound => "not_found",
            Self::AlreadyExists => "already_exists",
            Self::ResourceExhausted => "resource_exhausted",
            Self::Unimplemented => "unimplemented",
            Self::Internal => "internal",
            Self::Unavailable => "unavailable",
            Self::Unauthenticated => "unauthenticated",
        }
    }

    /// The code that says the same as an HTTP status.
    pub(crate) fn of_status(status: StatusCode) -> Self {
        match status {
            StatusCode::UNAUTHORIZED => Self::Unauthenticated,
            StatusCode::NOT_FOUND => Self::NotFound,
            StatusCode::CONFLICT => Self::AlreadyExists,
            StatusCode::NOT_IMPLEMENTED => Self::Unimplemented,
            StatusCode::SERVICE_UNAVAILABLE => Self::Unavailable,
            StatusCode::TOO_MANY_REQUESTS | StatusCode::PAYLOAD_TOO_LARGE | StatusCode::UNPROCESSABLE_ENTITY => {
                Self::ResourceExhausted
            }
            status if status.is_client_error() => Self::InvalidArgument,
            _ => Self::Internal,
        }
    }

    /// The HTTP status of a bare answer.
    pub(crate) fn http_status(self) -> StatusCode {
        match self {
            Self::InvalidArgument => StatusCode::BAD_REQUEST,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::AlreadyExists => StatusCode::CONFLICT,
            Self::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
            Self::Unimplemented => StatusCode::NOT_IMPLEMENTED,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::Unauthenticated => StatusCode::UNAUTHORIZED,
        }
    }
}

impl Call {
    /// Reads a call, as far as the intake lets it in.
    pub(crate) async fn read(request: Request, intake: &mut Intake<'_>) -> Result<Self, (CallError, Protocol, Codec)> {
        let (parts, body) = request.into_parts();
        let header = |name: header::HeaderName| {
            parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
        };
        let content_type = header(header::CONTENT_TYPE);
        let Some((protocol, codec)) = classify(&content_type) else {
            return Err((CallError::ContentType(content_type), Protocol::Unary, Codec::Json));
        };
        let fail = |error: CallError| (error, protocol, codec);
        let body = intake.read(body, &parts.headers).await.map_err(|error| fail(error.into()))?;
        let encoding_name = match protocol {
            Protocol::Unary => header(header::CONTENT_ENCODING),
            _ => {
                parts.headers.get("grpc-encoding").and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
            }
        };
        let Some(encoding) = Encoding::from_header(&encoding_name) else {
            return Err(fail(CallError::Encoding(encoding_name)));
        };
        let (encoding, message) = match protocol {
            Protocol::Unary => (encoding, body),
            Protocol::Grpc => unframe(&body, encoding).map_err(fail)?,
            Protocol::GrpcWeb { text: false } => unframe(&body, encoding).map_err(fail)?,
            Protocol::GrpcWeb { text: true } => {
                let decoded = base64::engine::general_purpose::STANDARD.decode(&body);
                let decoded = decoded.map_err(|error| fail(CallError::Broken(format!("not base64: {error}"))))?;
                unframe(&Bytes::from(decoded), encoding).map_err(fail)?
            }
        };
        Ok(Self { protocol, codec, headers: parts.headers, encoding, message, content_type })
    }

    /// The message, unpacked up to `max_bytes`.
    pub(crate) fn unpack(&self, max_bytes: usize) -> Result<Bytes, CallError> {
        // Neither JSON nor protobuf starts as gzip does.
        if self.encoding == Encoding::Identity && Encoding::from_magic(&self.message) == Encoding::Gzip {
            return Err(CallError::Broken(COMPRESSED_UNSAID.to_owned()));
        }
        decompress(self.encoding, self.message.clone(), max_bytes).map_err(|error| match error {
            DecompressError::TooLarge { .. } => BodyError::TooLarge { limit: max_bytes }.into(),
            other => CallError::Broken(other.to_string()),
        })
    }

    /// The answer to a call that succeeded.
    pub(crate) fn answer(&self, message: Vec<u8>) -> Response {
        match self.protocol {
            Protocol::Unary => {
                ([(header::CONTENT_TYPE, HeaderValue::from_static(self.unary_content_type()))], message).into_response()
            }
            framed => framed_response(framed, Some(message), None),
        }
    }

    /// The answer to a call whose messages come one after another. The stream is only polled while the client reads,
    /// and is dropped when it leaves.
    pub(crate) fn stream<S>(&self, messages: S) -> Response
    where
        S: Stream<Item = Result<Vec<u8>, (Code, String)>> + Send + 'static,
    {
        if self.protocol == Protocol::Unary {
            let message = "this method streams its answer; call it with gRPC or gRPC-Web";
            return rpc_error(self.protocol, Code::Unimplemented, StatusCode::NOT_IMPLEMENTED, message);
        }
        let protocol = self.protocol;
        let frames = stream::unfold(Some(messages.boxed()), move |state| async move {
            let mut messages = state?;
            let (end, rest) = match messages.next().await {
                Some(Ok(message)) => return Some((wire_frame(protocol, 0, &message), Some(messages))),
                Some(Err((code, text))) => (trailers(Some((code, &text, None))), None),
                None => (trailers(None), None),
            };
            let frame = match protocol {
                Protocol::Grpc => Frame::trailers(end),
                _ => wire_frame(protocol, TRAILER_FLAG, trailer_lines(&end).as_bytes()),
            };
            Some((frame, rest))
        });
        let body = Body::new(StreamBody::new(frames.map(Ok::<_, std::convert::Infallible>)));
        ([(header::CONTENT_TYPE, HeaderValue::from_static(framed_content_type(protocol)))], body).into_response()
    }

    /// Connect clients ask with `application/proto` and want it back.
    fn unary_content_type(&self) -> &'static str {
        if self.content_type.starts_with("application/proto") && self.codec == Codec::Protobuf {
            "application/proto"
        } else {
            self.codec.content_type()
        }
    }
}

/// The answer of a framed protocol to a call that failed. `details` is a serialised `google.rpc.Status`.
pub(crate) fn framed_error(protocol: Protocol, code: Code, message: &str, details: Option<&[u8]>) -> Response {
    framed_response(protocol, None, Some((code, message, details)))
}

/// The answer to a call that failed, as Connect, gRPC and gRPC-Web tell it.
pub(crate) fn rpc_error(protocol: Protocol, code: Code, status: StatusCode, message: &str) -> Response {
    if protocol != Protocol::Unary {
        return framed_error(protocol, code, message, None);
    }
    let body = serde_json::json!({ "code": code.connect_name(), "message": message }).to_string();
    (status, [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response()
}

/// The protocol and codec of a request; plain HTTP with JSON where they can't be told.
pub(crate) fn spoken(headers: &HeaderMap) -> (Protocol, Codec) {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    content_type.and_then(classify).unwrap_or((Protocol::Unary, Codec::Json))
}

/// The answer to a call of a method that is not here. What only senders of OTLP would send is answered in their words.
pub(crate) async fn unknown_method(State(app): State<Arc<App>>, request: Request) -> Response {
    let (protocol, codec) = spoken(request.headers());
    if (protocol, codec) == (Protocol::Unary, Codec::Protobuf) && !is_method(request.uri().path()) {
        return unknown_otlp_path(&app, request).await;
    }
    app.metrics.refused("unknown", "unknown_path");
    let message = format!("there is no method {} here", request.uri().path());
    rpc_error(protocol, Code::Unimplemented, StatusCode::NOT_FOUND, &message)
}

/// Whether a path is of the form `/package.Service/Method`.
fn is_method(path: &str) -> bool {
    let parts = path.strip_prefix('/').and_then(|path| path.split_once('/'));
    parts.is_some_and(|(service, method)| service.contains('.') && !method.is_empty() && !method.contains('/'))
}

/// Marks the frame of gRPC-Web that holds trailers.
const TRAILER_FLAG: u8 = 0x80;

/// How a framed call ended.
fn trailers(error: Option<(Code, &str, Option<&[u8]>)>) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    match error {
        None => {
            trailers.insert("grpc-status", HeaderValue::from_static("0"));
        }
        Some((code, text, details)) => {
            trailers.insert("grpc-status", HeaderValue::from(code as u16));
            if let Ok(value) = HeaderValue::from_str(&percent_encode(text)) {
                trailers.insert("grpc-message", value);
            }
            if let Some(details) = details {
                let encoded = base64::engine::general_purpose::STANDARD_NO_PAD.encode(details);
                if let Ok(value) = HeaderValue::from_str(&encoded) {
                    trailers.insert("grpc-status-details-bin", value);
                }
            }
        }
    }
    trailers
}

fn trailer_lines(trailers: &HeaderMap) -> String {
    let line = |(name, value): (&header::HeaderName, &HeaderValue)| {
        format!("{name}: {}\r\n", value.to_str().unwrap_or_default())
    };
    trailers.iter().map(line).collect()
}

fn framed_content_type(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::GrpcWeb { text: true } => "application/grpc-web-text+proto",
        Protocol::GrpcWeb { text: false } => "application/grpc-web+proto",
        Protocol::Grpc | Protocol::Unary => "application/grpc",
    }
}

/// A frame as a protocol sends it: texts may be joined from pieces of base64.
fn wire_frame(protocol: Protocol, flags: u8, message: &[u8]) -> Frame<Bytes> {
    let framed = frame(flags, message);
    Frame::data(match protocol {
        Protocol::GrpcWeb { text: true } => Bytes::from(base64::engine::general_purpose::STANDARD.encode(&framed)),
        _ => framed,
    })
}

fn framed_response(
    protocol: Protocol,
    message: Option<Vec<u8>>,
    error: Option<(Code, &str, Option<&[u8]>)>,
) -> Response {
    let trailers = trailers(error);
    let content_type = HeaderValue::from_static(framed_content_type(protocol));
    let data = message.map(|message| frame(0, &message));
    match protocol {
        Protocol::Grpc => {
            let frames = data.into_iter().map(Frame::data).chain(std::iter::once(Frame::trailers(trailers)));
            let frames = stream::iter(frames.map(Ok::<_, std::convert::Infallible>));
            ([(header::CONTENT_TYPE, content_type)], Body::new(StreamBody::new(frames))).into_response()
        }
        Protocol::GrpcWeb { text } => {
            let mut body = BytesMut::from(data.unwrap_or_default().as_ref());
            body.put(frame(TRAILER_FLAG, trailer_lines(&trailers).as_bytes()));
            let body =
                if text { Bytes::from(base64::engine::general_purpose::STANDARD.encode(&body)) } else { body.freeze() };
            ([(header::CONTENT_TYPE, content_type)], body).into_response()
        }
        Protocol::Unary => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

fn classify(content_type: &str) -> Option<(Protocol, Codec)> {
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let known = match essence.as_str() {
        "application/grpc" | "application/grpc+proto" => (Protocol::Grpc, Codec::Protobuf),
        "application/grpc-web" | "application/grpc-web+proto" => (Protocol::GrpcWeb { text: false }, Codec::Protobuf),
        "application/grpc-web-text" | "application/grpc-web-text+proto" => {
            (Protocol::GrpcWeb { text: true }, Codec::Protobuf)
        }
        "application/x-protobuf" | "application/protobuf" | "application/proto" => (Protocol::Unary, Codec::Protobuf),
        "application/json" => (Protocol::Unary, Codec::Json),
        _ => return None,
    };
    Some(known)
}

/// A frame: flags, length, message.
fn frame(flags: u8, message: &[u8]) -> Bytes {
    let mut framed = BytesMut::with_capacity(5 + message.len());
    framed.put_u8(flags);
    // Answers are far smaller than 4 GiB.
    framed.put_u32(message.len() as u32);
    framed.put_slice(message);
    framed.freeze()
}

/// Marks the frame of a message that is compressed.
const COMPRESSED_FLAG: u8 = 1;

/// The one message of a body that holds one frame.
fn unframe(body: &Bytes, encoding: Encoding) -> Result<(Encoding, Bytes), CallError> {
    if body.len() < 5 {
        return Err(CallError::Broken(format!("a gRPC frame has at least 5 bytes, the body has {}", body.len())));
    }
    let length = u32::from_be_bytes([body[1], body[2], body[3], body[4]]) as usize;
    let message = body.slice(5..);
    if message.len() < length {
        return Err(CallError::Broken(format!("the gRPC frame announces {length} bytes, {} came", message.len())));
    }
    let surplus = message.len() - length;
    if surplus > 0 {
        let problem = format!("this method takes one message; {surplus} bytes came after the gRPC frame of the first");
        return Err(CallError::Broken(problem));
    }
    if body[0] & COMPRESSED_FLAG == 0 {
        return Ok((Encoding::Identity, message));
    }
    if encoding == Encoding::Identity {
        let problem = "the gRPC frame is marked as compressed, but the header grpc-encoding names no compression";
        return Err(CallError::Broken(problem.to_owned()));
    }
    Ok((encoding, message))
}

/// gRPC messages in headers are percent-encoded UTF-8.
fn percent_encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b' '..=b'~' if byte != b'%' => encoded.push(char::from(byte)),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use http_body_util::BodyExt as _;

    use super::*;

    /// Scenario: bodies of one frame, of two, of a frame and some bytes, and frames marked as compressed with and without a
    /// header that says how.
    /// Guarantee: one frame is read; what it can't mean is refused, never dropped or taken for something else.
    #[test]
    fn a_body_is_one_frame() {
        let refusal = |body: Bytes, encoding| unframe(&body, encoding).unwrap_err().to_string();
        let message = b"message".as_slice();
        let plain = (Encoding::Identity, Bytes::from(message));
        for encoding in [Encoding::Identity, Encoding::Gzip] {
            assert_eq!(unframe(&frame(0, message), encoding).unwrap(), plain);
        }
        assert_eq!(unframe(&frame(1, message), Encoding::Gzip).unwrap(), (Encoding::Gzip, Bytes::from(message)));
        assert!(refusal(frame(1, message), Encoding::Identity).contains("grpc-encoding names no compression"));
        for second in [frame(0, message), frame(0, b""), Bytes::from_static(b"x")] {
            let refusal = refusal([frame(0, message), second.clone()].concat().into(), Encoding::Identity);
            assert!(refusal.contains(&format!("one message; {} bytes came after", second.len())), "{refusal}");
        }
    }

    /// Counts how much work was done, and says when it is dropped.
    struct Work {
        steps: Arc<AtomicUsize>,
        dropped: Arc<AtomicUsize>,
    }

    impl Drop for Work {
        fn drop(&mut self) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Scenario: a client reads two messages of an endless stream, and leaves.
    /// Guarantee: no more work is done than it read, and the work ends with it.
    #[tokio::test]
    async fn work_ends_when_the_client_leaves() {
        let call = Call {
            protocol: Protocol::Grpc,
            codec: Codec::Protobuf,
            headers: HeaderMap::new(),
            encoding: Encoding::Identity,
            message: Bytes::new(),
            content_type: String::new(),
        };
        let (steps, dropped) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let work = Work { steps: Arc::clone(&steps), dropped: Arc::clone(&dropped) };
        let messages = stream::unfold(work, |work| async move {
            work.steps.fetch_add(1, Ordering::Relaxed);
            Some((Ok(vec![1, 2, 3]), work))
        });
        let mut body = call.stream(messages).into_body();
        for _ in 0..2 {
            let frame = body.frame().await.unwrap().unwrap();
            assert_eq!(frame.into_data().unwrap().as_ref(), [0, 0, 0, 0, 3, 1, 2, 3]);
        }
        assert_eq!((steps.load(Ordering::Relaxed), dropped.load(Ordering::Relaxed)), (2, 0));
        drop(body);
        assert_eq!((steps.load(Ordering::Relaxed), dropped.load(Ordering::Relaxed)), (2, 1));
    }
}
