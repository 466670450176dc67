//! `POST`, `DELETE` and `GET /debug/hotspan`: start, stop and status over HTTP, for those who hold the token.

use crate::config::ControlEndpoint;
use crate::timed_stream::TimedStream;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

const PATH: &str = "/debug/hotspan";
const TIMEOUT: Duration = Duration::from_secs(2);
const MAX_HEAD: u64 = 8192;

/// What the endpoint can do.
pub(crate) trait Controllable: Send + Sync {
    fn start(&self);
    fn stop(&self);
    /// The status as JSON.
    fn status_json(&self) -> String;
}

/// The listening thread; it ends when dropped.
#[derive(Debug)]
pub(crate) struct ControlServer {
    listener: Arc<TcpListener>,
    thread: Option<JoinHandle<()>>,
}

impl ControlServer {
    pub(crate) fn start(
        endpoint: &ControlEndpoint,
        target: Arc<dyn Controllable>,
        prepare_thread: impl FnOnce() + Send + 'static,
    ) -> io::Result<ControlServer> {
        let listener = Arc::new(TcpListener::bind(endpoint.listen)?);
        let (accepting, token) = (Arc::clone(&listener), endpoint.token.clone());
        let thread = std::thread::Builder::new().name("hotspan-control".into()).spawn(move || {
            prepare_thread();
            // One caller at a time: this is for people and scripts, and each has two seconds.
            while let Ok((stream, _)) = accepting.accept() {
                // A caller that goes away is its own problem.
                let _ = serve(stream, &token, &*target);
            }
        })?;
        Ok(ControlServer { listener, thread: Some(thread) })
    }

    /// Where it listens: the port is chosen by the system if the configuration says 0.
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

impl Drop for ControlServer {
    fn drop(&mut self) {
        // SAFETY: the descriptor is open; shutting a listener down makes its accept return an error.
        unsafe { libc::shutdown(self.listener.as_raw_fd(), libc::SHUT_RDWR) };
        if let Some(thread) = self.thread.take() {
            // A panic of the control thread must not become one of the service.
            let _ = thread.join();
        }
    }
}

fn serve(stream: TcpStream, token: &str, target: &dyn Controllable) -> io::Result<()> {
    let mut reader = BufReader::new(TimedStream::new(stream, TIMEOUT).take(MAX_HEAD));
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let mut authorized = false;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let header = line.trim_end();
        if header.is_empty() {
            break;
        }
        if let Some((name, value)) = header.split_once(':')
            && name.eq_ignore_ascii_case("authorization")
        {
            authorized = value.trim().strip_prefix("Bearer ").is_some_and(|given| equal_in_constant_time(given, token));
        }
    }
    let mut words = first.split_ascii_whitespace();
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (status, body) = match (authorized, path == PATH, method) {
        (false, _, _) => ("401 Unauthorized", r#"{"error":"send authorization: Bearer and the control token"}"#.into()),
        (true, false, _) => ("404 Not Found", format!(r#"{{"error":"only {PATH} is served"}}"#)),
        (true, true, "POST") => {
            target.start();
            ("200 OK", target.status_json())
        }
        (true, true, "DELETE") => {
            target.stop();
            ("200 OK", target.status_json())
        }
        (true, true, "GET") => ("200 OK", target.status_json()),
        (true, true, _) => ("405 Method Not Allowed", r#"{"error":"use POST, DELETE or GET"}"#.into()),
    };
    let answer = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    reader.into_inner().into_inner().write_all(answer.as_bytes())
}

/// Compares without telling by its duration how much was right.
fn equal_in_constant_time(given: &str, token: &str) -> bool {
    let difference = given.bytes().zip(token.bytes()).fold(0, |sum, (a, b)| sum | (a ^ b));
    given.len() == token.len() && difference == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::http::{Request, Url, send};
    use std::sync::atomic::{AtomicBool, Ordering};

    #[derive(Default)]
    struct Recorded(AtomicBool);

    impl Controllable for Recorded {
        fn start(&self) {
            self.0.store(true, Ordering::SeqCst);
        }
        fn stop(&self) {
            self.0.store(false, Ordering::SeqCst);
        }
        fn status_json(&self) -> String {
            format!(r#"{{"running":{}}}"#, self.0.load(Ordering::SeqCst))
        }
    }

    /// Scenario: callers without token, with a wrong one, on a wrong path, with a wrong method, and right ones.
    /// Guarantee: only the right ones are heeded, and dropping the server ends it.
    #[test]
    fn only_the_token_holder_is_heeded() {
        let token = "0123456789abcdef";
        let endpoint = ControlEndpoint { listen: ([127, 0, 0, 1], 0).into(), token: token.into(), allow_remote: false };
        let target = Arc::new(Recorded::default());
        let server = ControlServer::start(&endpoint, target.clone(), || {}).unwrap();
        let address = server.address().unwrap();
        let ask = |method: &str, path: &str, given: Option<&str>| {
            let url = Url::parse(&format!("http://{address}{path}")).unwrap();
            let headers =
                given.map(|token| ("Authorization".to_owned(), format!("Bearer {token}"))).into_iter().collect();
            let answer = send(&Request { method, url: &url, headers, body: &[] }, TIMEOUT).unwrap();
            (answer.status, String::from_utf8(answer.body).unwrap())
        };
        assert_eq!(ask("POST", PATH, None).0, 401);
        assert_eq!(ask("POST", PATH, Some("0123456789abcdee")).0, 401);
        assert_eq!(ask("POST", PATH, Some("0123")).0, 401);
        assert!(!target.0.load(Ordering::SeqCst));
        assert_eq!(ask("GET", "/", Some(token)).0, 404);
        assert_eq!(ask("PUT", PATH, Some(token)).0, 405);
        assert_eq!(ask("POST", PATH, Some(token)), (200, r#"{"running":true}"#.into()));
        assert_eq!(ask("DELETE", PATH, Some(token)), (200, r#"{"running":false}"#.into()));
        drop(server);
        assert!(TcpStream::connect(address).is_err());
    }
}
