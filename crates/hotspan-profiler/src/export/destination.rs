//! Where profiles go.

use super::http::{self, Answer, Request, Url, UrlError};
use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

/// The path that OTLP profiles have had since they exist.
const OTLP_PATH: &str = "/v1development/profiles";
/// The request that every Pyroscope server takes.
const PYROSCOPE_PATH: &str = "/push.v1.PusherService/Push";

/// How uploads are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compression {
    /// Not at all.
    None,
    /// gzip, understood everywhere.
    #[default]
    Gzip,
    /// zstd: smaller and cheaper, where the server takes it.
    #[cfg(feature = "zstd")]
    Zstd,
}

impl std::str::FromStr for Compression {
    type Err = String;

    fn from_str(text: &str) -> Result<Compression, String> {
        match text {
            "none" => Ok(Compression::None),
            "gzip" => Ok(Compression::Gzip),
            #[cfg(feature = "zstd")]
            "zstd" => Ok(Compression::Zstd),
            #[cfg(not(feature = "zstd"))]
            "zstd" => Err("zstd needs hotspan-profiler's feature `zstd`".to_owned()),
            _ => Err(format!("`{text}` is not one of none, gzip, zstd")),
        }
    }
}

/// A function that takes uploads.
pub type UploadReceiver = Arc<dyn Fn(&[u8]) + Send + Sync>;

/// A receiver of profiles.
#[derive(Clone)]
pub enum Destination {
    /// OTLP over HTTP. The address may name the server (`http://localhost:4318`) or the full path.
    Otlp {
        /// The server's address.
        endpoint: String,
        /// Extra headers, such as a tenant or a token.
        headers: Vec<(String, String)>,
        /// How bodies are compressed.
        compression: Compression,
    },
    /// OTLP over gRPC, such as `http://localhost:4317`. Needs the feature `grpc`.
    OtlpGrpc {
        /// The server's address.
        endpoint: String,
        /// Extra headers, such as a tenant or a token.
        headers: Vec<(String, String)>,
        /// How messages are compressed.
        compression: Compression,
    },
    /// A Pyroscope server, as pprof through its push API.
    Pyroscope {
        /// The server's address.
        endpoint: String,
        /// Extra headers, such as a tenant or a token.
        headers: Vec<(String, String)>,
    },
    /// A function of the program: receives every upload as an OTLP `ExportProfilesServiceRequest`.
    Function(UploadReceiver),
}

impl fmt::Debug for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Headers may hold secrets.
        match self {
            Destination::Otlp { endpoint, .. } => {
                f.debug_struct("Otlp").field("endpoint", endpoint).finish_non_exhaustive()
            }
            Destination::OtlpGrpc { endpoint, .. } => {
                f.debug_struct("OtlpGrpc").field("endpoint", endpoint).finish_non_exhaustive()
            }
            Destination::Pyroscope { endpoint, .. } => {
                f.debug_struct("Pyroscope").field("endpoint", endpoint).finish_non_exhaustive()
            }
            Destination::Function(_) => f.write_str("Function"),
        }
    }
}

impl Destination {
    /// OTLP to an address, with gzip.
    pub fn otlp(endpoint: impl Into<String>) -> Destination {
        Destination::Otlp { endpoint: endpoint.into(), headers: Vec::new(), compression: Compression::default() }
    }

    /// OTLP over gRPC to an address, with gzip. Needs the feature `grpc`.
    pub fn otlp_grpc(endpoint: impl Into<String>) -> Destination {
        Destination::OtlpGrpc { endpoint: endpoint.into(), headers: Vec::new(), compression: Compression::default() }
    }

    /// What is sent along with each upload; none for a function.
    pub(crate) fn headers_mut(&mut self) -> Option<&mut Vec<(String, String)>> {
        match self {
            Destination::Otlp { headers, .. }
            | Destination::OtlpGrpc { headers, .. }
            | Destination::Pyroscope { headers, .. } => Some(headers),
            Destination::Function(_) => None,
        }
    }

    /// How uploads are compressed, where that can be chosen.
    pub(crate) fn compression_mut(&mut self) -> Option<&mut Compression> {
        match self {
            Destination::Otlp { compression, .. } | Destination::OtlpGrpc { compression, .. } => Some(compression),
            Destination::Pyroscope { .. } | Destination::Function(_) => None,
        }
    }

    /// Checks the address before anything is started.
    pub(crate) fn check(&self) -> Result<(), UrlError> {
        match self {
            #[cfg(not(feature = "grpc"))]
            Destination::OtlpGrpc { endpoint, .. } => Err(UrlError::NoGrpc(endpoint.clone())),
            #[cfg(feature = "grpc")]
            Destination::OtlpGrpc { endpoint, .. } => Url::parse(endpoint).map(drop),
            Destination::Otlp { endpoint, .. } | Destination::Pyroscope { endpoint, .. } => {
                Url::parse(endpoint).map(drop)
            }
            Destination::Function(_) => Ok(()),
        }
    }

    /// Delivers one encoded upload.
    pub(crate) fn deliver(&self, body: &[u8], timeout: Duration) -> Result<(), DeliveryError> {
        let (endpoint, headers, path, content_type, compression) = match self {
            Destination::Function(receive) => {
                receive(body);
                return Ok(());
            }
            #[cfg(feature = "grpc")]
            Destination::OtlpGrpc { endpoint, headers, compression } => {
                let url = Url::parse(endpoint).map_err(|error| DeliveryError::Refused(error.to_string()))?;
                return super::grpc::export(&url, headers, body, *compression, timeout);
            }
            #[cfg(not(feature = "grpc"))]
            Destination::OtlpGrpc { endpoint, .. } => {
                return Err(DeliveryError::Refused(UrlError::NoGrpc(endpoint.clone()).to_string()));
            }
            Destination::Otlp { endpoint, headers, compression } => {
                (endpoint, headers, OTLP_PATH, "application/x-protobuf", *compression)
            }
            Destination::Pyroscope { endpoint, headers } => {
                (endpoint, headers, PYROSCOPE_PATH, "application/proto", Compression::None)
            }
        };
        let mut url = Url::parse(endpoint).map_err(|error| DeliveryError::Refused(error.to_string()))?;
        if matches!(url.path.as_str(), "" | "/") {
            url.path = path.to_owned();
        }
        let (body, encoding) = compress(body, compression)?;
        let mut headers = headers.clone();
        headers.push(("content-type".into(), content_type.into()));
        headers.extend(encoding.map(|encoding| ("content-encoding".into(), encoding.into())));
        judge(&http::send(&Request { method: "POST", url: &url, headers, body: &body }, timeout)?)
    }
}

/// Why an upload did not arrive.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DeliveryError {
    /// Worth another try, after a pause if the server named one.
    #[error("the server cannot take it now: {reason}")]
    Temporary { reason: String, retry_after: Option<Duration> },
    /// It would be refused again.
    #[error("the server refused it: {0}")]
    Refused(String),
}

impl From<io::Error> for DeliveryError {
    fn from(error: io::Error) -> DeliveryError {
        // A certificate that is not trusted, or an answer that is none: it would be the same again.
        if error.kind() == io::ErrorKind::InvalidData || is_about_trust(&error) {
            return DeliveryError::Refused(error.to_string());
        }
        DeliveryError::Temporary { reason: error.to_string(), retry_after: None }
    }
}

/// Whether TLS failed for what the other side is. The kind of the error depends on when that was noticed.
#[cfg(feature = "tls")]
fn is_about_trust(error: &io::Error) -> bool {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
    matches!(cause, Some(rustls::Error::InvalidCertificate(_)))
}

#[cfg(not(feature = "tls"))]
fn is_about_trust(_error: &io::Error) -> bool {
    false
}

fn judge(answer: &Answer) -> Result<(), DeliveryError> {
    let reason = || {
        format!(
            "status {}: {}",
            answer.status,
            String::from_utf8_lossy(&answer.body).chars().take(200).collect::<String>()
        )
    };
    match answer.status {
        200..=299 => Ok(()),
        // The statuses that OTLP names as worth a retry.
        429 | 502 | 503 | 504 => {
            let seconds = answer.header("retry-after").and_then(|value| value.parse().ok());
            Err(DeliveryError::Temporary { reason: reason(), retry_after: seconds.map(Duration::from_secs) })
        }
        _ => Err(DeliveryError::Refused(reason())),
    }
}

pub(super) fn compress(body: &[u8], compression: Compression) -> io::Result<(Vec<u8>, Option<&'static str>)> {
    match compression {
        Compression::None => Ok((body.to_vec(), None)),
        Compression::Gzip => Ok((gzip(body)?, Some("gzip"))),
        #[cfg(feature = "zstd")]
        Compression::Zstd => Ok((zstd::bulk::compress(body, 3)?, Some("zstd"))),
    }
}

pub(super) fn gzip(body: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::with_capacity(body.len() / 3), flate2::Compression::fast());
    encoder.write_all(body)?;
    encoder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Read};
    use std::net::TcpListener;

    /// Answers one request with `answer` and returns what was asked.
    fn serve_once(answer: &'static str) -> (String, std::thread::JoinHandle<(String, Vec<u8>)>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream);
            let mut head = String::new();
            while reader.read_line(&mut head).unwrap() > 2 {}
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap().parse().unwrap();
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            reader.into_inner().write_all(answer.as_bytes()).unwrap();
            (head, body)
        });
        (address, server)
    }

    /// Scenario: an upload to a server that accepts it.
    /// Guarantee: it is an OTLP request on the right path, compressed as announced.
    #[test]
    fn uploads_are_otlp_over_http() {
        let (address, server) = serve_once("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
        let destination = Destination::Otlp {
            endpoint: address,
            headers: vec![("x-scope-orgid".into(), "tenant".into())],
            compression: Compression::Gzip,
        };
        destination.deliver(b"profile", Duration::from_secs(5)).unwrap();
        let (head, body) = server.join().unwrap();
        assert!(head.starts_with("POST /v1development/profiles HTTP/1.1\r\n"), "{head}");
        assert!(head.contains("content-encoding: gzip\r\n") && head.contains("x-scope-orgid: tenant\r\n"));
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(body.as_slice()).read_to_end(&mut plain).unwrap();
        assert_eq!(plain, b"profile");
    }

    /// Scenario: servers that are overloaded, that refuse, and that are not there.
    /// Guarantee: the first and last are worth a retry (with the pause they asked for), the second is not.
    #[test]
    fn answers_decide_about_retries() {
        let (address, _server) = serve_once("HTTP/1.1 429 Slow\r\nretry-after: 7\r\ncontent-length: 0\r\n\r\n");
        let error = Destination::otlp(address).deliver(b"x", Duration::from_secs(5)).unwrap_err();
        assert!(matches!(error, DeliveryError::Temporary { retry_after: Some(pause), .. } if pause.as_secs() == 7));
        let (address, _server) = serve_once("HTTP/1.1 400 Bad\r\ncontent-length: 3\r\n\r\nbad");
        let error = Destination::otlp(address).deliver(b"x", Duration::from_secs(5)).unwrap_err();
        assert!(matches!(error, DeliveryError::Refused(reason) if reason.contains("400")));
        let error = Destination::otlp("http://127.0.0.1:1").deliver(b"x", Duration::from_secs(5)).unwrap_err();
        assert!(matches!(error, DeliveryError::Temporary { .. }));
    }
}
