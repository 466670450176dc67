//! The least of HTTP/1.1 that the shop needs: posting telemetry, and its control endpoint's requests and answers.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use hotspan_profiler::TimedStream;

/// The longest body that is read.
const MAX_BODY: u64 = 1 << 20;

/// A request or an answer: its first line and its body.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) first_line: String,
    pub(crate) body: Vec<u8>,
}

impl Message {
    /// The status of an answer.
    pub(crate) fn status(&self) -> Option<u16> {
        self.first_line.split(' ').nth(1)?.parse().ok()
    }
}

/// Sends one request on a connection of its own and reads the answer.
pub(crate) fn send(
    address: &str,
    method: &str,
    path: &str,
    content_type: &str,
    body: &[u8],
    timeout: Duration,
) -> io::Result<Message> {
    let mut stream = TimedStream::new(TcpStream::connect(address)?, timeout);
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: {content_type}\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)?;
    read_message(&mut stream)
}

/// Reads one message with a body of known length (or to the end of the connection).
pub(crate) fn read_message(stream: &mut TimedStream) -> io::Result<Message> {
    let mut reader = BufReader::new(stream.take(MAX_BODY));
    let mut first_line = String::new();
    reader.read_line(&mut first_line)?;
    let mut length = None;
    loop {
        let mut line = String::new();
        let read = reader.read_line(&mut line)?;
        let header = line.trim_end();
        if read == 0 || header.is_empty() {
            break;
        }
        if let Some((name, value)) = header.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse::<u64>().ok();
        }
    }
    let mut body = Vec::new();
    let is_request = !first_line.starts_with("HTTP/");
    match length {
        Some(length) => reader.take(length.min(MAX_BODY)).read_to_end(&mut body)?,
        None if is_request => 0,
        None => reader.read_to_end(&mut body)?,
    };
    Ok(Message { first_line: first_line.trim_end().to_owned(), body })
}

/// Answers a request with JSON and ends the connection.
pub(crate) fn answer(stream: &mut TimedStream, status: &str, json: &str) -> io::Result<()> {
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        json.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(json.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::time::Instant;

    /// Scenario: telemetry is posted to a server that takes the connection and then says nothing.
    /// Guarantee: the wait ends with an error in about the time that was given.
    #[test]
    fn a_silent_server_is_given_up() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, began) = (listener.local_addr().unwrap().to_string(), Instant::now());
        let answer = send(&address, "POST", "/", "application/json", b"{}", Duration::from_millis(50));
        assert!(answer.is_err() && began.elapsed() < Duration::from_secs(10));
    }
}
