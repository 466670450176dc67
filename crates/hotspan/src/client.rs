//! The server that a command talks to: one way to ask it, and errors that say what to do.

use std::io::Read;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::Value;
use ureq::http::{Response, StatusCode};
use ureq::{Agent, Body, SendBody};

/// Largest answer that is read.
const MAX_ANSWER: u64 = 1 << 30;
/// The header that names the tenant.
const TENANT_HEADER: &str = "X-Scope-OrgID";

/// Which server, and as whom.
#[derive(Debug, Clone, Args)]
pub(crate) struct ServerArguments {
    // Variables are not read by clap, which would list flags that they stand for in every usage line as if they were needed.
    /// Address of the server [env: HOTSPAN_SERVER] [default: http://127.0.0.1:4040]
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// Tenant to ask for, where the server keeps several [env: HOTSPAN_TENANT]
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
    /// Longest time that an answer may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "300", hide = true)]
    timeout: u64,
}

/// The server on this machine, as `hotspan serve` starts it.
const LOCAL_SERVER: &str = "http://127.0.0.1:4040";

/// What a flag says, or else a variable of the environment.
fn said(flag: Option<&String>, variable: &str) -> Option<String> {
    flag.cloned().or_else(|| std::env::var(variable).ok().filter(|value| !value.is_empty()))
}

/// A server that can be asked.
#[derive(Debug)]
pub(crate) struct Client {
    agent: Agent,
    base: String,
    tenant: Option<String>,
}

/// A good answer.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) body: Vec<u8>,
    /// How many samples it rests on, where the server says it.
    pub(crate) samples: Option<u64>,
}

impl Answer {
    /// The body as text; what is not UTF-8 is replaced.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> anyhow::Result<Value> {
        serde_json::from_slice(&self.body).context("the server's answer is not JSON")
    }
}

impl Client {
    /// A client of the server that the arguments name. `host:port` alone means plain HTTP.
    pub(crate) fn new(arguments: &ServerArguments) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(Duration::from_secs(5)))
            .timeout_global(Some(Duration::from_secs(arguments.timeout.max(1))))
            .user_agent(concat!("hotspan/", env!("CARGO_PKG_VERSION")))
            .build();
        let server = said(arguments.server.as_ref(), "HOTSPAN_SERVER").unwrap_or_else(|| LOCAL_SERVER.to_owned());
        let base = server.trim_end_matches('/');
        let base = if base.contains("://") { base.to_owned() } else { format!("http://{base}") };
        Self { agent: config.into(), base, tenant: said(arguments.tenant.as_ref(), "HOTSPAN_TENANT") }
    }

    /// The address of the server, for links.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// The tenant that is asked for, if one is named.
    pub(crate) fn tenant(&self) -> Option<&str> {
        self.tenant.as_deref()
    }

    /// Asks for a path. Names and values of the query are escaped here.
    pub(crate) fn get(&self, path: &str, query: &[(&str, &str)]) -> anyhow::Result<Answer> {
        let mut request = self.agent.get(format!("{}{path}", self.base)).query_pairs(query.iter().copied());
        if let Some(tenant) = &self.tenant {
            request = request.header(TENANT_HEADER, tenant);
        }
        self.finish(path, request.call())
    }

    /// Asks with parameters that were put together at run time.
    pub(crate) fn ask(&self, path: &str, question: &[(&str, String)]) -> anyhow::Result<Answer> {
        let query: Vec<(&str, &str)> = question.iter().map(|(name, value)| (*name, value.as_str())).collect();
        self.get(path, &query)
    }

    /// Sends JSON.
    pub(crate) fn post_json(&self, path: &str, body: &Value) -> anyhow::Result<Answer> {
        self.post(path, &[], "application/json", body.to_string().as_bytes())
    }

    /// Changes what a path holds, by JSON.
    pub(crate) fn patch_json(&self, path: &str, query: &[(&str, &str)], body: &Value) -> anyhow::Result<Answer> {
        let mut request = self.agent.patch(format!("{}{path}", self.base)).query_pairs(query.iter().copied());
        request = request.content_type("application/json");
        if let Some(tenant) = &self.tenant {
            request = request.header(TENANT_HEADER, tenant);
        }
        self.finish(path, request.send(body.to_string().as_bytes()))
    }

    /// Removes what a path holds.
    pub(crate) fn delete(&self, path: &str, query: &[(&str, &str)]) -> anyhow::Result<Answer> {
        let mut request = self.agent.delete(format!("{}{path}", self.base)).query_pairs(query.iter().copied());
        if let Some(tenant) = &self.tenant {
            request = request.header(TENANT_HEADER, tenant);
        }
        self.finish(path, request.call())
    }

    /// Sends bytes.
    pub(crate) fn post(
        &self,
        path: &str,
        query: &[(&str, &str)],
        content_type: &str,
        body: &[u8],
    ) -> anyhow::Result<Answer> {
        let mut request = self.agent.post(format!("{}{path}", self.base)).query_pairs(query.iter().copied());
        request = request.content_type(content_type);
        if let Some(tenant) = &self.tenant {
            request = request.header(TENANT_HEADER, tenant);
        }
        self.finish(path, request.send(body))
    }

    /// Sends what a reader gives, however long that takes. The server is told the length if it is known.
    pub(crate) fn post_stream(
        &self,
        path: &str,
        query: &[(&str, &str)],
        mut body: impl Read,
        length: Option<u64>,
    ) -> anyhow::Result<Answer> {
        let mut request = self.agent.post(format!("{}{path}", self.base)).query_pairs(query.iter().copied());
        request = request.content_type("application/octet-stream");
        if let Some(length) = length {
            request = request.header("content-length", length);
        }
        if let Some(tenant) = &self.tenant {
            request = request.header(TENANT_HEADER, tenant);
        }
        let request = request.config().timeout_global(None).build();
        self.finish(path, request.send(SendBody::from_reader(&mut body)))
    }

    fn finish(&self, path: &str, answer: Result<Response<Body>, ureq::Error>) -> anyhow::Result<Answer> {
        let mut response = match answer {
            Ok(response) => response,
            Err(ureq::Error::Timeout(_)) => bail!("the server at {} took too long to answer {path}", self.base),
            Err(error @ (ureq::Error::BadUri(_) | ureq::Error::Http(_))) => {
                bail!("{:?} is not the address of a server: {error}", self.base)
            }
            Err(error) => bail!(
                "no server answers at {} ({error}); start one with `hotspan serve`, or name another with --server",
                self.base
            ),
        };
        let status = response.status();
        let exactness = response.headers().get("hotspan-exactness").and_then(|json| json.to_str().ok());
        let exactness: Option<Value> = exactness.and_then(|json| serde_json::from_str(json).ok());
        let samples = exactness.and_then(|exactness| exactness["samples"].as_u64());
        let mut body = Vec::new();
        if let Err(error) = response.body_mut().with_config().limit(MAX_ANSWER).reader().read_to_end(&mut body) {
            if let Some(why) = reason_of_cut(&body) {
                bail!("{why}");
            }
            return Err(error).with_context(|| format!("reading the answer of {}{path}", self.base));
        }
        if status.is_success() {
            return Ok(Answer { body, samples });
        }
        bail!("{}", refusal(status, &body, &self.base, path))
    }
}

/// Why an answer was cut off, which the last line of CSV says.
fn reason_of_cut(body: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(body);
    text.lines().last()?.strip_prefix("# error: ").map(str::to_owned)
}

/// What a server said instead of an answer.
fn refusal(status: StatusCode, body: &[u8], base: &str, path: &str) -> String {
    let json: Option<Value> = serde_json::from_slice(body).ok();
    let said = json.as_ref().and_then(|json| json["error"].as_str().or_else(|| json["message"].as_str()));
    let text = String::from_utf8_lossy(body);
    let said = said.unwrap_or_else(|| text.trim());
    match status {
        StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED if json.is_none() => {
            format!("the server at {base} does not know {path}; is it an older version?")
        }
        _ if said.is_empty() || said.starts_with('<') => format!("the server at {base} answered {path} with {status}"),
        _ => said.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: refusals as JSON, as text, without a body, and by a server that lacks the path.
    /// Guarantee: a person reads the reason, and which server gave it where there is none.
    #[test]
    fn refusals_name_the_reason() {
        let say = |status: u16, body: &str| {
            refusal(StatusCode::from_u16(status).unwrap(), body.as_bytes(), "http://host", "/path")
        };
        assert_eq!(say(400, r#"{"error":"from must be before to"}"#), "from must be before to");
        assert_eq!(say(404, r#"{"message":"no such trace"}"#), "no such trace");
        assert_eq!(say(429, "slow down\n"), "slow down");
        assert!(say(502, "").contains("http://host answered /path with 502"));
        assert!(say(404, "not here").contains("older version"));
    }

    /// Scenario: addresses with and without a scheme. Guarantee: both name the same server.
    #[test]
    fn addresses() {
        for server in ["http://127.0.0.1:4040", "127.0.0.1:4040", "http://127.0.0.1:4040/"] {
            let arguments = ServerArguments { server: Some(server.to_owned()), tenant: None, timeout: 1 };
            assert_eq!(Client::new(&arguments).base(), "http://127.0.0.1:4040");
        }
    }
}
