//! Sends ended spans as OTLP over HTTP, and notices when the server is gone.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans};
use prost::Message;

use super::{EndedSpan, Release, SpanQueue};
use crate::http;

/// Time between exports: spans are on the page about as soon as the server has committed them.
pub(crate) const INTERVAL: Duration = Duration::from_millis(500);
/// How long a server may be away before the shop gives up.
const PATIENCE: Duration = Duration::from_secs(10);
const TIMEOUT: Duration = Duration::from_secs(5);

/// Sends what waits in a queue.
#[derive(Debug)]
pub(crate) struct SpanExporter {
    server: String,
    last_answer: Instant,
}

impl SpanExporter {
    /// An exporter to `host:port`.
    pub(crate) fn new(server: &str) -> SpanExporter {
        SpanExporter { server: server.to_owned(), last_answer: Instant::now() }
    }

    /// Sends everything that waits. What the server could not take is put back for the next time.
    pub(crate) fn export(&mut self, queue: &SpanQueue) {
        let spans = queue.take();
        if spans.is_empty() {
            return;
        }
        let body = encode(&spans);
        match http::send(&self.server, "POST", "/v1/traces", "application/x-protobuf", &body, TIMEOUT) {
            Ok(answer) => {
                self.last_answer = Instant::now();
                // OTLP names these as worth a retry; anything else would be refused again.
                if matches!(answer.status(), Some(429 | 502 | 503 | 504)) {
                    queue.put_back(spans);
                }
            }
            Err(_) => queue.put_back(spans),
        }
    }

    /// Whether the server has not answered for so long that there is no use in going on.
    pub(crate) fn server_is_gone(&self) -> bool {
        self.last_answer.elapsed() > PATIENCE
    }
}

fn encode(spans: &[EndedSpan]) -> Vec<u8> {
    let mut by_release: HashMap<Release, Vec<_>> = HashMap::new();
    for (release, span) in spans {
        by_release.entry(*release).or_default().push(span.clone());
    }
    let resource_spans = by_release
        .into_iter()
        .map(|(release, spans)| ResourceSpans {
            resource: Some(release.resource()),
            scope_spans: vec![ScopeSpans {
                scope: Some(InstrumentationScope {
                    name: env!("CARGO_PKG_NAME").to_owned(),
                    version: env!("CARGO_PKG_VERSION").to_owned(),
                    ..InstrumentationScope::default()
                }),
                spans,
                ..ScopeSpans::default()
            }],
            ..ResourceSpans::default()
        })
        .collect();
    ExportTraceServiceRequest { resource_spans }.encode_to_vec()
}
