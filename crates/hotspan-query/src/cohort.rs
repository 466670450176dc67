//! Cohorts: any TraceQL search selects spans, and the spans select the code that ran in them.

use std::str::FromStr;
use std::sync::Arc;

use arrow::array::RecordBatch;
use futures::{FutureExt, StreamExt, TryStreamExt};
use hashbrown::HashSet;
use hotspan_lake::{Lake, ReadOptions, Segment, Snapshot};
use hotspan_model::{Exactness, SpanId, TenantId, TraceId};
use hotspan_traceql::{Program, SpanSource, TraceSource, TraceView};

use crate::Engine;
use crate::error::{QueryError, Result};
use crate::outline::{SharedTexts, SpanOutline, by_trace, children_of, mark_descendants};
use crate::owners::{SampleOwners, SpanKey};
use crate::process::ProcessTime;
use crate::search::{
    BoundSpans, ProfileFields, ScanFilter, Slice, columns_of, gather, overlapping, reach_back, reach_on, slices,
};
use crate::side_by_side::{Job, side_by_side};

/// Whose samples count for a selected span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CohortScope {
    /// The span's own.
    #[default]
    Span,
    /// Its own and those of everything it called.
    Subtree,
    /// Those of its whole trace.
    Trace,
    /// Everything that its process did while it ran, for whomever.
    Process,
}

impl FromStr for CohortScope {
    type Err = QueryError;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "span" => Ok(Self::Span),
            "subtree" => Ok(Self::Subtree),
            "trace" => Ok(Self::Trace),
            "process" => Ok(Self::Process),
            other => {
                Err(QueryError::Invalid(format!("scope {other:?} is not known; use span, subtree, trace or process")))
            }
        }
    }
}

/// A span that a search selected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CohortSpan {
    /// Its trace.
    pub trace_id: TraceId,
    /// Its own id.
    pub span_id: SpanId,
    /// Start in nanoseconds since 1970.
    pub start: i64,
    /// Length in nanoseconds; negative when a clock jumped.
    pub duration: i64,
    /// The service it belongs to.
    pub service: Arc<str>,
    /// Operation name.
    pub name: Arc<str>,
}

/// The spans that a search selected, the latest first, each once.
#[derive(Debug, Clone, Default)]
pub struct Cohort {
    /// The spans.
    pub spans: Vec<CohortSpan>,
    /// How many spans the search matched; more than there are in `spans` if there were too many.
    pub matched: u64,
    /// What the search rests on.
    pub exactness: Exactness,
}

impl Cohort {
    /// A cohort of spans that are known already.
    pub fn of<'s>(spans: impl Iterator<Item = &'s SpanOutline>) -> Self {
        let spans: Vec<CohortSpan> = spans
            .map(|span| CohortSpan {
                trace_id: span.trace_id,
                span_id: span.span_id,
                start: span.start,
                duration: span.duration,
                service: Arc::clone(&span.service),
                name: Arc::clone(&span.name),
            })
            .collect();
        Self { matched: spans.len() as u64, spans, exactness: Exactness::default() }
    }

    /// Whether the earliest spans were left out because there were too many.
    pub fn is_cut(&self) -> bool {
        self.matched > self.spans.len() as u64
    }

    /// How long the spans took together.
    pub fn time(&self) -> i64 {
        self.spans.iter().map(|span| span.duration.max(0)).fold(0, i64::saturating_add)
    }

    /// The traces of the spans, each once, sorted.
    pub fn traces(&self) -> Vec<TraceId> {
        let mut traces: Vec<TraceId> = self.spans.iter().map(|span| span.trace_id).collect();
        traces.sort_unstable();
        traces.dedup();
        traces
    }

    /// From the first start to the last end.
    pub fn range(&self) -> (i64, i64) {
        let from = self.spans.iter().map(|span| span.start).min().unwrap_or(0);
        let until = self.spans.iter().map(|span| span.start.saturating_add(span.duration.max(0))).max();
        (from, until.unwrap_or(0).saturating_add(1))
    }
}

/// Spans that a cohort holds where nothing else is said: some hundred megabytes at most.
pub const MAX_COHORT_SPANS: usize = 1_000_000;
/// Traces whose shape is looked at in one go.
const TRACES_AT_ONCE: usize = 20_000;
/// Rows of a file that one job reads.
const JOB_ROWS: usize = 1 << 18;

impl Engine {
    /// The spans that match a search and start in `from..until`; the latest `limit` of them, if there are more.
    pub async fn cohort(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        program: &Program,
        (from, until): (i64, i64),
        limit: usize,
    ) -> Result<Cohort> {
        let search = program.search().ok_or_else(|| {
            QueryError::Invalid("a cohort is selected by a search, not by a metrics query".to_owned())
        })?;
        let shared = Arc::new(Selection {
            program: program.clone(),
            profiles: self.profile_fields(tenant, snapshot, program.fields(), (from, until)).await?,
        });
        let jobs = if search.span_filter().is_some() {
            self.span_jobs(overlapping(snapshot, tenant, from, until), &shared, (from, until))
        } else {
            let segments = Arc::new(overlapping(snapshot, tenant, reach_back(from), reach_on(until)));
            let job = |slice| {
                trace_job(Arc::clone(self.lake()), Arc::clone(&segments), Arc::clone(&shared), slice, (from, until))
            };
            slices(&segments).into_iter().map(job).collect()
        };
        let mut gathering = Gathering { spans: Vec::new(), seen: HashSet::new(), limit };
        side_by_side(jobs, &mut |spans| {
            gathering.add(spans);
            Ok(())
        })
        .await?;
        let mut cohort = gathering.finish();
        let profiles = shared.profiles.as_deref();
        cohort.exactness = self.exactness_of_search(tenant, (from, until), cohort.matched, profiles);
        Ok(cohort)
    }

    fn span_jobs(
        &self,
        segments: Vec<Arc<Segment>>,
        selection: &Arc<Selection>,
        (from, until): (i64, i64),
    ) -> Vec<Job<Vec<CohortSpan>>> {
        let program = &selection.program;
        let columns = columns_of(program.fields());
        let filter = program.search().and_then(|search| search.span_filter());
        let cheap = filter.map(|filter| ScanFilter::of(program.fields(), filter.condition())).unwrap_or_default();
        let tested = cheap.columns();
        let tested: Vec<&str> = tested.iter().map(String::as_str).collect();
        let cheap = Arc::new(cheap);
        let mut jobs: Vec<Job<Vec<CohortSpan>>> = Vec::new();
        for segment in segments {
            for first in (0..segment.rows as usize).step_by(JOB_ROWS) {
                let rows = first..(first + JOB_ROWS).min(segment.rows as usize);
                let options = ReadOptions::columns(&columns).within("start_time", from, until).rows(vec![rows]);
                // What a few columns can rule out need not be read whole.
                let options = if tested.is_empty() {
                    options
                } else {
                    let cheap = Arc::clone(&cheap);
                    options.matching(&tested, move |batch| cheap.matches(batch))
                };
                let (lake, selection, segment) = (Arc::clone(self.lake()), Arc::clone(selection), Arc::clone(&segment));
                let job = async move {
                    let batches = lake.reader().stream(&segment, options).await?.map_err(QueryError::from);
                    Ok(batches.map(move |batch| select_spans(batch?, &selection)).boxed())
                };
                jobs.push(job.boxed());
            }
        }
        jobs
    }

    /// Whose samples count for a cohort.
    pub async fn cohort_owners(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        cohort: &Cohort,
        scope: CohortScope,
    ) -> Result<SampleOwners> {
        let key = |trace_id, span_id| SpanKey { trace_id: Some(trace_id), span_id };
        match scope {
            CohortScope::Span => {
                Ok(SampleOwners::Spans(cohort.spans.iter().map(|span| key(span.trace_id, span.span_id)).collect()))
            }
            CohortScope::Trace => Ok(SampleOwners::Traces(cohort.traces())),
            CohortScope::Subtree => {
                let mut keys: Vec<SpanKey> = Vec::with_capacity(cohort.spans.len());
                let mut add = |trace: &[SpanOutline], mut selected: Vec<bool>| {
                    mark_descendants(&children_of(trace), &mut selected);
                    let below = trace.iter().zip(&selected).filter(|(_, selected)| **selected);
                    keys.extend(below.map(|(span, _)| key(span.trace_id, span.span_id)));
                };
                self.visit_cohort_traces(tenant, snapshot, cohort, &mut add).await?;
                Ok(SampleOwners::Spans(keys))
            }
            CohortScope::Process => {
                let mut spans: Vec<SpanOutline> = Vec::with_capacity(cohort.spans.len());
                let mut add = |trace: &[SpanOutline], selected: Vec<bool>| {
                    spans.extend(trace.iter().zip(selected).filter(|(_, is)| *is).map(|(span, _)| span.clone()));
                };
                self.visit_cohort_traces(tenant, snapshot, cohort, &mut add).await?;
                Ok(SampleOwners::Processes(ProcessTime::of_spans(spans.iter())))
            }
        }
    }

    /// Shows every trace of a cohort whole, with which of its spans were selected.
    pub(crate) async fn visit_cohort_traces(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        cohort: &Cohort,
        visit: &mut (dyn FnMut(&[SpanOutline], Vec<bool>) + Send + '_),
    ) -> Result<()> {
        let selected: HashSet<(TraceId, SpanId)> =
            cohort.spans.iter().map(|span| (span.trace_id, span.span_id)).collect();
        for traces in cohort.traces().chunks(TRACES_AT_ONCE) {
            let spans = self.outlines(tenant, snapshot, traces, cohort.range()).await?.answer;
            for trace in by_trace(&spans) {
                let is_selected = trace.iter().map(|span| selected.contains(&(span.trace_id, span.span_id)));
                visit(trace, is_selected.collect());
            }
        }
        Ok(())
    }
}

/// A search, with what profiles know if it asks for that.
struct Selection {
    program: Program,
    profiles: Option<Arc<ProfileFields>>,
}

/// The spans of a batch that match, each judged alone.
fn select_spans(batch: RecordBatch, selection: &Selection) -> Result<Vec<CohortSpan>> {
    let program = &selection.program;
    let Some(filter) = program.search().and_then(|search| search.span_filter()) else { return Ok(Vec::new()) };
    let spans = BoundSpans::bind(batch, program.fields())?.with_profiles(selection.profiles.as_ref());
    let mut matches = Vec::new();
    filter.select(&TraceView::of_batch(&spans), 0..spans.span_count(), &mut matches);
    let mut texts = SharedTexts::default();
    Ok(matches.into_iter().map(|span| cohort_span(&spans, span as usize, &mut texts)).collect())
}

/// The spans of a slice of traces that match, each trace judged whole.
fn trace_job(
    lake: Arc<Lake>,
    segments: Arc<Vec<Arc<Segment>>>,
    selection: Arc<Selection>,
    slice: Slice,
    (from, until): (i64, i64),
) -> Job<Vec<CohortSpan>> {
    let job = async move {
        let mut selected = Vec::new();
        let program = &selection.program;
        let Some(search) = program.search() else { return Ok(futures::stream::empty().boxed()) };
        if let Some(mut gathered) = gather(&lake, &segments, slice, program.fields()).await? {
            gathered.spans = gathered.spans.with_profiles(selection.profiles.as_ref());
            let mut texts = SharedTexts::default();
            for rows in std::mem::take(&mut gathered.traces) {
                gathered.spans.show(rows);
                let spans = &gathered.spans;
                if !program.prefilter().may_match(spans) {
                    continue;
                }
                let matched = search.evaluate(&program.view(spans)).into_iter().flat_map(|set| set.spans);
                let in_time = matched.filter(|span| (from..until).contains(&spans.start_nanos(*span as usize)));
                selected.extend(in_time.map(|span| cohort_span(spans, span as usize, &mut texts)));
            }
        }
        Ok(futures::stream::once(std::future::ready(Ok(selected))).boxed())
    };
    job.boxed()
}

fn cohort_span(spans: &BoundSpans, span: usize, texts: &mut SharedTexts) -> CohortSpan {
    CohortSpan {
        trace_id: spans.trace_id(span),
        span_id: spans.span_id(span),
        start: spans.start_nanos(span),
        duration: spans.duration_nanos(span),
        service: texts.share(spans.service_name(span)),
        name: texts.share(spans.name(span)),
    }
}

/// Keeps the latest spans, each once.
struct Gathering {
    spans: Vec<CohortSpan>,
    /// A span may match in several spansets, or be stored twice.
    seen: HashSet<(TraceId, SpanId)>,
    limit: usize,
}

impl Gathering {
    fn add(&mut self, spans: Vec<CohortSpan>) {
        self.spans.extend(spans.into_iter().filter(|span| self.seen.insert((span.trace_id, span.span_id))));
        if self.spans.len() > 2 * self.limit.max(1 << 16) {
            self.keep_latest();
        }
    }

    fn keep_latest(&mut self) {
        self.spans.sort_unstable_by_key(|span| (std::cmp::Reverse(span.start), span.trace_id, span.span_id));
        self.spans.truncate(self.limit);
    }

    fn finish(mut self) -> Cohort {
        self.keep_latest();
        let matched = self.seen.len() as u64;
        Cohort { spans: self.spans, matched, exactness: Exactness::default() }
    }
}
