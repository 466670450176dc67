//! `/ready`, `/healthz`, `/metrics`, `/api/v1/status` and `/api/v1/targets`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use hotspan_lake::{Snapshot, Table};
use hotspan_model::TenantId;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::{Value, json};

use super::ApiError;
use crate::app::App;
use crate::metrics_text::metrics_response;
use crate::receive::tenant_of;

/// 200 once the store is open; 503 before that, and while stopping.
pub(crate) async fn ready(State(app): State<Arc<App>>) -> Response {
    match app.core() {
        Ok(_) => "ready\n".into_response(),
        Err(error) => {
            let mut response = (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")).into_response();
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            response
        }
    }
}

/// 200 as long as the process answers.
pub(crate) async fn healthy() -> &'static str {
    "ok\n"
}

/// Counters for Prometheus.
pub(crate) async fn metrics(State(app): State<Arc<App>>, headers: HeaderMap) -> Response {
    metrics_response(crate::metrics::render(&app), &headers)
}

/// What the server is, listens on and holds.
pub(crate) async fn status(State(app): State<Arc<App>>) -> Json<Value> {
    let listeners: Vec<Value> = app
        .listeners()
        .iter()
        .map(|bound| json!({ "name": bound.role.name(), "address": bound.address.to_string() }))
        .collect();
    let mut answer = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "ready": app.core().is_ok(),
        "uptime_s": app.started.elapsed().as_secs_f64(),
        "listeners": listeners,
        "tenant": TenantId::ANONYMOUS,
    });
    if let Ok(core) = app.core() {
        let lake = core.engine.lake();
        let ingest = lake.ingest_counters();
        answer["store"] = json!({
            "path": app.settings.store.display().to_string(),
            "tables": tables(&lake.catalog().snapshot()),
        });
        answer["ingest"] = json!({
            "spans": ingest.spans.load(Relaxed),
            "samples": ingest.samples.load(Relaxed),
            "profiles": ingest.profiles.load(Relaxed),
            "segments": ingest.segments.load(Relaxed),
            "bytes": ingest.bytes.load(Relaxed),
            "duplicate_spans": ingest.duplicate_spans.load(Relaxed),
            "duplicate_profiles": ingest.duplicate_profiles.load(Relaxed),
            "failed_batches": ingest.failed_batches.load(Relaxed),
            "refused_requests": ingest.refused_requests.load(Relaxed),
            "queue_share": core.ingest.queue_share(),
        });
        answer["queries"] = app.queries.to_json();
        answer["compaction"] = json!({
            "jobs": core.compaction.jobs.load(Relaxed),
            "failed_jobs": core.compaction.failed_jobs.load(Relaxed),
            "resting_segments": core.compaction.resting_segments.load(Relaxed),
            "input_bytes": core.compaction.input_bytes.load(Relaxed),
            "output_bytes": core.compaction.output_bytes.load(Relaxed),
            "cpu_ns": core.compaction.cpu_nanos.load(Relaxed),
        });
    }
    Json(answer)
}

/// How scraping goes, for the targets of whoever asks.
pub(crate) async fn targets(State(app): State<Arc<App>>, headers: HeaderMap) -> Result<Json<Value>, ApiError> {
    Ok(Json(app.scrape.json(&tenant_of(&app, &headers)?)))
}

/// Segments, rows and bytes by table and level.
fn tables(snapshot: &Snapshot) -> Vec<Value> {
    let mut sums: BTreeMap<(Table, u8), TableSums> = BTreeMap::new();
    for segment in snapshot.all_segments() {
        let sum = sums.entry((segment.table, segment.level)).or_default();
        sum.segments += 1;
        sum.rows += segment.rows;
        sum.bytes += segment.bytes() + segment.index.as_ref().map_or(0, |(_, size)| *size);
        sum.min_time = Some(sum.min_time.map_or(segment.min_time, |time| time.min(segment.min_time)));
        sum.max_time = Some(sum.max_time.map_or(segment.max_time, |time| time.max(segment.max_time)));
    }
    let row = |((table, level), sum): ((Table, u8), TableSums)| {
        json!({
            "table": table.name(), "level": level, "segments": sum.segments, "rows": sum.rows, "bytes": sum.bytes,
            "min_time": sum.min_time, "max_time": sum.max_time,
        })
    };
    sums.into_iter().map(row).collect()
}

#[derive(Default)]
struct TableSums {
    segments: u64,
    rows: u64,
    bytes: u64,
    min_time: Option<i64>,
    max_time: Option<i64>,
}
