//! A policy that the Hotspan server gives: asked for at intervals, applied when it changed.
//!
//! `GET /api/v1/profiling/policy?service=NAME` answers JSON:
//!
//! ```json
//! {"rate": 100, "types": ["cpu", "memory", "wall", "locks"],
//!  "conditions": {"slow_request_threshold": "1s", "profile_errors": true, "request_share": 0.05},
//!  "boost": {"rate": 200, "until_unix_seconds": 1790000000}}
//! ```
//!
//! Everything is optional; what is not said stays as configured. 304 means unchanged, 404 and 204 mean none.

use crate::aggregate::Conditions;
use crate::config::{ConfigError, Fields, PolicySource, document, read_conditions};
use crate::export::http::{self, Request, Url};
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(5);

/// What the server wishes.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Policy {
    pub(crate) hertz: Option<u32>,
    pub(crate) types: Option<Vec<String>>,
    pub(crate) conditions: Option<Conditions>,
    pub(crate) boost: Option<Boost>,
}

/// A higher rate until a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Boost {
    pub(crate) hertz: u32,
    pub(crate) until_unix_seconds: u64,
}

impl Policy {
    /// Reads the server's answer.
    pub(crate) fn parse(json: &str) -> Result<Policy, ConfigError> {
        let whole = |text: &str| text.parse::<u64>().map_err(|_| format!("`{text}` is not a whole number"));
        let hertz = |text: &str| match text.parse::<u32>() {
            Ok(hertz @ 1..=1000) => Ok(hertz),
            _ => Err(format!("`{text}` is not between 1 and 1000")),
        };
        let mut fields = Fields::of(document::parse(json, 1)?, "policy")?;
        let mut policy =
            Policy { hertz: fields.read("rate", hertz)?, types: fields.list("types")?, ..Policy::default() };
        if let Some(mut conditions) = fields.nested("conditions")? {
            policy.conditions = Some(read_conditions(&mut conditions)?);
            conditions.finish()?;
        }
        if let Some(mut boost) = fields.nested("boost")? {
            let rate = boost.read("rate", hertz)?;
            let until = boost.read("until_unix_seconds", whole)?;
            policy.boost = rate.zip(until).map(|(hertz, until_unix_seconds)| Boost { hertz, until_unix_seconds });
            boost.finish()?;
        }
        fields.finish()?;
        let known = ["cpu", "memory", "wall", "locks"];
        let unknown = policy.types.iter().flatten().find(|name| !known.contains(&name.as_str()));
        match unknown {
            Some(name) => Err(ConfigError::new(format!("`{name}` is not one of {}", known.join(", ")))),
            None => Ok(policy),
        }
    }

    /// The rate to sample at now, if the policy says one.
    pub(crate) fn hertz_at(&self, unix_seconds: u64) -> Option<u32> {
        let boosted = self.boost.filter(|boost| unix_seconds < boost.until_unix_seconds).map(|boost| boost.hertz);
        boosted.or(self.hertz)
    }

    /// Whether a type is profiled, given how it is configured.
    pub(crate) fn wants(&self, name: &str, configured: bool) -> bool {
        self.types.as_ref().map_or(configured, |types| types.iter().any(|wanted| wanted == name))
    }
}

/// What one question gave.
#[derive(Debug, PartialEq)]
pub(crate) enum PolicyAnswer {
    Unchanged,
    Changed { policy: Policy, etag: Option<String> },
}

/// Asks once.
pub(crate) fn ask(
    server: &Url,
    headers: &[(String, String)],
    service: &str,
    etag: Option<&str>,
) -> Result<PolicyAnswer, String> {
    let url = server.with_path(&format!("/api/v1/profiling/policy?service={}", percent_encoded(service)));
    let mut headers = headers.to_vec();
    headers.extend(etag.map(|etag| ("if-none-match".to_owned(), etag.to_owned())));
    let answer = http::send(&Request { method: "GET", url: &url, headers, body: &[] }, TIMEOUT)
        .map_err(|error| error.to_string())?;
    match answer.status {
        200 => {
            let policy = Policy::parse(&String::from_utf8_lossy(&answer.body)).map_err(|error| error.to_string())?;
            Ok(PolicyAnswer::Changed { policy, etag: answer.header("etag").map(str::to_owned) })
        }
        304 => Ok(PolicyAnswer::Unchanged),
        204 | 404 => Ok(PolicyAnswer::Changed { policy: Policy::default(), etag: None }),
        status => Err(format!("the server answered {status} to the question for a policy")),
    }
}

fn percent_encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { (byte as char).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// The thread that asks; it ends when dropped.
#[derive(Debug)]
pub(crate) struct PolicyPoller {
    stop: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl PolicyPoller {
    /// Starts asking; `apply` receives every policy that is new, or why there is none.
    pub(crate) fn start(
        source: &PolicySource,
        service: String,
        prepare_thread: impl FnOnce() + Send + 'static,
        apply: impl Fn(Result<Policy, String>) + Send + 'static,
    ) -> io::Result<PolicyPoller> {
        let server = Url::parse(&source.endpoint).map_err(|error| io::Error::other(error.to_string()))?;
        let (interval, headers) = (source.interval, source.headers.clone());
        let stop = Arc::new((Mutex::new(false), Condvar::new()));
        let told = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("hotspan-policy".into()).spawn(move || {
            prepare_thread();
            let mut last_etag = None;
            loop {
                match ask(&server, &headers, &service, last_etag.as_deref()) {
                    Ok(PolicyAnswer::Unchanged) => {}
                    Ok(PolicyAnswer::Changed { policy, etag }) => {
                        last_etag = etag;
                        apply(Ok(policy));
                    }
                    // A server that is away changes nothing: the last policy holds.
                    Err(reason) => apply(Err(reason)),
                }
                let (stopped, changed) = &*told;
                let stopped = stopped.lock().unwrap_or_else(PoisonError::into_inner);
                let waited = changed.wait_timeout_while(stopped, interval, |stopped| !*stopped);
                if *waited.unwrap_or_else(PoisonError::into_inner).0 {
                    return;
                }
            }
        })?;
        Ok(PolicyPoller { stop, thread: Some(thread) })
    }
}

impl Drop for PolicyPoller {
    fn drop(&mut self) {
        *self.stop.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.stop.1.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic of the policy thread must not become one of the service.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: a full policy, an empty one, and ones with mistakes.
    /// Guarantee: what is said is applied, a boost only until its time, mistakes are refused.
    #[test]
    fn policies_are_read_strictly() {
        let text = r#"{"rate": 50, "types": ["cpu", "wall"],
            "conditions": {"slow_request_threshold": "250ms", "profile_errors": true, "request_share": 0.05},
            "boost": {"rate": 200, "until_unix_seconds": 1000}}"#;
        let policy = Policy::parse(text).unwrap();
        assert_eq!((policy.hertz_at(999), policy.hertz_at(1000)), (Some(200), Some(50)));
        assert!(policy.wants("wall", false) && !policy.wants("memory", true));
        let conditions = policy.conditions.unwrap();
        assert_eq!(conditions.slow_request_threshold, Some(Duration::from_millis(250)));
        let empty = Policy::parse("{}").unwrap();
        assert!(empty == Policy::default() && empty.wants("cpu", true) && empty.hertz_at(0).is_none());
        for wrong in [r#"{"rate": 0}"#, r#"{"types": ["gpu"]}"#, r#"{"speed": 1}"#, "[]", "{", "nonsense"] {
            assert!(Policy::parse(wrong).is_err(), "{wrong}");
        }
    }

    /// Scenario: a server that gives a policy with an ETag, then says unchanged, then has none.
    /// Guarantee: the ETag is sent back, and each answer is understood.
    #[test]
    fn the_server_is_asked_with_its_etag() {
        use std::io::{Read, Write};
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Url::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        let serving = std::thread::spawn(move || {
            let answers = [
                "HTTP/1.1 200 OK\r\netag: \"v1\"\r\ncontent-length: 13\r\n\r\n{\"rate\": 200}",
                "HTTP/1.1 304 Not Modified\r\n\r\n",
                "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n",
            ];
            answers.map(|answer| {
                let (mut stream, _) = listener.accept().unwrap();
                let mut head = [0; 1024];
                let length = stream.read(&mut head).unwrap();
                stream.write_all(answer.as_bytes()).unwrap();
                String::from_utf8_lossy(&head[..length]).into_owned()
            })
        });
        let first = ask(&server, &[("x-scope-orgid".to_owned(), "team".to_owned())], "order service", None).unwrap();
        assert!(matches!(&first, PolicyAnswer::Changed { policy, etag: Some(etag) }
            if policy.hertz == Some(200) && etag == "\"v1\""));
        assert_eq!(ask(&server, &[], "x", Some("\"v1\"")), Ok(PolicyAnswer::Unchanged));
        assert!(
            matches!(ask(&server, &[], "x", None), Ok(PolicyAnswer::Changed { policy, .. }) if policy == Policy::default())
        );
        let heads = serving.join().unwrap();
        assert!(heads[0].starts_with("GET /api/v1/profiling/policy?service=order%20service HTTP/1.1\r\n"));
        assert!(heads[0].contains("x-scope-orgid: team\r\n"));
        assert!(heads[1].contains("if-none-match: \"v1\"\r\n"));
    }
}
