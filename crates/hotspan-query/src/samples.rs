//! The samples of spans and traces, one by one, with their stacks.

use arrow::array::{Array, FixedSizeBinaryArray, RecordBatch};
use hashbrown::{HashMap, HashSet};
use hotspan_lake::segment::id_index::IdKind;
use hotspan_lake::{ReadOptions, Snapshot, Table, arrays};
use hotspan_model::{Exactness, Labels, ProfileId, ProfileType, SpanId, TenantId, TraceId};
use std::sync::Arc;

use crate::Engine;
use crate::error::Result;
use crate::flame::FlameQuery;
use crate::outline::SpanOutline;
use crate::owners::{NamedOwner, OwnerFilter, SampleOwners, SpanKey};
use crate::side_by_side::side_by_side;
use crate::symbols::{PathNode, Symbols};
use crate::uploads::UploadedSample;

/// One sample.
#[derive(Debug, Clone)]
pub struct SampleRow {
    /// When.
    pub time: i64,
    /// What was measured.
    pub value: i64,
    /// Its trace, if it names one.
    pub trace_id: Option<TraceId>,
    /// Its span, if it names one.
    pub span_id: Option<SpanId>,
    /// The profile it came in.
    pub profile_id: ProfileId,
    /// Labels of its series, the profile type among them.
    pub labels: Arc<Labels>,
    /// The thread's name; empty if not known.
    pub thread_name: String,
    /// Its stack, the leaf first.
    pub frames: Vec<SampleFrame>,
    path: u64,
}

/// A frame of a stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleFrame {
    /// The function, or where in which binary it is.
    pub function: String,
    /// The file; empty if not known.
    pub file: String,
    /// The line; 0 if not known.
    pub line: u32,
}

/// A page of samples.
#[derive(Debug, Clone, Default)]
pub struct SamplePage {
    /// Samples in order of time.
    pub rows: Vec<SampleRow>,
    /// How many there are on all pages.
    pub total: usize,
}

impl Engine {
    /// The spans of a trace that have samples between two times.
    pub async fn profiled_spans(
        &self,
        tenant: &TenantId,
        trace_id: TraceId,
        (from, until): (i64, i64),
    ) -> Result<HashSet<SpanId>> {
        let options = ReadOptions::columns(&["trace_id", "span_id"]);
        let mut spans = HashSet::new();
        for segment in self.snapshot().segments(tenant, Table::Samples).iter() {
            if !segment.overlaps(from, until) {
                continue;
            }
            for batch in self.lake().reader().rows_with_id(segment, IdKind::Trace, &trace_id.0, &options).await? {
                let ids = arrays::ids(&batch, "span_id")?;
                let linked = (0..batch.num_rows()).filter(|row| ids.is_valid(*row));
                spans.extend(linked.map(|row| SpanId(arrays::id_at(ids, row))));
            }
        }
        Ok(spans)
    }

    /// The spans of traces, as owners of samples.
    async fn spans_of(&self, tenant: &TenantId, snapshot: &Snapshot, traces: &[TraceId]) -> Result<SampleOwners> {
        let spans = self.outlines(tenant, snapshot, traces, (i64::MIN, i64::MAX)).await?;
        let key = |span: &SpanOutline| SpanKey { trace_id: Some(span.trace_id), span_id: span.span_id };
        Ok(SampleOwners::Spans(spans.iter().map(key).collect()))
    }

    /// A page of the samples of the spans and traces that a question names, in order of time. Its profile type
    /// may be the default one, which stands for any.
    pub async fn samples(
        &self,
        tenant: &TenantId,
        query: &FlameQuery,
        offset: usize,
        limit: usize,
    ) -> Result<SamplePage> {
        let snapshot = self.snapshot();
        let any_type = query.profile_type == ProfileType::default();
        let selector = if any_type { query.selector.clone() } else { query.typed_selector() };
        let entries = self.series(tenant, &snapshot, &selector, query.from, query.until).await?;
        let series: HashMap<u64, Arc<Labels>> =
            entries.iter().map(|entry| (entry.id.0, Arc::clone(&entry.labels))).collect();
        let Some(owners) = query.sample_owners() else { return Ok(SamplePage::default()) };
        let range = (query.from, query.until);
        let mut rows = Vec::new();
        // Samples of a trace that name only their span are found by the spans that the trace has.
        let spans_of_traces = match &owners {
            SampleOwners::Traces(traces) => self.spans_of(tenant, &snapshot, traces).await?,
            _ => SampleOwners::Spans(Vec::new()),
        };
        for (owners, naming_a_trace) in [(&owners, true), (&spans_of_traces, false)] {
            let filter = OwnerFilter::new(owners, &[]);
            let Some(ids) = filter.id_set().filter(|ids| !ids.is_empty()) else { continue };
            let options = ReadOptions::columns(&COLUMNS).within("time", query.from, query.until);
            let mut exactness = Exactness::default();
            let jobs = self.id_jobs(tenant, &snapshot, Table::Samples, &ids, range, &options, &mut exactness).await?;
            let mut each = |batch: RecordBatch| {
                let columns = SampleColumns::of(&batch)?;
                for row in 0..batch.num_rows() {
                    let Some(labels) = series.get(&columns.series[row]) else { continue };
                    let (trace_id, span_id) = columns.ids(row);
                    let owner = filter.named_owner(trace_id, span_id);
                    if let Some(owner) = owner.filter(|_| naming_a_trace || trace_id.is_none()) {
                        rows.push(columns.sample(row, owner, labels));
                    }
                }
                Ok(())
            };
            side_by_side(jobs, &mut each).await?;
        }
        let mut each_uploaded = |uploaded: UploadedSample<'_>| {
            let UploadedSample { batch, row, span: (trace_id, span_id) } = uploaded;
            let columns = SampleColumns::of(batch)?;
            if let Some(labels) = series.get(&columns.series[row]) {
                rows.push(columns.sample(row, (Some(trace_id), Some(span_id)), labels));
            }
            Ok(())
        };
        let asked = (&owners, entries.as_slice());
        self.visit_named_uploads(tenant, &snapshot, asked, range, &COLUMNS, &mut each_uploaded).await?;
        // Every column takes part, so that pages do not change while the data does not.
        rows.sort_by_cached_key(|row| (row.time, row.span_id, row.path, row.value, row.profile_id));
        let total = rows.len();
        let mut page: Vec<SampleRow> = rows.into_iter().skip(offset).take(limit).collect();
        let mut services: Vec<u64> = page.iter().map(|row| row.labels.service_id()).collect();
        services.sort_unstable();
        services.dedup();
        let symbols = self.symbols(tenant, &snapshot, &services, range).await?;
        for row in &mut page {
            row.frames = frames_of(&symbols, row.path);
        }
        Ok(SamplePage { rows: page, total })
    }
}

const COLUMNS: [&str; 8] = ["series", "time", "trace_id", "span_id", "path", "value", "profile_id", "thread_name"];

/// The columns of a batch of samples.
struct SampleColumns<'b> {
    series: &'b [u64],
    times: &'b [i64],
    traces: &'b FixedSizeBinaryArray,
    spans: &'b FixedSizeBinaryArray,
    profiles: &'b FixedSizeBinaryArray,
    threads: arrays::Texts<'b>,
    paths: &'b [u64],
    values: &'b [i64],
}

impl<'b> SampleColumns<'b> {
    fn of(batch: &'b RecordBatch) -> Result<Self> {
        Ok(Self {
            series: arrays::uint64s(batch, "series")?.values(),
            times: arrays::times(batch, "time")?.values(),
            traces: arrays::ids(batch, "trace_id")?,
            spans: arrays::ids(batch, "span_id")?,
            profiles: arrays::ids(batch, "profile_id")?,
            threads: arrays::texts(batch, "thread_name")?,
            paths: arrays::uint64s(batch, "path")?.values(),
            values: arrays::int64s(batch, "value")?.values(),
        })
    }

    /// The ids that a sample names itself.
    fn ids(&self, row: usize) -> NamedOwner {
        let trace = self.traces.is_valid(row).then(|| TraceId(arrays::id_at(self.traces, row)));
        let span = self.spans.is_valid(row).then(|| SpanId(arrays::id_at(self.spans, row)));
        (trace, span)
    }

    fn sample(&self, row: usize, (trace_id, span_id): NamedOwner, labels: &Arc<Labels>) -> SampleRow {
        SampleRow {
            time: self.times[row],
            value: self.values[row],
            trace_id,
            span_id,
            profile_id: ProfileId(arrays::id_at::<16>(self.profiles, row)),
            labels: Arc::clone(labels),
            thread_name: self.threads.get(row).to_owned(),
            frames: Vec::new(),
            path: self.paths[row],
        }
    }
}

/// The frames of a path, the leaf first; none if it is not stored.
pub(crate) fn frames_of(symbols: &Symbols, path: u64) -> Vec<SampleFrame> {
    let frame_of = |path: PathNode<'_>| {
        let frame = path.frame();
        SampleFrame {
            function: path.text(frame.function).as_ref().to_owned(),
            file: path.text(frame.file).as_ref().to_owned(),
            line: frame.line,
        }
    };
    symbols.find(path).into_iter().flat_map(PathNode::to_root).map(frame_of).collect()
}
