//! The samples of spans and traces, one by one, with their stacks.

use arrow::array::{Array, FixedSizeBinaryArray, RecordBatch};
use hashbrown::HashSet;
use hotspan_lake::{ReadOptions, Table, arrays};
use hotspan_model::{Exactness, Labels, ProfileId, ProfileType, SpanId, TenantId, TraceId};
use std::sync::Arc;

use crate::Engine;
use crate::error::Result;
use crate::flame::FlameQuery;
use crate::linked_rows::{LinkedRow, LinkedRows};
use crate::owners::OwnerFilter;
use crate::side_by_side::side_by_side;
use crate::symbols::{PathNode, Symbols};

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
    /// The spans that have samples between two times: those of a trace, if one is given, whose samples name it, and
    /// those of `spans` whose samples name no trace.
    pub async fn profiled_spans(
        &self,
        tenant: &TenantId,
        trace_id: Option<TraceId>,
        spans: impl IntoIterator<Item = SpanId>,
        range: (i64, i64),
    ) -> Result<HashSet<SpanId>> {
        let spans = spans.into_iter().map(|span_id| (span_id, trace_id.unwrap_or_default())).collect();
        let filter = OwnerFilter::of_traces(trace_id.as_slice(), spans);
        let Some(ids) = filter.id_set() else { return Ok(HashSet::new()) };
        let options = ReadOptions::columns(&["trace_id", "span_id"]);
        let (snapshot, mut exactness) = (self.snapshot(), Exactness::default());
        let jobs = self.id_jobs(tenant, &snapshot, Table::Samples, &ids, range, &options, &mut exactness).await?;
        let mut profiled = HashSet::new();
        let mut each = |batch: RecordBatch| {
            let (traces, spans) = (arrays::ids(&batch, "trace_id")?, arrays::ids(&batch, "span_id")?);
            let trace = |row| traces.is_valid(row).then(|| TraceId(arrays::id_at(traces, row)));
            let span = |row| spans.is_valid(row).then(|| SpanId(arrays::id_at(spans, row)));
            let owner = |row| filter.named_owner(trace(row), span(row));
            profiled.extend((0..batch.num_rows()).filter_map(owner).filter_map(|(_, span)| span));
            Ok(())
        };
        side_by_side(jobs, &mut each).await?;
        Ok(profiled)
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
        let Some(owners) = query.sample_owners() else { return Ok(SamplePage::default()) };
        let mut linked = query.linked(owners);
        if query.profile_type == ProfileType::default() {
            linked.selector = query.selector.clone();
        }
        let series = self.series_of_types(tenant, &snapshot, &linked).await?;
        let mut rows = Vec::new();
        let mut each = |linked: &LinkedRows<'_>| {
            let columns = SampleColumns::of(linked.batch)?;
            rows.extend(linked.rows.iter().map(|row| columns.sample(row, &series[row.series].labels)));
            Ok(())
        };
        self.visit_linked_rows(tenant, &snapshot, &linked, &series, &COLUMNS, &mut each).await?;
        // Every column takes part, so that pages do not change while the data does not.
        rows.sort_by_cached_key(|row| (row.time, row.span_id, row.path, row.value, row.profile_id));
        let total = rows.len();
        let mut page: Vec<SampleRow> = rows.into_iter().skip(offset).take(limit).collect();
        let mut services: Vec<u64> = page.iter().map(|row| row.labels.service_id()).collect();
        services.sort_unstable();
        services.dedup();
        let symbols = self.symbols(tenant, &snapshot, &services, (query.from, query.until)).await?;
        for row in &mut page {
            row.frames = frames_of(&symbols, row.path);
        }
        Ok(SamplePage { rows: page, total })
    }
}

const COLUMNS: [&str; 5] = ["time", "path", "value", "profile_id", "thread_name"];

/// The columns of a batch of samples.
struct SampleColumns<'b> {
    times: &'b [i64],
    profiles: &'b FixedSizeBinaryArray,
    threads: arrays::Texts<'b>,
    paths: &'b [u64],
    values: &'b [i64],
}

impl<'b> SampleColumns<'b> {
    fn of(batch: &'b RecordBatch) -> Result<Self> {
        Ok(Self {
            times: arrays::times(batch, "time")?.values(),
            profiles: arrays::ids(batch, "profile_id")?,
            threads: arrays::texts(batch, "thread_name")?,
            paths: arrays::uint64s(batch, "path")?.values(),
            values: arrays::int64s(batch, "value")?.values(),
        })
    }

    fn sample(&self, linked: &LinkedRow, labels: &Arc<Labels>) -> SampleRow {
        let LinkedRow { row, owner: (trace_id, span_id, _), .. } = *linked;
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
