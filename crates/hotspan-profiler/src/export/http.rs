//! The least of HTTP/1.1 that an upload needs: one request, one answer, limits on everything.

use super::connection::{self, Connection};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::time::Duration;

/// The longest answer that is read; uploads answer in a few bytes, policies in a few hundred.
const MAX_ANSWER: u64 = 1 << 20;

/// Where a server is: `http://host:port/path`, or the same with https.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Url {
    pub(crate) secure: bool,
    pub(crate) authority: String,
    pub(crate) path: String,
}

/// Why an address is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UrlError {
    /// TLS is a feature, so that those who don't need it stay small.
    #[error("`{0}` uses https: build hotspan-profiler with its feature `tls`, or send to a collector on this host")]
    #[cfg_attr(feature = "tls", allow(dead_code))]
    NoTls(String),
    /// So is gRPC.
    #[error("`{0}` is to be reached by gRPC: build hotspan-profiler with its feature `grpc`, or use http/protobuf")]
    #[cfg_attr(feature = "grpc", allow(dead_code))]
    NoGrpc(String),
    /// Not an address at all.
    #[error("`{0}` is not an address of the form http://host:port/path")]
    Malformed(String),
}

impl Url {
    /// Reads an address; a missing port is 80, or 443 with https.
    pub(crate) fn parse(text: &str) -> Result<Url, UrlError> {
        let malformed = || UrlError::Malformed(text.to_owned());
        let secure = text.strip_prefix("https://");
        if cfg!(not(feature = "tls")) && secure.is_some() {
            return Err(UrlError::NoTls(text.to_owned()));
        }
        let rest = secure.or_else(|| text.strip_prefix("http://")).ok_or_else(malformed)?;
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let plain = !host.is_empty() && text.chars().all(|c| c.is_ascii_graphic());
        if !plain || (host.contains(':') && !has_port && !host.ends_with(']')) {
            return Err(malformed());
        }
        let usual_port = if secure.is_some() { 443 } else { 80 };
        let authority = if has_port { host.to_owned() } else { format!("{host}:{usual_port}") };
        Ok(Url { secure: secure.is_some(), authority, path: path.to_owned() })
    }

    /// The same server, another path.
    pub(crate) fn with_path(&self, path: &str) -> Url {
        Url { path: path.to_owned(), ..self.clone() }
    }

    /// The host alone, without brackets: what a certificate names.
    #[cfg(feature = "tls")]
    pub(crate) fn host(&self) -> &str {
        let host = self.authority.rsplit_once(':').map_or(self.authority.as_str(), |(host, _)| host);
        host.trim_start_matches('[').trim_end_matches(']')
    }
}

/// A request on its way out.
#[derive(Debug, Clone)]
pub(crate) struct Request<'a> {
    pub(crate) method: &'a str,
    pub(crate) url: &'a Url,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: &'a [u8],
}

/// What the server said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// A header by its name in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// Sends a request on a connection of its own and reads the answer.
pub(crate) fn send(request: &Request<'_>, timeout: Duration) -> io::Result<Answer> {
    exchange(connection::open(request.url, timeout)?, request)
}

fn exchange(mut stream: Box<dyn Connection>, request: &Request<'_>) -> io::Result<Answer> {
    let path = if request.url.path.is_empty() { "/" } else { &request.url.path };
    let mut head = format!(
        "{} {path} HTTP/1.1\r\nhost: {}\r\ncontent-length: {}\r\nconnection: close\r\nuser-agent: {}/{}\r\n",
        request.method,
        request.url.authority,
        request.body.len(),
        env!("CARGO_PKG_NAME"),
        env!("CARGO_PKG_VERSION"),
    );
    for (name, value) in &request.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes())?;
    stream.write_all(request.body)?;
    read_answer(BufReader::new(stream.take(MAX_ANSWER)))
}

fn read_answer(mut reader: impl BufRead) -> io::Result<Answer> {
    let malformed = || io::Error::new(io::ErrorKind::InvalidData, "the answer is not HTTP");
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let status = line
        .strip_prefix("HTTP/1.")
        .and_then(|rest| rest.split_ascii_whitespace().nth(1)?.parse().ok())
        .ok_or_else(malformed)?;
    let mut answer = Answer { status, ..Answer::default() };
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let header = line.trim_end();
        if header.is_empty() {
            break;
        }
        let (name, value) = header.split_once(':').ok_or_else(malformed)?;
        answer.headers.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
    }
    if answer.header("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
        read_chunks(&mut reader, &mut answer.body)?;
    } else if let Some(length) = answer.header("content-length") {
        let length: u64 = length.parse().map_err(|_| malformed())?;
        reader.take(length).read_to_end(&mut answer.body)?;
    } else if status != 204 && status != 304 {
        reader.read_to_end(&mut answer.body)?;
    }
    Ok(answer)
}

fn read_chunks(reader: &mut impl BufRead, body: &mut Vec<u8>) -> io::Result<()> {
    let malformed = || io::Error::new(io::ErrorKind::InvalidData, "a chunk is malformed");
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let digits = line.trim_end().split(';').next().unwrap_or_default();
        let length = u64::from_str_radix(digits, 16).map_err(|_| malformed())?;
        if length == 0 {
            return Ok(());
        }
        if reader.take(length).read_to_end(body)? as u64 != length {
            return Err(malformed());
        }
        line.clear();
        reader.read_line(&mut line)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: addresses with and without port and path, with TLS, and nonsense.
    /// Guarantee: good ones are split rightly, the others are refused with the reason.
    #[test]
    fn addresses_are_understood_or_refused() {
        let url = |text: &str| Url::parse(text).map(|url| (url.authority, url.path));
        assert_eq!(url("http://localhost:4318"), Ok(("localhost:4318".into(), String::new())));
        assert_eq!(url("http://host/a/b?c=d"), Ok(("host:80".into(), "/a/b?c=d".into())));
        assert_eq!(url("http://[::1]:4318/x"), Ok(("[::1]:4318".into(), "/x".into())));
        if cfg!(feature = "tls") {
            assert_eq!(url("https://host/a"), Ok(("host:443".into(), "/a".into())));
        } else {
            assert!(matches!(url("https://host"), Err(UrlError::NoTls(_))));
        }
        for bad in ["", "host:80", "http://", "http://host:port/", "http://a b/", "http://a\r\nb/"] {
            assert!(matches!(url(bad), Err(UrlError::Malformed(_))), "{bad}");
        }
    }

    /// Scenario: answers with a length, in chunks, without either, and ones that are not HTTP.
    /// Guarantee: bodies are read whole, nonsense is an error and never a panic.
    #[test]
    fn answers_are_read_in_every_framing() {
        let read = |text: &str| read_answer(text.as_bytes());
        let plain = read("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nETag: \"x\"\r\n\r\nabcdef").unwrap();
        assert_eq!((plain.status, plain.body.as_slice(), plain.header("etag")), (200, &b"abc"[..], Some("\"x\"")));
        let chunked = read("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x\r\nde\r\n0\r\n\r\n");
        assert_eq!(chunked.unwrap().body, b"abcde");
        assert_eq!(read("HTTP/1.0 200 OK\r\n\r\nrest").unwrap().body, b"rest");
        for bad in ["", "hello", "HTTP/1.1 x\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
