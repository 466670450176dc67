//! After a start, ids of what came lately are read back: senders that a crash cut off send it again.
//!
//! What came lately is told by the commit that brought it, at every level: late data is merged for good within a minute.

use std::cmp::Reverse;
use std::sync::Arc;

use arrow::array::RecordBatch;
use futures::StreamExt;
use tracing::warn;

use super::IngestOptions;
use super::seen::Seen;
use crate::catalog::now_nanos;
use crate::error::Result;
use crate::rows::retry_key;
use crate::segment::{ReadOptions, Segment};
use crate::table::Table;
use crate::{Lake, arrays};

/// Spans and profiles of the last `dedup_window` count as seen from here on, as many as are remembered.
pub(super) async fn recall(lake: &Lake, options: &IngestOptions, seen: &mut Seen) -> Result<()> {
    let window = i64::try_from(options.dedup_window.as_nanos()).unwrap_or(i64::MAX);
    let too_old = lake.catalog().last_version_before(now_nanos().saturating_sub(window)).await?;
    let snapshot = lake.catalog().snapshot();
    let recent = snapshot
        .all_segments()
        .filter(|segment| matches!(segment.table, Table::Spans | Table::Profiles) && segment.data_version > too_old);
    for (segment, rows) in choose(recent.cloned().collect(), options.dedup_entries as u64) {
        if let Err(error) = recall_rows(lake, &segment, rows, seen).await {
            // Old ids only serve to recognise retries; without them the store still takes new data.
            warn!(%error, "a recent segment could not be read; what is in it may count twice when it is sent again");
        }
    }
    Ok(())
}

/// How many rows to read of which segments, those whose rows came last at the end: what is remembered first is forgotten first.
///
/// A file that was merged with much that is older does not crowd out others: it comes after all that fit whole.
fn choose(mut recent: Vec<Arc<Segment>>, most_rows: u64) -> Vec<(Arc<Segment>, u64)> {
    recent.sort_unstable_by_key(|segment| Reverse((segment.data_version, segment.id)));
    let mut room = most_rows;
    let (mut chosen, mut large) = (Vec::new(), Vec::new());
    for segment in recent {
        if segment.rows <= room {
            room -= segment.rows;
            let rows = segment.rows;
            chosen.push((segment, rows));
        } else {
            large.push(segment);
        }
    }
    for segment in large {
        let rows = segment.rows.min(room);
        room -= rows;
        chosen.push((segment, rows));
    }
    chosen.retain(|(_, rows)| *rows > 0);
    chosen.reverse();
    chosen
}

async fn recall_rows(lake: &Lake, segment: &Arc<Segment>, rows: u64, seen: &mut Seen) -> Result<()> {
    let columns: &[&str] = match segment.table {
        Table::Spans => &["trace_id", "span_id"],
        _ => &["profile_id", "profile_type", "service"],
    };
    let mut batches = lake.reader().stream(segment, ReadOptions::columns(columns)).await?;
    let mut wanted = usize::try_from(rows).unwrap_or(usize::MAX);
    while wanted > 0
        && let Some(batch) = batches.next().await
    {
        let batch = batch?;
        let batch = batch.slice(0, batch.num_rows().min(wanted));
        wanted -= batch.num_rows();
        seen.expect(batch.num_rows());
        match segment.table {
            Table::Spans => insert_spans(segment.tenant.as_str(), &batch, seen)?,
            _ => insert_profiles(segment.tenant.as_str(), &batch, seen)?,
        }
    }
    Ok(())
}

fn insert_spans(tenant: &str, batch: &RecordBatch, seen: &mut Seen) -> Result<()> {
    let (traces, spans) = (arrays::ids(batch, "trace_id")?, arrays::ids(batch, "span_id")?);
    let key = seen.span_key(tenant);
    for row in 0..batch.num_rows() {
        seen.insert(key.span(&arrays::id_at(traces, row), &arrays::id_at(spans, row)));
    }
    Ok(())
}

fn insert_profiles(tenant: &str, batch: &RecordBatch, seen: &mut Seen) -> Result<()> {
    let ids = arrays::ids(batch, "profile_id")?;
    let (services, types) = (arrays::texts(batch, "service")?, arrays::texts(batch, "profile_type")?);
    let key = seen.profile_key(tenant);
    for row in 0..batch.num_rows() {
        seen.insert(key.profile(retry_key(ids.value(row), services.get(row), types.get(row))));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use hotspan_model::TenantId;

    use super::*;
    use crate::segment::Piece;

    /// A segment whose rows came with this version and before.
    fn segment(data_version: i64, rows: u64) -> Arc<Segment> {
        let piece = Piece {
            table: Table::Spans,
            level: 1,
            partition: Some(0),
            path: String::new(),
            range: 0..1,
            checksum: 0,
            rows,
            min_time: 0,
            max_time: 0,
            index: None,
            resident: None,
            resident_bytes: 0,
        };
        let (id, tenant) = (data_version, TenantId::anonymous());
        Arc::new(Segment { id, tenant, version: data_version, created_at: 0, data_version, piece })
    }

    fn chosen(segments: &[(i64, u64)], most_rows: u64) -> Vec<(i64, u64)> {
        let segments = segments.iter().map(|(version, rows)| segment(*version, *rows)).collect();
        choose(segments, most_rows).iter().map(|(segment, rows)| (segment.data_version, *rows)).collect()
    }

    /// Scenario: recent segments that fit, that are too many, and a large one that a late row was merged into.
    /// Guarantee: the latest come last; what does not fit comes before all others, with as many rows as there is room for.
    #[test]
    fn the_latest_rows_are_remembered_longest() {
        assert_eq!(chosen(&[(2, 30), (3, 10), (1, 5)], 100), [(1, 5), (2, 30), (3, 10)]);
        assert_eq!(chosen(&[(1, 30), (2, 30), (3, 30), (4, 30)], 90), [(2, 30), (3, 30), (4, 30)]);
        assert_eq!(chosen(&[(1, 40), (2, 40), (3, 1000)], 100), [(3, 20), (1, 40), (2, 40)]);
        assert_eq!(chosen(&[(1, 10)], 0), []);
    }
}
