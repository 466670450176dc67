//! Flame graphs: the values of all samples that a question selects, merged by call path.
//!
//! Over time, most of the answer comes from rollups; raw samples are read where rollups can't answer exactly:
//! at the edges of the time range, for young segments that have no rollup yet, and when spans are asked for.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use hotspan_lake::{Snapshot, arrays};
use hotspan_model::labels::PROFILE_TYPE;
use hotspan_model::selector::{Matcher, Selector};
use hotspan_model::{Coverage, CoverageOf, Exactness, FlameTree, ProfileId, ProfileType, SpanId, TenantId, TraceId};

use crate::Engine;
use crate::error::Result;
use crate::function_tree::build_tree;
use crate::linked::{LinkedQuery, LinkedSample};
use crate::owners::{SampleOwners, SpanKey};
use crate::path_sums::PathSums;
use crate::scan::{Grain, Scan, ScannedRows};
use crate::series::SeriesEntry;
use crate::stack_filter::StackFilter;
use crate::symbols::services_of;

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
    /// Nanoseconds that the spans asked about took together, where the asker knows: what coverage is a share of.
    pub owners_time: Option<i64>,
    /// Only samples of these profiles; empty means any.
    pub profiles: Vec<ProfileId>,
    /// Only these stacks.
    pub stacks: StackFilter,
    /// How many nodes to keep; 0 keeps all.
    pub max_nodes: usize,
}

impl FlameQuery {
    /// The same question, sample by sample.
    pub(crate) fn linked(&self, owners: SampleOwners) -> LinkedQuery {
        LinkedQuery {
            owners,
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
    pub fn typed_selector(&self) -> Selector {
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

impl FlameAnswer {
    /// The same answer with the largest nodes alone, which it then says; 0 keeps all.
    #[must_use]
    pub fn pruned(&self, max_nodes: usize) -> Self {
        let (tree, pruned) = self.tree.pruned(max_nodes);
        let exactness = Exactness { pruned_nodes: pruned.nodes, pruned_value: pruned.value, ..self.exactness };
        Self { tree, exactness }
    }
}

impl Engine {
    /// The flame graph of the samples that a question selects.
    pub async fn flame(&self, tenant: &TenantId, query: &FlameQuery) -> Result<FlameAnswer> {
        let snapshot = self.snapshot();
        let mut sums = self.path_sums(tenant, &snapshot, query).await?;
        let tree = build_tree(&mut sums, query.max_nodes);
        Ok(FlameAnswer { tree, exactness: sums.exactness })
    }

    /// The ids of the series that a question is about, sorted.
    pub(crate) async fn series_ids(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        query: &FlameQuery,
    ) -> Result<Arc<Vec<u64>>> {
        let series = self.fitting_series(tenant, snapshot, &query.typed_selector(), query.from, query.until).await?;
        Ok(Arc::new(series.iter().map(|entry| entry.id.0).collect()))
    }

    /// The sums of the samples that a question selects, by call path.
    pub(crate) async fn path_sums(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        query: &FlameQuery,
    ) -> Result<PathSums> {
        let mut sums = match query.sample_owners() {
            Some(owners) => self.sum_of_owners(tenant, snapshot, query, owners).await?,
            None => self.sum_range(tenant, snapshot, query).await?,
        };
        sums.keep_stacks(&query.stacks);
        Ok(sums)
    }

    /// Sums over time: whole hours from hourly rollups, whole windows from 15 s rollups, the rest from samples.
    async fn sum_range(&self, tenant: &TenantId, snapshot: &Snapshot, query: &FlameQuery) -> Result<PathSums> {
        let range = (query.from, query.until);
        let entries = self.fitting_series(tenant, snapshot, &query.typed_selector(), query.from, query.until).await?;
        let mut sums = PathSums::new(self.symbols(tenant, snapshot, &services_of(&entries), range).await?);
        let series: Arc<Vec<u64>> = Arc::new(entries.iter().map(|entry| entry.id.0).collect());
        // Symbols were asked for by the services of these very series.
        let service_of = |entry: &SeriesEntry| sums.symbols.number_of(entry.labels.service_id()).unwrap_or_default();
        let services: Vec<usize> = entries.iter().map(service_of).collect();
        let profiles: HashSet<[u8; 16]> = query.profiles.iter().map(|profile| profile.0).collect();
        let (grain, columns): (Grain, &[&str]) = if profiles.is_empty() {
            (Grain::Hour, &["path", "value"])
        } else {
            (Grain::Sample, &["path", "value", "profile_id"])
        };
        let scan = Scan { range, series: &series, grain, columns };
        let mut samples_of_profiles = 0;
        let mut each = |rows: &ScannedRows<'_>| {
            let paths = arrays::uint64s(rows.batch, "path")?.values();
            let values = arrays::int64s(rows.batch, "value")?.values();
            if profiles.is_empty() {
                for (number, run) in &rows.runs {
                    sums.add_rows(services[*number], &paths[run.clone()], &values[run.clone()]);
                }
                return Ok(());
            }
            let ids = arrays::ids(rows.batch, "profile_id")?;
            for (number, run) in &rows.runs {
                for row in run.clone().filter(|row| profiles.contains(&arrays::id_at::<16>(ids, *row))) {
                    samples_of_profiles += 1;
                    sums.add_rows(services[*number], &paths[row..=row], &values[row..=row]);
                }
            }
            Ok(())
        };
        sums.exactness = self.scan(tenant, snapshot, &scan, &mut each).await?;
        if !profiles.is_empty() {
            // Whoever names profiles does not ask about a time.
            sums.exactness = Exactness { samples: samples_of_profiles, coverage: None, ..sums.exactness };
        }
        Ok(sums)
    }

    /// Sums the samples of spans and traces.
    async fn sum_of_owners(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        query: &FlameQuery,
        owners: SampleOwners,
    ) -> Result<PathSums> {
        let linked = query.linked(owners);
        let mut values: HashMap<u64, i64> = HashMap::new();
        let mut series: HashSet<u32> = HashSet::new();
        // Symbols are kept by day: those of other days than the samples' need not be read, however long the time asked for.
        let (mut first, mut last) = (i64::MAX, i64::MIN);
        let mut add = |sample: &LinkedSample| {
            (first, last) = (first.min(sample.time), last.max(sample.time));
            let sum = values.entry(sample.path).or_default();
            *sum = sum.saturating_add(sample.value);
            series.insert(sample.series);
            Ok(())
        };
        let tables = self.visit_linked_samples(tenant, snapshot, &linked, &mut add).await?;
        let total = values.values().fold(0i64, |sum, value| sum.saturating_add(*value));
        let services = services_of(series.iter().filter_map(|number| tables.series.get(*number as usize)));
        let paths: Vec<u64> = values.keys().copied().collect();
        let range = (first, last.saturating_add(1));
        let mut sums = PathSums::new(self.symbols_of_paths(tenant, snapshot, &services, range, &paths).await?);
        for (path, value) in values {
            sums.add(path, value);
        }
        sums.exactness = tables.exactness;
        if query.profile_type.is_time()
            && let Some(time) = query.owners_time.or(tables.traces_time)
        {
            sums.exactness.coverage = Coverage::new(CoverageOf::Spans, total, time);
        }
        Ok(sums)
    }
}
