//! What the first questions after a start would have to read before they can be answered: footers and id indexes,
//! label sets, the columns that most searches compare, symbols. Of the last day that has data, the latest first, in small
//! parts, into the caches that questions use and bound.

use std::collections::VecDeque;
use std::sync::Arc;

use hotspan_lake::segment::Chunk;
use hotspan_lake::table::DAY;
use hotspan_lake::{Segment, Snapshot, Table};
use hotspan_model::TenantId;
use hotspan_model::selector::Selector;

use crate::Engine;
use crate::error::Result;
use crate::symbols::services_of;

/// Columns that searches compare most.
const COMPARED: [&str; 7] = ["start_time", "duration", "service", "name", "status", "kind", "trace_id"];
/// No symbols are read ahead beyond this memory, and no columns beyond half of their cache: the rest is for what is asked.
const SYMBOL_BYTES: usize = 128 << 20;

/// Reading ahead, under way.
#[derive(Debug)]
pub struct WarmUp {
    engine: Engine,
    snapshot: Arc<Snapshot>,
    parts: VecDeque<Part>,
}

#[derive(Debug)]
enum Part {
    File(Arc<Segment>),
    Labels(TenantId, (i64, i64)),
    Columns(Arc<Segment>),
    Column(Chunk, &'static str),
    Symbols(TenantId, u64, (i64, i64)),
}

impl Engine {
    /// Begins to read ahead, for the tenants with the latest data first. Nothing is read yet.
    pub fn warm_up(&self) -> WarmUp {
        let snapshot = self.snapshot();
        let last_time = |tenant: &TenantId| {
            let tables = [Table::Spans, Table::Samples, Table::Rollup15s, Table::Rollup1h];
            tables.iter().filter_map(|table| Some(snapshot.time_range(tenant, *table)?.1)).max()
        };
        let mut tenants: Vec<(i64, TenantId)> =
            snapshot.tenants().into_iter().filter_map(|tenant| Some((last_time(&tenant)?, tenant))).collect();
        tenants.sort_unstable_by(|left, right| right.cmp(left));
        let mut parts = VecDeque::new();
        for (last, tenant) in tenants {
            let range = (last.saturating_sub(DAY), last.saturating_add(1));
            let of_table = |table| latest(&snapshot, &tenant, table, range);
            // What any question needs comes before what only some do.
            let tables = [Table::Spans, Table::Samples, Table::Nodes, Table::Frames, Table::Rollup1h, Table::Rollup15s];
            parts.extend(tables.into_iter().flat_map(of_table).map(Part::File));
            parts.push_back(Part::Labels(tenant.clone(), range));
            parts.extend(of_table(Table::Spans).into_iter().map(Part::Columns));
        }
        WarmUp { engine: self.clone(), snapshot, parts }
    }
}

/// The segments of a table that are about a time, the latest first.
fn latest(snapshot: &Snapshot, tenant: &TenantId, table: Table, (from, until): (i64, i64)) -> Vec<Arc<Segment>> {
    let segments = snapshot.segments(tenant, table);
    let mut found: Vec<Arc<Segment>> =
        segments.iter().filter(|segment| segment.overlaps(from, until)).map(Arc::clone).collect();
    found.sort_by_key(|segment| std::cmp::Reverse(segment.max_time));
    found
}

impl WarmUp {
    /// Whether what comes next is of use to nearly any question, and takes next to no time.
    pub fn is_basic(&self) -> bool {
        matches!(self.parts.front(), Some(Part::File(_) | Part::Labels(..)))
    }

    /// Reads a little more, which takes some milliseconds; false when there is nothing left.
    pub async fn next_part(&mut self) -> Result<bool> {
        let Some(part) = self.parts.pop_front() else { return Ok(false) };
        let reader = self.engine.lake().reader();
        match part {
            Part::File(segment) => reader.open(&segment).await?,
            Part::Labels(tenant, range) => {
                let selector = Selector::default();
                let series = self.engine.fitting_series(&tenant, &self.snapshot, &selector, range.0, range.1).await?;
                let services = services_of(&series).into_iter();
                self.parts.extend(services.map(|service| Part::Symbols(tenant.clone(), service, range)));
            }
            Part::Columns(segment) => {
                let chunks = reader.chunks(&segment).await?;
                let columns = chunks.iter().flat_map(|chunk| COMPARED.map(|name| Part::Column(chunk.clone(), name)));
                for column in columns.collect::<Vec<_>>().into_iter().rev() {
                    self.parts.push_front(column);
                }
            }
            Part::Column(chunk, name) => {
                if reader.cached_column_bytes() < reader.column_cache_bytes() / 2 {
                    drop(reader.columns(&chunk, &[name]).await?);
                }
            }
            Part::Symbols(tenant, service, range) => {
                if self.engine.symbol_bytes() < SYMBOL_BYTES {
                    drop(self.engine.symbols(&tenant, &self.snapshot, &[service], range).await?);
                }
            }
        }
        Ok(true)
    }
}
