//! How many questions are being answered, and how it went with those before: for the status page and for Prometheus.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use hotspan_query::QueryTicket;
use http::{Method, StatusCode};
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};
use tracing::warn;

use crate::api::WhyNot;
use crate::app::App;
use crate::receive::tenant_of;

/// Counters of questions, from the first to the last byte of the answer's head.
#[derive(Debug, Default)]
pub(crate) struct QueryCounts {
    running: AtomicU64,
    answered: AtomicU64,
    failed: AtomicU64,
    cancelled: AtomicU64,
    nanos: AtomicU64,
    slowest_nanos: AtomicU64,
}

impl QueryCounts {
    /// As the status shows them.
    pub(crate) fn to_json(&self) -> Value {
        let answered = self.answered.load(Relaxed);
        json!({
            "running": self.running.load(Relaxed),
            "answered": answered,
            "failed": self.failed.load(Relaxed),
            "cancelled": self.cancelled.load(Relaxed),
            "mean_ns": self.nanos.load(Relaxed).checked_div(answered).unwrap_or(0),
            "slowest_ns": self.slowest_nanos.load(Relaxed),
        })
    }

    /// Name, help and value of each counter that only grows.
    pub(crate) fn totals(&self) -> [(&'static str, &'static str, u64); 3] {
        [
            ("queries_answered", "Questions answered", self.answered.load(Relaxed)),
            ("queries_failed", "Questions that failed on the server's side", self.failed.load(Relaxed)),
            ("queries_cancelled", "Questions whose asker went away", self.cancelled.load(Relaxed)),
        ]
    }

    pub(crate) fn running(&self) -> u64 {
        self.running.load(Relaxed)
    }

    fn begin(&self) -> Running<'_> {
        self.running.fetch_add(1, Relaxed);
        Running { counts: self, began: Instant::now(), is_answered: false }
    }
}

/// A question under way. Dropped without an answer, its asker has gone.
struct Running<'a> {
    counts: &'a QueryCounts,
    began: Instant,
    is_answered: bool,
}

impl Running<'_> {
    /// Counts the answer, and says how long it took.
    fn answered(mut self, is_failure: bool) -> Duration {
        let took = self.began.elapsed();
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.counts.nanos.fetch_add(nanos, Relaxed);
        self.counts.slowest_nanos.fetch_max(nanos, Relaxed);
        self.counts.answered.fetch_add(1, Relaxed);
        if is_failure {
            self.counts.failed.fetch_add(1, Relaxed);
        }
        self.is_answered = true;
        took
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.counts.running.fetch_sub(1, Relaxed);
        if !self.is_answered {
            self.counts.cancelled.fetch_add(1, Relaxed);
        }
    }
}

/// Counts what asks for data; what sends data, and the page itself, goes by.
pub(crate) async fn count_queries(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    if !is_query(request.method(), request.uri().path()) {
        return next.run(request).await;
    }
    let api = api_of(request.uri().path());
    let running = app.queries.begin();
    let ticket = noted(&app, &request);
    let response = next.run(request).await;
    let status = response.status();
    app.metrics.answered(api, running.answered(status.is_server_error()));
    let why_not = response.extensions().get::<WhyNot>().map_or_else(|| status.to_string(), |why| why.0.clone());
    if status == StatusCode::INTERNAL_SERVER_ERROR {
        warn_of(&app, api, &why_not);
    }
    match ticket {
        Some(ticket) if status.is_client_error() || status.is_server_error() => ticket.failed(&why_not),
        Some(ticket) => ticket.done(),
        None => {}
    }
    response
}

/// Says that questions fail which are not to blame for it. One damaged file fails all that would read it.
fn warn_of(app: &App, api: &'static str, error: &str) {
    if let Some(questions) = app.repeated_warnings.due(api, "failed", Instant::now()) {
        warn!(
            api,
            questions,
            error,
            "questions failed; told once a minute; `hotspan store check` finds what is damaged in a store"
        );
    }
}

/// Notes a question in the log, where `hotspan.queries` finds it. SQL notes itself, statement and all.
fn noted(app: &App, request: &Request) -> Option<QueryTicket> {
    let path = request.uri().path();
    if path == "/api/v1/sql" {
        return None;
    }
    let (core, tenant) = (app.core().ok()?, tenant_of(app, request.headers()).ok()?);
    let asked = request.uri().query().unwrap_or_default().replace('+', " ");
    let asked = percent_decode_str(&asked).decode_utf8_lossy();
    Some(core.engine.queries().begin(&tenant, path, &asked))
}

fn is_query(method: &Method, path: &str) -> bool {
    let is_upload = method == Method::POST && path == "/api/v1/profiles";
    let asks = ["/api/", "/querier.", "/tempopb.", "/pyroscope/render"].iter().any(|prefix| path.starts_with(prefix));
    asks && !is_upload && path != "/api/v1/status" && path != "/api/echo"
}

/// Whose API a question is asked in: how long an answer may take differs between them.
fn api_of(path: &str) -> &'static str {
    match path {
        "/api/v1/sql" => "sql",
        path if path.starts_with("/api/v1/") => "hotspan",
        path if path.starts_with("/querier.") || path.starts_with("/pyroscope/") => "pyroscope",
        _ => "tempo",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: one question is answered, one fails, one is dropped on the way.
    /// Guarantee: each is counted under its outcome, and none is left running.
    #[test]
    fn every_question_has_one_outcome() {
        let counts = QueryCounts::default();
        counts.begin().answered(false);
        counts.begin().answered(true);
        drop(counts.begin());
        let totals: Vec<u64> = counts.totals().iter().map(|(_, _, value)| *value).collect();
        assert_eq!((totals, counts.running()), (vec![2, 1, 1], 0));
        assert!(is_query(&Method::GET, "/api/v1/profiles") && !is_query(&Method::POST, "/api/v1/profiles"));
        let paths =
            ["/api/v1/sql", "/api/v1/profile", "/pyroscope/render", "/api/search", "/tempopb.StreamingQuerier/Search"];
        assert_eq!(paths.map(api_of), ["sql", "hotspan", "pyroscope", "tempo", "tempo"]);
        assert!(is_query(&Method::POST, "/querier.v1.QuerierService/Diff") && !is_query(&Method::GET, "/assets/x.js"));
    }
}
