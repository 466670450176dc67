//! The samples of spans and traces, one by one, with their stacks.

use arrow::array::{Array, FixedSizeBinaryArray, RecordBatch};
use hashbrown::{HashMap, HashSet};
use hotspan_lake::{ReadOptions, Table, arrays};
use hotspan_model::{Exactness, Labels, ProfileId, ProfileType, SpanId, TenantId, TraceId};
use std::sync::Arc;

use crate::Engine;
use crate::error::Result;
use crate::flame::FlameQuery;
use crate::linked_rows::{LinkedRow, LinkedRows};
use crate::owners::OwnerFilter;
use crate::side_by_side::side_by_side;
use crate::symbols::{PathNode, Symbols, services_of};
use crate::told::Told;

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
    /// What all pages together rest on.
    pub exactness: Exactness,
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
    ) -> Result<Told<HashSet<SpanId>>> {
        let spans = spans.into_iter().map(|span_id| (span_id, trace_id.unwrap_or_default())).collect();
        let filter = OwnerFilter::of_traces(trace_id.as_slice(), spans);
        let Some(ids) = filter.id_set() else { return Ok(Told::default()) };
        let options = ReadOptions::columns(&["trace_id", "span_id"]);
        let dropped = self.lake().rejected().between(tenant, range.0, range.1).samples;
        let (snapshot, mut exactness) = (self.snapshot(), Exactness { dropped, ..Exactness::default() });
        let jobs = self.id_jobs(tenant, &snapshot, Table::Samples, &ids, range, &options, &mut exactness).await?;
        let (mut profiled, mut samples) = (HashSet::new(), 0);
        let mut each = |batch: RecordBatch| {
            let (traces, spans) = (arrays::ids(&batch, "trace_id")?, arrays::ids(&batch, "span_id")?);
            let trace = |row| traces.is_valid(row).then(|| TraceId(arrays::id_at(traces, row)));
            let span = |row| spans.is_valid(row).then(|| SpanId(arrays::id_at(spans, row)));
            let owners = (0..batch.num_rows()).filter_map(|row| filter.named_owner(trace(row), span(row)));
            for span in owners.filter_map(|(_, span)| span) {
                samples += 1;
                profiled.insert(span);
            }
            Ok(())
        };
        side_by_side(jobs, &mut each).await?;
        exactness.spans = profiled.len() as u64;
        (exactness.samples, exactness.linked_samples) = (samples, samples);
        Ok(Told { answer: profiled, exactness })
    }

    /// A page of the samples of the spans and traces that a question names, in order of time. Its profile type
    /// may be the default one, which stands for any. However many there are, memory holds those up to the page's end, of
    /// which there may be [`FARTHEST_SAMPLE`] (R5).
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
        let series = self.series_of_spans(tenant, &snapshot, &linked).await?;
        let mut earliest = EarliestSamples::new(offset.saturating_add(limit).min(FARTHEST_SAMPLE));
        let mut each = |linked: &LinkedRows<'_>| {
            let columns = SampleColumns::of(linked.batch)?;
            for row in &linked.rows {
                earliest.add(columns.sample(row), || columns.threads.get(row.row));
            }
            Ok(())
        };
        let visited = self.visit_linked_rows(tenant, &snapshot, &linked, &series, &COLUMNS, &mut each).await?;
        let total = earliest.total;
        let (page, threads) = earliest.page(offset);
        let services = services_of(page.iter().map(|sample| &series[sample.series]));
        // Symbols are kept by day: those of other days than the page's need not be read. Its rows are in order of time.
        let first = page.first().map_or(i64::MAX, |sample| sample.time);
        let end = page.last().map_or(i64::MIN, |sample| sample.time.saturating_add(1));
        let paths: Vec<u64> = page.iter().map(|sample| sample.path).collect();
        let symbols = self.symbols_of_paths(tenant, &snapshot, &services, (first, end), &paths).await?;
        let rows = page.iter().map(|sample| SampleRow {
            time: sample.time,
            value: sample.value,
            trace_id: sample.trace_id,
            span_id: sample.span_id,
            profile_id: sample.profile_id,
            labels: Arc::clone(&series[sample.series].labels),
            thread_name: threads[sample.thread as usize].clone(),
            frames: frames_of(&symbols, sample.path),
        });
        Ok(SamplePage { rows: rows.collect(), total, exactness: visited.exactness })
    }
}

/// Samples after this many, in order of time, are on no page: a later start leads to them.
pub const FARTHEST_SAMPLE: usize = 1 << 18;

const COLUMNS: [&str; 5] = ["time", "path", "value", "profile_id", "thread_name"];

/// A sample without its texts. The order of its fields is that of the pages: every one of them takes part, so that pages
/// do not change while the data does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct BareSample {
    time: i64,
    span_id: Option<SpanId>,
    path: u64,
    value: i64,
    profile_id: ProfileId,
    trace_id: Option<TraceId>,
    series: usize,
    thread: u32,
}

/// The earliest of the samples that are added.
struct EarliestSamples {
    most: usize,
    samples: Vec<BareSample>,
    threads: Vec<String>,
    thread_numbers: HashMap<String, u32>,
    total: usize,
}

impl EarliestSamples {
    fn new(most: usize) -> Self {
        Self { most, samples: Vec::new(), threads: Vec::new(), thread_numbers: HashMap::new(), total: 0 }
    }

    fn add<'t>(&mut self, sample: BareSample, thread: impl FnOnce() -> &'t str) {
        self.total += 1;
        if self.samples.len() >= 2 * self.most {
            self.drop_latest();
        }
        let name = thread();
        let thread = match self.thread_numbers.get(name) {
            Some(number) => *number,
            None => {
                let number = self.threads.len() as u32;
                self.threads.push(name.to_owned());
                *self.thread_numbers.entry(name.to_owned()).or_insert(number)
            }
        };
        self.samples.push(BareSample { thread, ..sample });
    }

    /// Half of what is gathered is thrown away at a time, so that a sample costs the same however many there are.
    fn drop_latest(&mut self) {
        if self.samples.len() > self.most {
            self.samples.select_nth_unstable(self.most);
            self.samples.truncate(self.most);
        }
    }

    /// Those from a place on, in order, and the names of threads.
    fn page(mut self, offset: usize) -> (Vec<BareSample>, Vec<String>) {
        self.drop_latest();
        self.samples.sort_unstable();
        (self.samples.split_off(offset.min(self.samples.len())), self.threads)
    }
}

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

    fn sample(&self, linked: &LinkedRow) -> BareSample {
        let LinkedRow { row, series, owner: (trace_id, span_id, _) } = *linked;
        BareSample {
            time: self.times[row],
            span_id,
            path: self.paths[row],
            value: self.values[row],
            profile_id: ProfileId(arrays::id_at::<16>(self.profiles, row)),
            trace_id,
            series,
            thread: 0,
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: far more samples than a page has, latest first, of two threads.
    /// Guarantee: the page is that of all samples in order, with its threads, and memory never held more than two of it.
    #[test]
    fn pages_hold_the_earliest() {
        let sample = |time| BareSample {
            time,
            span_id: None,
            path: 0,
            value: 1,
            profile_id: ProfileId::default(),
            trace_id: None,
            series: 0,
            thread: 0,
        };
        let mut earliest = EarliestSamples::new(30);
        for time in (0..1000).rev() {
            earliest.add(sample(time), || if time % 2 == 0 { "even" } else { "odd" });
            assert!(earliest.samples.len() <= 60);
        }
        assert_eq!(earliest.total, 1000);
        let (page, threads) = earliest.page(20);
        assert_eq!(page.iter().map(|sample| sample.time).collect::<Vec<_>>(), (20..30).collect::<Vec<_>>());
        assert!(page.iter().all(|sample| threads[sample.thread as usize] == ["even", "odd"][sample.time as usize % 2]));
    }
}
