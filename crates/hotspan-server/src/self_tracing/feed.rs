//! From what was collected to rows of the store. Runs outside every span, so that it never feeds on itself.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hotspan_formats::otlp::decode_profiles;
use hotspan_lake::catalog::now_nanos;
use hotspan_lake::rows::Rows;
use hotspan_model::{Attribute, Resource, Scope, Span, TenantId, TraceSink as _, Value};
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::collector::OwnSpan;
use super::middleware::RequestGate;
use super::{SERVICE, SelfTracing, SelfTracingCounters};
use crate::app::{App, Core};

const INTERVAL: Duration = Duration::from_secs(1);
/// Memory that one span takes while it is on its way, roughly.
const SPAN_BYTES: usize = 1024;
const ROOM_FACTOR: usize = 6;

/// The other end of [`SelfTracing`].
pub(crate) struct Feed {
    tracing: SelfTracing,
}

impl Feed {
    pub(crate) fn new(tracing: SelfTracing) -> Self {
        Self { tracing }
    }

    /// Lets the middleware trace so many requests a second.
    pub(crate) fn gate(&self) -> RequestGate {
        RequestGate::new(self.tracing.max_requests, Arc::clone(&self.tracing.counters))
    }
}

/// Feeds the server with its own data until `stop`, and once more then.
pub(crate) async fn feed(mut feed: Feed, app: Arc<App>, stop: CancellationToken) {
    loop {
        let is_last = tokio::select! {
            () = tokio::time::sleep(INTERVAL) => false,
            () = stop.cancelled() => true,
        };
        if is_last && let Some(profiler) = feed.tracing.profiler.take() {
            // Dropping it sends what is left. It waits for threads, which must not be this one.
            // A panic there is none of the server's.
            let _ = tokio::task::spawn_blocking(move || drop(profiler)).await;
        }
        if let Ok(core) = app.opened_core() {
            feed_spans(&feed.tracing, core).await;
            while let Ok(upload) = feed.tracing.uploads.try_recv() {
                feed_profiles(&feed.tracing.counters, &app, core, upload).await;
            }
        }
        if is_last {
            return;
        }
    }
}

async fn feed_spans(tracing: &SelfTracing, core: &Core) {
    let spans = tracing.finished.take();
    if spans.is_empty() {
        return;
    }
    let mut rows = Rows::default();
    let service = [("service.name", SERVICE), ("service.version", env!("CARGO_PKG_VERSION"))];
    let attributes = service.map(|(key, value)| Attribute::new(key, Value::String(value.into()))).to_vec();
    rows.spans.resource(&Resource { attributes, ..Resource::default() });
    rows.spans.scope(&Scope { name: env!("CARGO_PKG_NAME"), version: env!("CARGO_PKG_VERSION"), ..Scope::default() });
    spans.iter().for_each(|span| rows.spans.span(&as_model(span)));
    submit(&tracing.counters, core, rows, spans.len(), spans.len() * SPAN_BYTES).await;
}

async fn feed_profiles(counters: &SelfTracingCounters, app: &Arc<App>, core: &Core, upload: Vec<u8>) {
    let room = upload.len() * ROOM_FACTOR;
    let (decoding_app, ingest) = (Arc::clone(app), core.ingest.clone());
    let decoded = tokio::task::spawn_blocking(move || {
        let (set, _outcome, _version) = decode_profiles(&upload, &decoding_app.settings.limits, now_nanos()).ok()?;
        let mut rows = Rows::default();
        rows.profiles.push(&set, &ingest.known().of(&TenantId::anonymous()));
        Some((rows, set.profiles.len()))
    });
    match decoded.await {
        Ok(Some((rows, profiles))) => submit(counters, core, rows, profiles, room).await,
        _ => SelfTracingCounters::add(&counters.dropped, 1),
    }
}

/// Stores rows, or counts them as dropped: there is nobody to send them again.
async fn submit(counters: &SelfTracingCounters, core: &Core, rows: Rows, items: usize, room: usize) {
    let counter = match core.ingest.try_reserve(room) {
        None => &counters.dropped,
        Some(reservation) => match core.ingest.submit(TenantId::anonymous(), rows, reservation).await {
            Ok(_) => &counters.stored,
            Err(error) => {
                debug!(%error, "the server's own data was not stored");
                &counters.dropped
            }
        },
    };
    counter.fetch_add(items as u64, Ordering::Relaxed);
}

fn as_model(span: &OwnSpan) -> Span<'_> {
    Span {
        trace_id: span.trace_id,
        span_id: span.span_id,
        parent_id: span.parent_id,
        name: &span.name,
        kind: span.kind,
        start: span.start,
        end: span.end,
        status: span.status,
        attributes: span.attributes.iter().map(|(key, value)| Attribute::new(key, value.clone())).collect(),
        ..Span::default()
    }
}
