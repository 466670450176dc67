//! HTTP/1.1, as much of it as a benchmark needs: one connection that is kept open, and nothing between it and the clock.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};

/// Longest time that one answer may take.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Largest answer that is read.
const MAX_BODY: usize = 1 << 30;

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

/// A connection to a server, opened when it is first needed and again when the server closed it.
#[derive(Debug)]
pub(crate) struct Client {
    address: SocketAddr,
    stream: Option<BufReader<TcpStream>>,
}

impl Client {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self { address, stream: None }
    }

    pub(crate) fn get(&mut self, path: &str) -> anyhow::Result<Answer> {
        self.call("GET", path, &[("Accept", "application/json")], &[])
    }

    pub(crate) fn post(&mut self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> anyhow::Result<Answer> {
        self.call("POST", path, headers, body)
    }

    fn call(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> anyhow::Result<Answer> {
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n", self.address);
        for (name, value) in headers {
            // Writing to a String can't fail.
            let _ = write!(head, "{name}: {value}\r\n");
        }
        let _ = write!(head, "Content-Length: {}\r\n\r\n", body.len());
        let answer = self.exchange(head.as_bytes(), body);
        if answer.is_err() {
            self.stream = None;
        }
        answer.with_context(|| format!("{method} {path} at {}", self.address))
    }

    fn exchange(&mut self, head: &[u8], body: &[u8]) -> anyhow::Result<Answer> {
        let stream = match self.stream.take() {
            Some(stream) => self.stream.insert(stream),
            None => self.stream.insert(connect(self.address)?),
        };
        stream.get_mut().write_all(head)?;
        stream.get_mut().write_all(body)?;
        let (answer, close) = read_answer(stream)?;
        if close {
            self.stream = None;
        }
        Ok(answer)
    }
}

fn connect(address: SocketAddr) -> anyhow::Result<BufReader<TcpStream>> {
    let stream = TcpStream::connect_timeout(&address, Duration::from_secs(5))?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    Ok(BufReader::with_capacity(1 << 16, stream))
}

/// The answer, and whether the connection ends with it.
fn read_answer(stream: &mut impl BufRead) -> anyhow::Result<(Answer, bool)> {
    let line = read_line(stream)?;
    let status = line.split(' ').nth(1).and_then(|number| number.parse().ok());
    let status: u16 = status.with_context(|| format!("{line:?} is not the start of an HTTP answer"))?;
    let (mut length, mut chunked, mut close) = (None, false, false);
    loop {
        let line = read_line(stream)?;
        if line.is_empty() {
            break;
        }
        let Some((name, value)) = line.split_once(':') else { bail!("{line:?} is not a header") };
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = Some(value.parse::<usize>().context("content-length")?),
            "transfer-encoding" => chunked = value.eq_ignore_ascii_case("chunked"),
            "connection" => close = value.eq_ignore_ascii_case("close"),
            _ => {}
        }
    }
    let mut body = Vec::new();
    if chunked {
        read_chunks(stream, &mut body)?;
    } else if let Some(length) = length {
        ensure!(length <= MAX_BODY, "an answer of {length} bytes is too large");
        body.resize(length, 0);
        stream.read_exact(&mut body)?;
    } else if status != 204 && status != 304 {
        stream.take(MAX_BODY as u64).read_to_end(&mut body)?;
        close = true;
    }
    Ok((Answer { status, body }, close))
}

fn read_chunks(stream: &mut impl BufRead, body: &mut Vec<u8>) -> anyhow::Result<()> {
    loop {
        let line = read_line(stream)?;
        let digits = line.split(';').next().unwrap_or_default().trim();
        let length = usize::from_str_radix(digits, 16).with_context(|| format!("{line:?} is no chunk length"))?;
        ensure!(body.len() + length <= MAX_BODY, "the answer is too large");
        if length == 0 {
            while !read_line(stream)?.is_empty() {}
            return Ok(());
        }
        let start = body.len();
        body.resize(start + length, 0);
        stream.read_exact(&mut body[start..])?;
        read_line(stream)?;
    }
}

fn read_line(stream: &mut impl BufRead) -> anyhow::Result<String> {
    let mut line = Vec::new();
    stream.take(64 << 10).read_until(b'\n', &mut line)?;
    ensure!(line.ends_with(b"\n"), "the server closed the connection");
    let text = String::from_utf8_lossy(&line);
    Ok(text.trim_end().to_owned())
}

/// A text as part of a query, with everything escaped that has a meaning there.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() * 2);
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => escaped.push(byte.into()),
            _ => {
                let _ = write!(escaped, "%{byte:02X}");
            }
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: answers with a length, in chunks, until the end, and broken. Guarantee: bodies whole, or an error.
    #[test]
    fn answers() {
        let read =
            |text: &str| read_answer(&mut text.as_bytes()).map(|(answer, close)| (answer.status, answer.body, close));
        let with_length = read("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello").unwrap();
        assert_eq!(with_length, (200, b"hello".to_vec(), false));
        let chunks =
            read("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x\r\nlo\r\n0\r\n\r\n").unwrap();
        assert_eq!(chunks, (200, b"hello".to_vec(), false));
        let closing = read("HTTP/1.1 503 Busy\r\nConnection: close\r\n\r\nlater").unwrap();
        assert_eq!(closing, (503, b"later".to_vec(), true));
        for broken in ["", "nonsense\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort"] {
            assert!(read(broken).is_err(), "{broken:?}");
        }
        assert_eq!(escape("{ a = \"b\" }"), "%7B%20a%20%3D%20%22b%22%20%7D");
    }
}
