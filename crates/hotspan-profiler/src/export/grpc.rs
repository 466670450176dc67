//! OTLP over gRPC: one message out, one status back, on a connection of its own.

use super::destination::{Compression, DeliveryError, compress};
use super::http::Url;
use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Request};
use std::future::Future;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

const METHOD: &str = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export";
/// The longest answer that is read; it says little more than that all is well.
const MAX_ANSWER: usize = 1 << 20;

/// Sends one encoded request.
pub(super) fn export(
    url: &Url,
    headers: &[(String, String)],
    message: &[u8],
    compression: Compression,
    timeout: Duration,
) -> Result<(), DeliveryError> {
    let (message, encoding) = compress(message, compression)?;
    let request = request(url, headers, encoding)?;
    let framed = framed(&message, encoding.is_some());
    // On this thread, for this call: exports are seconds apart, and the service's own runtime is left alone.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let status = runtime.block_on(async {
        let deadline = tokio::time::timeout(timeout, connect_and_call(url, request, framed));
        deadline.await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
    })?;
    judge(&status)
}

/// What the server said in the end.
#[derive(Debug, PartialEq, Eq)]
struct Status {
    code: u32,
    message: String,
    retry_after: Option<Duration>,
}

/// The codes that OTLP names as worth another try.
fn judge(status: &Status) -> Result<(), DeliveryError> {
    let reason = || format!("gRPC status {}: {}", status.code, status.message.chars().take(200).collect::<String>());
    match status.code {
        0 => Ok(()),
        1 | 4 | 8 | 10 | 11 | 14 | 15 => {
            Err(DeliveryError::Temporary { reason: reason(), retry_after: status.retry_after })
        }
        _ => Err(DeliveryError::Refused(reason())),
    }
}

fn request(
    url: &Url,
    headers: &[(String, String)],
    encoding: Option<&'static str>,
) -> Result<Request<()>, DeliveryError> {
    let scheme = if url.secure { "https" } else { "http" };
    let mut request = Request::post(format!("{scheme}://{}{METHOD}", url.authority))
        .header("te", "trailers")
        .header("content-type", "application/grpc")
        .header("user-agent", concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION")));
    if let Some(encoding) = encoding {
        request = request.header("grpc-encoding", encoding);
    }
    for (name, value) in headers {
        let name = HeaderName::from_bytes(name.to_ascii_lowercase().as_bytes());
        let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(value)) else {
            return Err(DeliveryError::Refused("a header's name or value is not allowed in HTTP".to_owned()));
        };
        request = request.header(name, value);
    }
    request.body(()).map_err(|error| DeliveryError::Refused(error.to_string()))
}

/// A message with gRPC's head: compressed or not, and its length.
fn framed(message: &[u8], is_compressed: bool) -> Bytes {
    let mut framed = BytesMut::with_capacity(5 + message.len());
    framed.put_u8(u8::from(is_compressed));
    framed.put_u32(u32::try_from(message.len()).unwrap_or(u32::MAX));
    framed.put_slice(message);
    framed.freeze()
}

async fn connect_and_call(url: &Url, request: Request<()>, framed: Bytes) -> io::Result<Status> {
    let stream = TcpStream::connect(&url.authority).await?;
    stream.set_nodelay(true)?;
    if !url.secure {
        return call(stream, request, framed).await;
    }
    let connector = tokio_rustls::TlsConnector::from(super::tls::client_config(&[b"h2"])?);
    let stream = connector.connect(super::tls::server_name(url)?, stream).await?;
    call(stream, request, framed).await
}

async fn call(stream: impl AsyncRead + AsyncWrite + Unpin, request: Request<()>, framed: Bytes) -> io::Result<Status> {
    let (client, connection) = h2::client::handshake(stream).await.map_err(io::Error::other)?;
    let exchange = exchange(client, request, framed);
    // The connection moves the bytes; it ends with the exchange.
    drive(connection, exchange).await
}

async fn drive<T>(
    connection: impl Future<Output = Result<(), h2::Error>>,
    exchange: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
    let (mut connection, mut exchange) = (std::pin::pin!(connection), std::pin::pin!(exchange));
    let mut is_closed = false;
    std::future::poll_fn(|task| {
        if !is_closed && connection.as_mut().poll(task).is_ready() {
            // What became of it, the exchange learns from its stream.
            is_closed = true;
        }
        exchange.as_mut().poll(task)
    })
    .await
}

async fn exchange(client: h2::client::SendRequest<Bytes>, request: Request<()>, framed: Bytes) -> io::Result<Status> {
    let mut client = client.ready().await.map_err(io::Error::other)?;
    let (response, mut body) = client.send_request(request, false).map_err(io::Error::other)?;
    body.send_data(framed, true).map_err(io::Error::other)?;
    let response = response.await.map_err(io::Error::other)?;
    if response.status() != http::StatusCode::OK {
        return Err(io::Error::other(format!("the server does not speak gRPC: status {}", response.status())));
    }
    if let Some(status) = status_in(response.headers()) {
        return Ok(status);
    }
    let mut answer = response.into_body();
    let mut length = 0;
    while let Some(chunk) = answer.data().await {
        let chunk = chunk.map_err(io::Error::other)?;
        length += chunk.len();
        if length > MAX_ANSWER {
            return Err(io::Error::other("the answer is too long"));
        }
        // The window is given back, or the rest would never come.
        answer.flow_control().release_capacity(chunk.len()).map_err(io::Error::other)?;
    }
    let trailers = answer.trailers().await.map_err(io::Error::other)?.unwrap_or_default();
    status_in(&trailers).ok_or_else(|| io::Error::other("the answer has no gRPC status"))
}

fn status_in(headers: &HeaderMap) -> Option<Status> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let code = text("grpc-status")?.parse().unwrap_or(2);
    let message = percent_decoded(text("grpc-message").unwrap_or_default());
    let retry_after = text("retry-after").and_then(|seconds| seconds.parse().ok()).map(Duration::from_secs);
    Some(Status { code, message, retry_after })
}

fn percent_decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digits = (bytes[at] == b'%').then(|| text.get(at + 1..at + 3)).flatten();
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                decoded.push(byte);
                at += 3;
            }
            None => {
                decoded.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: statuses in every form, right and broken.
    /// Guarantee: those that OTLP calls temporary are tried again, others are not, and messages are readable.
    #[test]
    fn statuses_decide_about_retries() {
        let status = |code: &'static str, message: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert("grpc-status", HeaderValue::from_static(code));
            headers.insert("grpc-message", HeaderValue::from_static(message));
            status_in(&headers).unwrap()
        };
        assert!(judge(&status("0", "")).is_ok());
        assert!(matches!(judge(&status("14", "busy")), Err(DeliveryError::Temporary { .. })));
        let refused = judge(&status("3", "no%20such%20field%3"));
        assert!(matches!(refused, Err(DeliveryError::Refused(reason)) if reason.contains("no such field%3")));
        assert_eq!(status("nonsense", "").code, 2);
        assert_eq!(status_in(&HeaderMap::new()), None);
    }
}
