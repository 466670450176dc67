//! Flame graphs: the values of all samples that a question selects, merged by call path.
//!
//! Over time, most of the answer comes from rollups; raw samples are read where rollups can't answer exactly:
//! at the edges of the time range, for young segments that have no rollup yet, and when spans are asked for.

use std::sync::Arc;

use arrow::array::RecordBatch;
use hashbrown::{HashMap, HashSet};
use hotspan_lake::{Snapshot, arrays};
use hotspan_model::flame::NodeText;
use hotspan_model::labels::PROFILE_TYPE;
use hotspan_model::{Exactness, FlameTree, FrameKind, ProfileId, ProfileType, SpanId, TenantId, TraceId};

use crate::Engine;
use crate::error::Result;
use crate::linked::{LinkedQuery, LinkedSample};
use crate::owners::{SampleOwners, SpanKey};
use crate::scan::{Grain, Scan, sample_count};
use crate::selector::{Matcher, Selector};
use crate::symbols::{PathEntry, Place, SymbolIndex};

/// Which samples a flame graph is made of.
#[derive(Debug, Clone, Default)]
pub struct FlameQuery {
    /// What the values measure.
    pub profile_type: ProfileType,
    /// Whether profiles of the same measure count that were triggered by something else: what short names mean.
    pub any_period: bool,
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
    /// Only samples of these; if given, `spans` and `traces` say nothing.
    pub owners: Option<SampleOwners>,
    /// Only samples of these profiles; empty means any.
    pub profiles: Vec<ProfileId>,
    /// Only stacks that start with these functions, the root first; empty means any.
    pub call_site: Vec<String>,
    /// How many nodes to keep; 0 keeps all.
    pub max_nodes: usize,
}

impl FlameQuery {
    /// The same question, sample by sample.
    pub(crate) fn linked(&self, owners: SampleOwners) -> LinkedQuery {
        LinkedQuery {
            owners,
            // The selector says the type as well, or the types that a short name stands for.
            profile_types: Vec::new(),
            selector: self.typed_selector(),
            from: self.from,
            until: self.until,
            profiles: self.profiles.clone(),
            with_threads: false,
        }
    }

    /// Whose samples are asked for; none if anybody's are.
    pub(crate) fn sample_owners(&self) -> Option<SampleOwners> {
        if let Some(owners) = &self.owners {
            return Some(owners.clone());
        }
        let key = |span: &SpanId, trace_id| SpanKey { trace_id, span_id: *span };
        match (self.spans.as_slice(), self.traces.as_slice()) {
            ([], []) => None,
            ([], traces) => Some(SampleOwners::Traces(traces.to_vec())),
            (spans, []) => Some(SampleOwners::Spans(spans.iter().map(|span| key(span, None)).collect())),
            (spans, traces) => {
                let keys = spans.iter().flat_map(|span| traces.iter().map(move |trace| key(span, Some(*trace))));
                Some(SampleOwners::Spans(keys.collect()))
            }
        }
    }

    /// The selector of the series: labels and profile type.
    pub(crate) fn typed_selector(&self) -> Selector {
        let matcher = match self.any_period {
            true => Matcher::starts_with(PROFILE_TYPE, self.profile_type.measured()),
            false => Matcher::equal(PROFILE_TYPE, self.profile_type.to_string()),
        };
        self.selector.clone().and(matcher)
    }
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
pub(crate) struct PathValues {
    pub(crate) values: HashMap<u64, i64>,
    pub(crate) exactness: Exactness,
}

impl PathValues {
    fn add(&mut self, path: u64, value: i64) {
        let sum = self.values.entry(path).or_default();
        *sum = sum.saturating_add(value);
    }

    /// Leaves out the paths that do not start with these functions.
    pub(crate) fn keep_call_site(&mut self, symbols: &mut SymbolIndex, call_site: &[String]) {
        if call_site.is_empty() {
            return;
        }
        self.values.retain(|path, _| symbols.starts_with(*path, call_site));
    }
}

impl Engine {
    /// The flame graph of the samples that a question selects.
    pub async fn flame(&self, tenant: &TenantId, query: &FlameQuery) -> Result<FlameAnswer> {
        let snapshot = self.snapshot();
        let mut values = self.path_values(tenant, &snapshot, query).await?;
        let memory = self.memory(tenant);
        let mut symbols = memory.symbols.lock().await;
        symbols.catch_up(self.lake(), &snapshot, tenant, query.from, query.until).await?;
        values.keep_call_site(&mut symbols, &query.call_site);
        let tree = build_tree(&mut symbols, &mut values, query.max_nodes);
        drop(symbols);
        Ok(FlameAnswer { tree, exactness: values.exactness })
    }

    /// The ids of the series that a question is about, sorted.
    pub(crate) async fn series_ids(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        query: &FlameQuery,
    ) -> Result<Arc<Vec<u64>>> {
        let series = self.series(tenant, snapshot, &query.typed_selector(), query.from, query.until).await?;
        Ok(Arc::new(series.iter().map(|entry| entry.id.0).collect()))
    }

    /// The sums of the samples that a question selects, by call path.
    pub(crate) async fn path_values(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        query: &FlameQuery,
    ) -> Result<PathValues> {
        let mut values = PathValues::default();
        match query.sample_owners() {
            Some(owners) => self.sum_of_owners(tenant, snapshot, query, owners, &mut values).await?,
            None => {
                let series = self.series_ids(tenant, snapshot, query).await?;
                if !series.is_empty() {
                    self.sum_range(tenant, snapshot, query, &series, &mut values).await?;
                }
            }
        }
        Ok(values)
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
        let profiles: HashSet<[u8; 16]> = query.profiles.iter().map(|profile| profile.0).collect();
        let (grain, columns): (Grain, &[&str]) = if profiles.is_empty() {
            (Grain::Hour, &["path", "value"])
        } else {
            (Grain::Sample, &["path", "value", "profile_id"])
        };
        let scan = Scan { range: (query.from, query.until), series, grain, columns };
        let mut each = |batch: &RecordBatch| {
            let paths = arrays::uint64s(batch, "path")?.values();
            let sums = arrays::int64s(batch, "value")?.values();
            if profiles.is_empty() {
                values.exactness.samples += sample_count(batch);
                for (path, value) in paths.iter().zip(sums) {
                    values.add(*path, *value);
                }
                return Ok(());
            }
            let ids = arrays::ids(batch, "profile_id")?;
            for row in (0..batch.num_rows()).filter(|row| profiles.contains(&arrays::id_at::<16>(ids, *row))) {
                values.exactness.samples += 1;
                values.add(paths[row], sums[row]);
            }
            Ok(())
        };
        let segments_read = self.scan(tenant, snapshot, &scan, &mut each).await?;
        values.exactness.segments_read += segments_read;
        Ok(())
    }

    /// Sums the samples of spans and traces.
    async fn sum_of_owners(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        query: &FlameQuery,
        owners: SampleOwners,
        values: &mut PathValues,
    ) -> Result<()> {
        let linked = query.linked(owners);
        let mut add = |sample: &LinkedSample| {
            values.add(sample.path, sample.value);
            Ok(())
        };
        let tables = self.visit_linked_samples(tenant, snapshot, &linked, &mut add).await?;
        values.exactness.merge(&tables.exactness);
        Ok(())
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
        let found = hottest.get(&(place as Place)).and_then(|(weight, frame)| Some((*weight, symbols.frame(*frame)?)));
        // A caller that no sample was taken in still stands somewhere: at the line that its first callee was called from.
        let found = found.or_else(|| Some((0, symbols.first_frame(place)?)));
        NodeText {
            name: symbols.function(place),
            file: found.map_or("", |(_, frame)| symbols.text(frame.file)),
            line: found.map_or(0, |(_, frame)| frame.line),
            line_weight: found.map_or(0, |(weight, _)| weight),
            kind: found.map_or(FrameKind::Unknown, |(_, frame)| frame.kind),
            module: found.map_or("", |(_, frame)| symbols.text(frame.module)),
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
