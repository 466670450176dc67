//! Flame graphs: the values of all samples that a question selects, merged by call path.
//!
//! Over time, most of the answer comes from rollups; raw samples are read where rollups can't answer exactly:
//! at the edges of the time range, for young segments that have no rollup yet, and when spans are asked for.

use std::sync::Arc;

use arrow::array::{Array, BooleanArray, RecordBatch};
use futures::TryStreamExt;
use hashbrown::{HashMap, HashSet};
use hotspan_lake::segment::id_index::IdKind;
use hotspan_lake::table::{HOUR, WINDOW_15S};
use hotspan_lake::{ReadOptions, Snapshot, Table, arrays};
use hotspan_model::flame::NodeText;
use hotspan_model::labels::PROFILE_TYPE;
use hotspan_model::{Exactness, FlameTree, ProfileType, SpanId, TenantId, TraceId};

use crate::Engine;
use crate::error::Result;
use crate::selector::{Matcher, Selector};
use crate::symbols::{PathEntry, Place, SymbolIndex};

/// Which samples a flame graph is made of.
#[derive(Debug, Clone)]
pub struct FlameQuery {
    /// What the values measure.
    pub profile_type: ProfileType,
    /// Labels that the series must have.
    pub selector: Selector,
    /// Start of the time, in nanoseconds since 1970.
    pub from: i64,
    /// End of the time, not included.
    pub until: i64,
    /// Only samples of these spans; empty means any.
    pub spans: Vec<SpanId>,
    /// Only samples of these traces; empty means any.
    pub traces: Vec<TraceId>,
    /// How many nodes to keep; 0 keeps all.
    pub max_nodes: usize,
}

/// A flame graph and what it rests on.
#[derive(Debug, Clone)]
pub struct FlameAnswer {
    /// The merged call paths.
    pub tree: FlameTree,
    /// What the numbers rest on.
    pub exactness: Exactness,
}

/// Values by call path.
#[derive(Debug, Default)]
struct PathValues {
    values: HashMap<u64, i64>,
    exactness: Exactness,
    spans: HashSet<[u8; 8]>,
}

impl PathValues {
    fn add(&mut self, path: u64, value: i64) {
        let sum = self.values.entry(path).or_default();
        *sum = sum.saturating_add(value);
    }
}

impl Engine {
    /// The flame graph of the samples that a question selects.
    pub async fn flame(&self, tenant: &TenantId, query: &FlameQuery) -> Result<FlameAnswer> {
        let snapshot = self.snapshot();
        let selector = query.selector.clone().and(Matcher::equal(PROFILE_TYPE, query.profile_type.to_string()));
        let series = self.series(tenant, &snapshot, &selector, query.from, query.until).await?;
        let series: Arc<Vec<u64>> = Arc::new(series.iter().map(|entry| entry.id.0).collect());
        let mut values = PathValues::default();
        if !series.is_empty() {
            if query.spans.is_empty() && query.traces.is_empty() {
                self.sum_range(tenant, &snapshot, query, &series, &mut values).await?;
            } else {
                self.sum_of_ids(tenant, &snapshot, query, &series, &mut values).await?;
            }
        }
        values.exactness.spans = values.spans.len() as u64;
        let memory = self.memory(tenant);
        let mut symbols = memory.symbols.lock().await;
        symbols.catch_up(self.lake(), &snapshot, tenant, query.from, query.until).await?;
        let tree = build_tree(&mut symbols, &mut values, query.max_nodes);
        drop(symbols);
        Ok(FlameAnswer { tree, exactness: values.exactness })
    }

    /// Sums over time: whole hours from hourly rollups, whole windows from 15 s rollups, the rest from samples.
    async fn sum_range(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        query: &FlameQuery,
        series: &Arc<Vec<u64>>,
        values: &mut PathValues,
    ) -> Result<()> {
        let windows = inner_range(query.from, query.until, WINDOW_15S);
        let hours = inner_range(windows.0, windows.1, HOUR);
        // Hourly rollups hold what 15 s rollups of level 2 and up hold; those of level 1 are read beside them.
        self.sum_rollups(tenant, snapshot, Table::Rollup1h, hours, 0, series, values).await?;
        self.sum_rollups_of_level(tenant, snapshot, hours, 1, series, values).await?;
        for edge in [(windows.0, hours.0), (hours.1, windows.1)] {
            self.sum_rollups(tenant, snapshot, Table::Rollup15s, edge, 0, series, values).await?;
        }
        for segment in snapshot.segments(tenant, Table::Samples).iter() {
            let ranges = if segment.level == 0 {
                vec![(query.from, query.until)]
            } else {
                vec![(query.from, windows.0), (windows.1, query.until)]
            };
            for (from, until) in ranges {
                if from >= until || !segment.overlaps(from, until) {
                    continue;
                }
                values.exactness.segments_read += 1;
                let wanted = Arc::clone(series);
                let options = ReadOptions::columns(&["path", "value"])
                    .within("time", from, until)
                    .near_keys("series", Arc::clone(series))
                    .matching(&["series"], move |batch| series_matches(batch, &wanted));
                let mut stream = self.lake().reader().stream(segment, options).await?;
                while let Some(batch) = stream.try_next().await? {
                    let paths = arrays::uint64s(&batch, "path")?.values();
                    let sums = arrays::int64s(&batch, "value")?.values();
                    values.exactness.samples += batch.num_rows() as u64;
                    for (path, value) in paths.iter().zip(sums) {
                        values.add(*path, *value);
                    }
                }
            }
        }
        Ok(())
    }

    async fn sum_rollups_of_level(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        range: (i64, i64),
        level: u8,
        series: &Arc<Vec<u64>>,
        values: &mut PathValues,
    ) -> Result<()> {
        self.sum_rollups(tenant, snapshot, Table::Rollup15s, range, level, series, values).await
    }

    /// Adds rollup rows of a time range; `level` 0 means every level.
    #[expect(clippy::too_many_arguments, reason = "the parts of one question")]
    async fn sum_rollups(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        table: Table,
        (from, until): (i64, i64),
        level: u8,
        series: &Arc<Vec<u64>>,
        values: &mut PathValues,
    ) -> Result<()> {
        if from >= until {
            return Ok(());
        }
        for segment in snapshot.segments(tenant, table).iter() {
            if (level != 0 && segment.level != level) || !segment.overlaps(from, until) {
                continue;
            }
            values.exactness.segments_read += 1;
            let wanted = Arc::clone(series);
            let options = ReadOptions::columns(&["path", "value", "count"])
                .within("time", from, until)
                .near_keys("series", Arc::clone(series))
                .matching(&["series"], move |batch| series_matches(batch, &wanted));
            let mut stream = self.lake().reader().stream(segment, options).await?;
            while let Some(batch) = stream.try_next().await? {
                let paths = arrays::uint64s(&batch, "path")?.values();
                let sums = arrays::int64s(&batch, "value")?.values();
                let counts = arrays::uint32s(&batch, "count")?.values();
                for row in 0..batch.num_rows() {
                    values.add(paths[row], sums[row]);
                    values.exactness.samples += u64::from(counts[row]);
                }
            }
        }
        Ok(())
    }

    /// Sums the samples of spans and traces, found through the id indexes.
    async fn sum_of_ids(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        query: &FlameQuery,
        series: &Arc<Vec<u64>>,
        values: &mut PathValues,
    ) -> Result<()> {
        let spans: HashSet<[u8; 8]> = query.spans.iter().map(|span| span.0).collect();
        let traces: HashSet<[u8; 16]> = query.traces.iter().map(|trace| trace.0).collect();
        let options = ReadOptions::columns(&["series", "time", "trace_id", "span_id", "path", "value"]);
        // Spans are the narrower key; traces then only filter.
        let keys: Vec<(IdKind, Vec<u8>)> = if spans.is_empty() {
            traces.iter().map(|id| (IdKind::Trace, id.to_vec())).collect()
        } else {
            spans.iter().map(|id| (IdKind::Span, id.to_vec())).collect()
        };
        for segment in snapshot.segments(tenant, Table::Samples).iter() {
            if !segment.overlaps(query.from, query.until) {
                values.exactness.segments_pruned += 1;
                continue;
            }
            values.exactness.segments_read += 1;
            for (kind, id) in &keys {
                for batch in self.lake().reader().rows_with_id(segment, *kind, id, &options).await? {
                    let series_ids = arrays::uint64s(&batch, "series")?.values();
                    let times = arrays::times(&batch, "time")?.values();
                    let trace_ids = arrays::ids(&batch, "trace_id")?;
                    let span_ids = arrays::ids(&batch, "span_id")?;
                    let paths = arrays::uint64s(&batch, "path")?.values();
                    let sums = arrays::int64s(&batch, "value")?.values();
                    for row in 0..batch.num_rows() {
                        let in_time = times[row] >= query.from && times[row] < query.until;
                        let in_trace = traces.is_empty()
                            || (trace_ids.is_valid(row) && traces.contains(&arrays::id_at::<16>(trace_ids, row)));
                        if !in_time || !in_trace || series.binary_search(&series_ids[row]).is_err() {
                            continue;
                        }
                        values.add(paths[row], sums[row]);
                        values.exactness.samples += 1;
                        values.exactness.linked_samples += 1;
                        if span_ids.is_valid(row) {
                            values.spans.insert(arrays::id_at::<8>(span_ids, row));
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

/// The whole windows inside a range; empty, at the range's start, if there is none.
fn inner_range(from: i64, until: i64, window: i64) -> (i64, i64) {
    let first = from.saturating_add(window - 1).div_euclid(window).saturating_mul(window);
    let last = until.div_euclid(window).saturating_mul(window);
    if first < last { (first, last) } else { (from, from) }
}

fn series_matches(batch: &RecordBatch, sorted: &[u64]) -> BooleanArray {
    match arrays::uint64s(batch, "series") {
        Ok(series) => {
            // Rows are sorted by series, so neighbours share the answer.
            let mut last = (0, sorted.binary_search(&0).is_ok());
            let fits = series.values().iter().map(|id| {
                if last.0 != *id {
                    last = (*id, sorted.binary_search(id).is_ok());
                }
                Some(last.1)
            });
            fits.collect()
        }
        Err(_) => std::iter::repeat_n(Some(false), batch.num_rows()).collect(),
    }
}

/// The pruned tree of functions with the values of the paths that were summed.
fn build_tree(symbols: &mut SymbolIndex, values: &mut PathValues, max_nodes: usize) -> FlameTree {
    let mut placed: Vec<(PathEntry, i64)> = Vec::with_capacity(values.values.len());
    let mut unresolved = 0i64;
    for (path, value) in &values.values {
        match symbols.path(*path) {
            Some(entry) => placed.push((entry, *value)),
            None => {
                unresolved += value;
                values.exactness.unresolved_paths += u64::from(*path != 0);
            }
        }
    }
    let mut self_values = vec![0i64; symbols.parents().len()];
    let mut hottest: HashMap<Place, (i64, u32)> = HashMap::new();
    for (entry, value) in placed {
        self_values[entry.place as usize] += value;
        let best = hottest.entry(entry.place).or_insert((i64::MIN, entry.frame));
        *best = (*best).max((value, entry.frame));
    }
    let symbols: &SymbolIndex = symbols;
    let (mut tree, pruned) = FlameTree::from_arrays(symbols.parents(), &self_values, max_nodes, |place| {
        let found = hottest.get(&(place as Place)).map(|(weight, frame)| (*weight, symbols.frame(*frame)));
        NodeText {
            name: symbols.function(place),
            file: found.map_or("", |(_, frame)| symbols.text(frame.file)),
            line: found.map_or(0, |(_, frame)| frame.line),
            line_weight: found.map_or(0, |(weight, _)| weight),
        }
    });
    if unresolved != 0 {
        let name = tree.intern("[unknown]");
        let index = tree.child(FlameTree::ROOT, name);
        tree.add_self(index, unresolved);
        tree.sum_totals();
    }
    values.exactness.pruned_nodes = pruned.nodes;
    values.exactness.pruned_value = pruned.value;
    tree
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: ranges with and without whole windows inside. Guarantee: the three parts make up the range.
    #[test]
    fn inner_ranges() {
        assert_eq!(inner_range(0, 60, 15), (0, 60));
        assert_eq!(inner_range(1, 59, 15), (15, 45));
        assert_eq!(inner_range(1, 14, 15), (1, 1));
        assert_eq!(inner_range(16, 29, 15), (16, 16));
        assert_eq!(inner_range(-16, 16, 15), (-15, 15));
    }
}
