//! How sure a link must be to count, and what that makes of a cohort.

use std::str::FromStr;
use std::sync::Arc;

use arrow::array::RecordBatch;
use hashbrown::{HashMap, HashSet};
use hotspan_lake::compaction::attributes::ATTRIBUTE_PREFIX;
use hotspan_lake::{IdSet, ReadOptions, Snapshot, Table, arrays};
use hotspan_model::selector::Selector;
use hotspan_model::{Exactness, SpanId, TenantId, TraceId};
use hotspan_traceql::FieldValue;

use crate::Engine;
use crate::cohort::{Cohort, CohortScope};
use crate::error::{QueryError, Result};
use crate::inferred::ThreadTimes;
use crate::inherited::{Inheritance, SpanThreads, local_roots};
use crate::linked::{LinkedQuery, LinkedSample, SampleThread};
use crate::outline::{SpanOutline, by_trace, children_of};
use crate::owners::{SampleOwners, SpanKey};
use crate::search::{SpanAttribute, reach_back, reach_on};
use crate::side_by_side::side_by_side;

/// Which links count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum LinkPolicy {
    /// Samples that name the span.
    Exact,
    /// Besides, samples that name its local root and were taken while it ran.
    #[default]
    Inherited,
    /// Besides, samples that name nothing and were taken on its thread while it ran.
    Inferred,
}

impl FromStr for LinkPolicy {
    type Err = QueryError;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "exact" => Ok(Self::Exact),
            "inherited" => Ok(Self::Inherited),
            "inferred" => Ok(Self::Inferred),
            other => {
                Err(QueryError::Invalid(format!("links {other:?} is not known; use exact, inherited or inferred")))
            }
        }
    }
}

/// Traces that are looked at to find out how a service labels its samples.
const SURVEYED_TRACES: usize = 200;
/// A profile may be dated long before or after the spans that it holds samples of.
const REACH: i64 = 3600 * 1_000_000_000;

impl Engine {
    /// Whose samples count for a cohort, with links that are as sure as the policy asks.
    pub async fn cohort_owners_with(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        cohort: &Cohort,
        scope: CohortScope,
        policy: LinkPolicy,
    ) -> Result<SampleOwners> {
        let owners = self.cohort_owners(tenant, snapshot, cohort, scope).await?;
        let SampleOwners::Spans(keys) = &owners else { return Ok(owners) };
        if policy == LinkPolicy::Exact || keys.is_empty() {
            return Ok(owners);
        }
        let range = cohort.range();
        let mut latest: Vec<TraceId> =
            cohort.spans.iter().take(4 * SURVEYED_TRACES).map(|span| span.trace_id).collect();
        latest.dedup();
        latest.truncate(SURVEYED_TRACES);
        let surveyed = self.outlines(tenant, snapshot, &latest, range).await?.answer;
        let services = self.services_that_label_roots(tenant, snapshot, &surveyed, range).await?;
        if services.is_empty() && policy == LinkPolicy::Inherited {
            return Ok(owners);
        }
        let spans = self.outlines(tenant, snapshot, &cohort.traces(), range).await?.answer;
        self.heirs(tenant, snapshot, keys, &spans, &services, range, policy).await
    }

    /// Whose samples count for spans of traces that have been read already, all of them whole.
    pub async fn owners_in_traces(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        keys: Vec<SpanKey>,
        spans: &[SpanOutline],
        range: (i64, i64),
        policy: LinkPolicy,
    ) -> Result<SampleOwners> {
        if policy == LinkPolicy::Exact || keys.is_empty() {
            return Ok(SampleOwners::Spans(keys));
        }
        let surveyed: usize = by_trace(spans).take(SURVEYED_TRACES).map(<[SpanOutline]>::len).sum();
        let services = self.services_that_label_roots(tenant, snapshot, &spans[..surveyed], range).await?;
        if services.is_empty() && policy == LinkPolicy::Inherited {
            return Ok(SampleOwners::Spans(keys));
        }
        self.heirs(tenant, snapshot, &keys, spans, &services, range, policy).await
    }

    /// The owners of samples that do not name their span themselves.
    #[expect(clippy::too_many_arguments, reason = "all of it is what the two ways in have found out")]
    async fn heirs(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        keys: &[SpanKey],
        spans: &[SpanOutline],
        services: &HashSet<String>,
        range: (i64, i64),
        policy: LinkPolicy,
    ) -> Result<SampleOwners> {
        let traces: Vec<TraceId> = by_trace(spans).filter_map(|trace| Some(trace.first()?.trace_id)).collect();
        let mut threads = self.span_threads(tenant, snapshot, &traces, range).await?;
        let mut inheritance = Inheritance::default();
        for key in keys {
            if let Some(trace_id) = key.trace_id {
                inheritance.select(trace_id, key.span_id);
            }
        }
        for trace in by_trace(spans) {
            inheritance.add_trees(trace, services, &threads);
        }
        let heirs = SampleOwners::Heirs(Arc::new(inheritance));
        if policy == LinkPolicy::Inherited {
            return Ok(heirs);
        }
        self.learn_threads(tenant, snapshot, spans, range, &mut threads).await?;
        let selected = keys.iter().filter_map(|key| Some((key.trace_id?, key.span_id))).collect();
        let mut times = ThreadTimes::of(selected);
        for span in spans {
            if let Some(thread) = threads.get(&(span.trace_id, span.span_id)) {
                times.add(span, thread.clone());
            }
        }
        Ok(SampleOwners::Several(vec![heirs, SampleOwners::Threads(Arc::new(times.finish()))]))
    }

    /// The services in these traces whose samples name local roots and never a span below one: their profilers know no
    /// better.
    async fn services_that_label_roots(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        spans: &[SpanOutline],
        range: (i64, i64),
    ) -> Result<HashSet<String>> {
        let mut named: HashSet<(TraceId, SpanId)> = HashSet::new();
        self.visit_samples_of(tenant, snapshot, spans, range, &mut |sample| {
            named.extend(sample.trace_id.zip(sample.span_id));
            Ok(())
        })
        .await?;
        let mut roots: HashSet<&str> = HashSet::new();
        let mut others: HashSet<&str> = HashSet::new();
        for trace in by_trace(spans) {
            let children = children_of(trace);
            let is_root: HashSet<usize> = local_roots(trace, &children).into_iter().collect();
            for (at, span) in
                trace.iter().enumerate().filter(|(_, span)| named.contains(&(span.trace_id, span.span_id)))
            {
                if !is_root.contains(&at) {
                    others.insert(&span.service);
                } else if children[at].iter().any(|child| trace[*child].service == span.service) {
                    roots.insert(&span.service);
                }
            }
        }
        Ok(roots.difference(&others).map(|service| (*service).to_owned()).collect())
    }

    /// Notes on which thread spans ran, where their samples tell and they do not.
    async fn learn_threads(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        spans: &[SpanOutline],
        range: (i64, i64),
        threads: &mut SpanThreads,
    ) -> Result<()> {
        // A span that ran on several threads tells nothing.
        let mut seen: HashMap<(TraceId, SpanId), Option<u32>> = HashMap::new();
        let tables = self
            .visit_samples_of(tenant, snapshot, spans, range, &mut |sample| {
                if let (Some(trace), Some(span)) = (sample.trace_id, sample.span_id)
                    && sample.thread > 0
                {
                    let thread = seen.entry((trace, span)).or_insert(Some(sample.thread));
                    *thread = thread.filter(|thread| *thread == sample.thread);
                }
                Ok(())
            })
            .await?;
        for (span, thread) in seen {
            if let Some(thread) = thread.and_then(|thread| tables.threads.get(thread as usize)) {
                threads.entry(span).or_insert_with(|| thread.clone());
            }
        }
        Ok(())
    }

    async fn visit_samples_of(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        spans: &[SpanOutline],
        (from, until): (i64, i64),
        visit: &mut (dyn FnMut(&LinkedSample) -> Result<()> + Send + '_),
    ) -> Result<crate::linked::LinkedTables> {
        let key = |span: &SpanOutline| SpanKey { trace_id: Some(span.trace_id), span_id: span.span_id };
        let query = LinkedQuery {
            owners: SampleOwners::Spans(spans.iter().map(key).collect()),
            selector: Selector::default(),
            from: from.saturating_sub(REACH),
            until: until.saturating_add(REACH),
            profiles: Vec::new(),
            with_threads: true,
        };
        self.visit_linked_samples(tenant, snapshot, &query, visit).await
    }

    /// The thread of each span of these traces that has the attributes `thread.id` or `thread.name`.
    async fn span_threads(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        traces: &[TraceId],
        (from, until): (i64, i64),
    ) -> Result<SpanThreads> {
        let ids = Arc::new(IdSet::traces(traces.iter().copied()));
        let own = ["thread.id", "thread.name"].map(|key| format!("{ATTRIBUTE_PREFIX}{key}"));
        let columns = ["trace_id", "span_id", "attributes", "attributes_json", &own[0], &own[1]];
        let options = ReadOptions::columns(&columns);
        let range = (reach_back(from), reach_on(until));
        let mut exactness = Exactness::default();
        let jobs = self.id_jobs(tenant, snapshot, Table::Spans, &ids, range, &options, &mut exactness).await?;
        let mut threads = SpanThreads::new();
        side_by_side(jobs, &mut |batch| read_threads(&batch, &mut threads)).await?;
        Ok(threads)
    }
}

fn read_threads(batch: &RecordBatch, threads: &mut SpanThreads) -> Result<()> {
    let (trace_ids, span_ids) = (arrays::ids(batch, "trace_id")?, arrays::ids(batch, "span_id")?);
    let (numbers, names) = (SpanAttribute::of(batch, "thread.id"), SpanAttribute::of(batch, "thread.name"));
    for row in 0..batch.num_rows() {
        let id = match numbers.get(row) {
            FieldValue::Int(id) => Some(id),
            _ => None,
        };
        let name = match names.get(row) {
            FieldValue::Str(name) => name,
            _ => "",
        };
        if id.is_some() || !name.is_empty() {
            let span = (TraceId(arrays::id_at(trace_ids, row)), SpanId(arrays::id_at(span_ids, row)));
            threads.insert(span, SampleThread { id, name: Arc::from(name) });
        }
    }
    Ok(())
}
