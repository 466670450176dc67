//! Single spans of a long trace.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::pin::pin;
use std::sync::Arc;

use hashbrown::HashSet;
use hotspan_lake::compaction::{CompactionOptions, Compactor};
use hotspan_lake::rows::Rows;
use hotspan_lake::table::HOUR;
use hotspan_lake::{Ingest, IngestOptions, Lake};
use hotspan_model::{Resource, Scope, Span, SpanId, TenantId, TraceId, TraceSink as _};
use hotspan_query::Engine;

const START: i64 = 1_700_000_000_000_000_000;
const SPANS: u64 = 25_000;

fn span_id(number: u64) -> SpanId {
    SpanId((number + 1).to_be_bytes())
}

/// Scenario: details of three spans of a long trace are asked for, one of which is not in it, before and after compaction.
/// Guarantee: exactly those spans, and on the way there whoever does not want them any more can stop the work.
#[tokio::test]
async fn details_can_be_left() {
    let folder = tempfile::tempdir().unwrap();
    let lake = Lake::open(folder.path()).await.unwrap();
    let (ingest, _committer) = Ingest::start(Arc::clone(&lake), IngestOptions::default());
    let engine = Engine::new(Arc::clone(&lake));
    let (tenant, trace_id) = (TenantId::anonymous(), TraceId([7; 16]));
    let mut rows = Rows::default();
    rows.spans.resource(&Resource::default());
    rows.spans.scope(&Scope::default());
    for number in 0..SPANS {
        let start = START + number as i64;
        rows.spans.span(&Span { trace_id, span_id: span_id(number), start, end: start + 1, ..Span::default() });
    }
    ingest.submit(tenant.clone(), rows, ingest.try_reserve(1000).unwrap()).await.unwrap();
    let wanted: HashSet<SpanId> = [3, 20_000, SPANS + 5].map(span_id).into_iter().collect();
    for is_compacted in [false, true] {
        if is_compacted {
            let compactor = Compactor::new(Arc::clone(&lake), CompactionOptions::default());
            compactor.run_until_idle(hotspan_lake::catalog::now_nanos() + 1000 * HOUR).await.unwrap();
        }
        let mut details = pin!(engine.spans_of_trace(&tenant, trace_id, &wanted));
        assert!(futures::poll!(details.as_mut()).is_pending(), "the work stops between its parts");
        let mut found: Vec<i64> = details.await.unwrap().spans.iter().map(|span| span.start - START).collect();
        found.sort_unstable();
        assert_eq!(found, [3, 20_000]);
    }
}
