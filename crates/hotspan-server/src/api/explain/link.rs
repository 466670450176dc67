//! Permalinks into the page: the explanation itself, and where to see a cause.

use hotspan_analysis::Cause;
use hotspan_analysis::explanation::Coverage;
use hotspan_analysis::gather::BeforeAfter;
use http::{HeaderMap, header};

use super::request::ExplainQuestion;

/// What links are made of.
#[derive(Debug)]
pub(super) struct Links {
    base: String,
    target: String,
    baseline: Option<String>,
    range: (i64, i64),
    has_range: bool,
    change: Option<BeforeAfter>,
    profile_type: Option<String>,
}

impl Links {
    /// The links of an answer; absolute if the request says how the server is reached.
    pub(super) fn of(headers: &HeaderMap, question: &ExplainQuestion) -> Self {
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let host = header("x-forwarded-host").or_else(|| header(header::HOST.as_str()));
        // A name with other characters is no host, and must not reach a ticket.
        let is_host = |host: &&str| host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".:-[]_".contains(&byte));
        let scheme = header("x-forwarded-proto").filter(|scheme| *scheme == "https").unwrap_or("http");
        let both = question.times.map(|times| (times.before.0.min(times.after.0), times.before.1.max(times.after.1)));
        Self {
            base: host.filter(is_host).map_or_else(String::new, |host| format!("{scheme}://{host}")),
            target: question.query.target.clone(),
            baseline: question.query.baseline.clone(),
            range: both.unwrap_or(question.query.default_range),
            has_range: both.is_some() || question.query.range.is_some() || question.query.target.starts_with('{'),
            change: question.times,
            profile_type: question.profile_type.clone(),
        }
    }

    /// The page that shows the same explanation.
    pub(super) fn explanation(&self) -> String {
        let mut parameters = self.time();
        parameters.push(("target", self.target.clone()));
        parameters.extend(self.baseline.iter().map(|baseline| ("baseline", baseline.clone())));
        parameters.extend(self.profile_type.iter().map(|name| ("type", name.clone())));
        if let Some(BeforeAfter { before, after }) = self.change {
            let times = |(from, until)| format!("{}..{}", milliseconds(from), milliseconds(until));
            parameters.extend([("before", times(before)), ("after", times(after))]);
        }
        self.page("explain", &parameters)
    }

    /// The page that shows a cause in the flame graph that it was seen in.
    pub(super) fn cause(&self, cause: &Cause, coverage: &Coverage) -> String {
        let mut parameters = vec![("type", profile_type_of(cause, coverage).to_owned())];
        if let Some(function) = &cause.function {
            parameters.extend([("fn", function.clone()), ("find", function.clone())]);
        }
        match cause.traces.first() {
            Some(trace) if !self.target.trim_start().starts_with(['{', '(']) => {
                self.page(&format!("trace/{trace}"), &parameters)
            }
            _ => {
                parameters.extend(self.time());
                parameters.push(("q", self.target.clone()));
                self.page("traces", &parameters)
            }
        }
    }

    fn time(&self) -> Vec<(&'static str, String)> {
        if !self.has_range {
            return Vec::new();
        }
        vec![("from", milliseconds(self.range.0).to_string()), ("to", milliseconds(self.range.1).to_string())]
    }

    /// The page keeps its state in the fragment, its parameters sorted.
    fn page(&self, path: &str, parameters: &[(&str, String)]) -> String {
        let mut sorted: Vec<&(&str, String)> = parameters.iter().collect();
        sorted.sort_by_key(|(name, _)| *name);
        let query: Vec<String> = sorted.iter().map(|(name, value)| format!("{name}={}", escaped(value))).collect();
        let mark = if query.is_empty() { "" } else { "?" };
        format!("{}/#/{path}{mark}{}", self.base, query.join("&"))
    }
}

fn milliseconds(nanos: i64) -> i64 {
    nanos.div_euclid(1_000_000)
}

/// The profiles that show a cause: waits are not in those of the CPU.
fn profile_type_of(cause: &Cause, coverage: &Coverage) -> &'static str {
    let profiles = coverage.services.iter().find(|service| service.service == cause.service);
    let has = |name: &&&str| profiles.is_some_and(|service| service.profiles.contains(*name));
    match cause.kind {
        "cpu" | "gc" => "cpu",
        "lock" => ["lock", "wall", "off_cpu"].iter().find(has).unwrap_or(&"cpu"),
        _ => ["wall", "off_cpu"].iter().find(has).unwrap_or(&"cpu"),
    }
}

/// Escapes a value for the query of a link.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}
