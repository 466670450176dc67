//! A span for each request from outside.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use tracing::field::Empty;
use tracing::{Instrument, Span, info_span};

use super::{SelfTracingCounters, TARGET};
use crate::app::App;

/// What load balancers and scrapers ask all day.
const UNTRACED: [&str; 3] = ["/ready", "/healthz", "/metrics"];

/// So many a second: the second in the high half, the count in the low one.
#[derive(Debug)]
pub(crate) struct RequestGate {
    state: AtomicU64,
    max_requests: u64,
    pub(crate) counters: Arc<SelfTracingCounters>,
}

impl RequestGate {
    pub(super) fn new(max_requests: usize, counters: Arc<SelfTracingCounters>) -> Self {
        Self { state: AtomicU64::new(0), max_requests: max_requests as u64, counters }
    }

    fn lets_pass(&self, second: u64) -> bool {
        let second = second & 0xffff_ffff;
        let previous = self.state.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |state| {
            Some(if state >> 32 == second { state + 1 } else { second << 32 | 1 })
        });
        let previous = previous.unwrap_or_else(|state| state);
        let count = if previous >> 32 == second { previous & 0xffff_ffff } else { 0 };
        if count >= self.max_requests {
            SelfTracingCounters::add(&self.counters.untraced_requests, 1);
        }
        count < self.max_requests
    }
}

/// Runs a request inside a span of its own, if the server looks at itself.
pub(crate) async fn trace_request(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let Some(span) = span_for(&app, &request) else { return next.run(request).await };
    let response = next.run(request).instrument(span.clone()).await;
    let status = response.status();
    span.record("http.response.status_code", status.as_u16());
    if status.is_server_error() {
        span.record("otel.status_code", "ERROR");
    }
    response
}

fn span_for(app: &App, request: &Request) -> Option<Span> {
    let gate = app.request_gate.get()?;
    // Files of the page have no route of their own.
    let route = request.extensions().get::<MatchedPath>()?.as_str();
    let second = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    if UNTRACED.contains(&route) || !gate.lets_pass(second) {
        return None;
    }
    let method = request.method().as_str();
    let caller = request.headers().get("traceparent").and_then(|header| parse_traceparent(header.to_str().ok()?));
    let (trace_id, parent_span_id) = caller.unwrap_or_default();
    // What one tenant asks for is not for the eyes of another (R6); all of them share the server's own traces.
    let asked = (!app.settings.multi_tenancy).then(|| request.uri());
    Some(info_span!(
        target: TARGET,
        "request",
        otel.name = format!("{method} {route}"),
        otel.kind = "server",
        otel.status_code = Empty,
        trace_id,
        parent_span_id,
        http.request.method = method,
        http.route = route,
        url.path = asked.map(http::Uri::path),
        url.query = asked.and_then(http::Uri::query),
        http.response.status_code = Empty,
    ))
}

/// Trace and span of the caller, if it is one that traces: `00-TRACE-SPAN-FLAGS`.
fn parse_traceparent(header: &str) -> Option<(&str, &str)> {
    let mut parts = header.trim().split('-');
    let (version, trace, span) = (parts.next()?, parts.next()?, parts.next()?);
    let is_hex = |text: &str, length: usize| text.len() == length && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    (version == "00" && is_hex(trace, 32) && is_hex(span, 16)).then_some((trace, span))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: more requests than the limit in one second, then the next second.
    /// Guarantee: as many as the limit pass, the others are counted, and the next second starts anew.
    #[test]
    fn the_gate_limits_and_counts() {
        let counters = Arc::new(SelfTracingCounters::default());
        let gate = RequestGate::new(3, Arc::clone(&counters));
        let passed = (0..10).filter(|_| gate.lets_pass(77)).count();
        assert_eq!((passed, counters.untraced_requests.load(Ordering::Relaxed)), (3, 7));
        assert!(gate.lets_pass(78));
    }

    /// Scenario: headers of callers, right and wrong ones.
    /// Guarantee: only those that W3C allows name a caller.
    #[test]
    fn callers_are_recognised() {
        let (trace, span) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
        assert_eq!(parse_traceparent(&format!("00-{trace}-{span}-01")), Some((trace, span)));
        for wrong in ["", "00", "00-12-34-01", "00-0af7651916cd43dd8448eb211c80319g-b7ad6b7169203331-01"] {
            assert_eq!(parse_traceparent(wrong), None, "{wrong}");
        }
    }
}
