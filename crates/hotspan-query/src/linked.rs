//! The samples of a whole set of spans or traces: when, what and whose.
//!
//! Memory is bounded by the set and by what the visitor keeps: samples are shown one by one, never gathered here, but
//! for [`Engine::linked_samples`], which has a limit.

use std::sync::Arc;

use arrow::array::{Array, BooleanArray, Int64Array, RecordBatch};
use hashbrown::HashMap;
use hotspan_lake::{Snapshot, arrays};
use hotspan_model::selector::Selector;
use hotspan_model::{Exactness, LinkStrength, ProfileId, SpanId, TenantId, TraceId};

use crate::Engine;
use crate::error::Result;
use crate::linked_rows::{LinkedRow, LinkedRows, Visited};
use crate::owners::SampleOwners;
use crate::series::SeriesEntry;

/// Which samples of a set of spans or traces.
#[derive(Debug, Clone)]
pub struct LinkedQuery {
    /// Whose.
    pub owners: SampleOwners,
    /// Labels that the series must have, the profile type among them.
    pub selector: Selector,
    /// Start of the time, in nanoseconds since 1970.
    pub from: i64,
    /// End of the time, not included.
    pub until: i64,
    /// Only samples of these profiles; none means any.
    pub profiles: Vec<ProfileId>,
    /// Whether threads are needed; reading them takes longer.
    pub with_threads: bool,
}

/// A sample and the span it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkedSample {
    /// The trace; `None` if neither the sample nor the question names one.
    pub trace_id: Option<TraceId>,
    /// The span; `None` if the sample names only its trace.
    pub span_id: Option<SpanId>,
    /// When it was taken, or when its profile began if `timed` is false.
    pub time: i64,
    /// Whether the source said when exactly.
    pub timed: bool,
    /// Which of [`LinkedTables::threads`]; 0 is "not known".
    pub thread: u32,
    /// Which of [`LinkedTables::series`].
    pub series: u32,
    /// Its call path; see [`Engine::call_paths`].
    pub path: u64,
    /// What was measured.
    pub value: i64,
    /// How surely it belongs to the span.
    pub link: LinkStrength,
}

/// The thread of a sample.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct SampleThread {
    /// Its number.
    pub id: Option<i64>,
    /// Its name; empty if not known.
    pub name: Arc<str>,
}

/// What the numbers in samples stand for, and what the answer rests on.
#[derive(Debug, Clone, Default)]
pub struct LinkedTables {
    /// Threads; the first is "not known".
    pub threads: Vec<SampleThread>,
    /// Label sets, the profile type among them.
    pub series: Vec<SeriesEntry>,
    /// How long the traces took, each from its first start to its last end without the times in which nothing of it ran;
    /// none if no traces were asked for.
    pub traces_time: Option<i64>,
    /// How many samples were seen, of how many spans.
    pub exactness: Exactness,
}

/// Samples in no particular order.
#[derive(Debug, Clone, Default)]
pub struct LinkedSamples {
    /// The samples, at most as many as were asked for.
    pub samples: Vec<LinkedSample>,
    /// What their numbers stand for.
    pub tables: LinkedTables,
    /// How many more there were.
    pub left_out: u64,
}

/// Takes samples one after another.
pub type EachSample<'f> = dyn FnMut(&LinkedSample) -> Result<()> + Send + 'f;

impl Engine {
    /// Shows every sample of a set of spans or traces to `visit`, in no particular order.
    pub async fn visit_linked_samples(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        query: &LinkedQuery,
        visit: &mut EachSample<'_>,
    ) -> Result<LinkedTables> {
        let series = self.series_of_spans(tenant, snapshot, query).await?;
        let mut columns = vec!["time", "timed", "path", "value"];
        if query.with_threads {
            columns.extend(["thread_id", "thread_name"]);
        }
        let mut threads = ThreadTable::default();
        let mut each = |linked: &LinkedRows<'_>| {
            let columns = SampleColumns::of(linked.batch, query.with_threads)?;
            for LinkedRow { row, series, owner: (trace_id, span_id, link) } in linked.rows.iter().copied() {
                visit(&LinkedSample {
                    trace_id,
                    span_id,
                    time: columns.times[row],
                    timed: columns.timed.value(row),
                    thread: columns.thread(row).map_or(0, |(id, name)| threads.number(id, name)),
                    series: series as u32,
                    path: columns.paths[row],
                    value: columns.values[row],
                    link,
                })?;
            }
            Ok(())
        };
        let visited = self.visit_linked_rows(tenant, snapshot, query, &series, &columns, &mut each).await?;
        let Visited { exactness, traces_time } = visited;
        let threads = std::iter::once(SampleThread::default()).chain(threads.threads).collect();
        Ok(LinkedTables { threads, series, traces_time, exactness })
    }

    /// The samples of a set of spans or traces, at most `limit`; says how many more there were.
    pub async fn linked_samples(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
        query: &LinkedQuery,
        limit: usize,
    ) -> Result<LinkedSamples> {
        let mut found = LinkedSamples::default();
        let (samples, left_out) = (&mut found.samples, &mut found.left_out);
        let mut keep = |sample: &LinkedSample| {
            if samples.len() < limit {
                samples.push(*sample);
            } else {
                *left_out += 1;
            }
            Ok(())
        };
        found.tables = self.visit_linked_samples(tenant, snapshot, query, &mut keep).await?;
        Ok(found)
    }
}

/// The columns of a batch of samples.
struct SampleColumns<'b> {
    times: &'b [i64],
    timed: &'b BooleanArray,
    paths: &'b [u64],
    values: &'b [i64],
    threads: Option<(&'b Int64Array, arrays::Texts<'b>)>,
}

impl<'b> SampleColumns<'b> {
    fn of(batch: &'b RecordBatch, with_threads: bool) -> Result<Self> {
        let threads = match with_threads {
            true => Some((arrays::int64s(batch, "thread_id")?, arrays::texts(batch, "thread_name")?)),
            false => None,
        };
        Ok(Self {
            times: arrays::times(batch, "time")?.values(),
            timed: arrays::booleans(batch, "timed")?,
            paths: arrays::uint64s(batch, "path")?.values(),
            values: arrays::int64s(batch, "value")?.values(),
            threads,
        })
    }

    fn thread(&self, row: usize) -> Option<(Option<i64>, &'b str)> {
        let (ids, names) = self.threads.as_ref()?;
        Some((ids.is_valid(row).then(|| ids.value(row)), names.get(row)))
    }
}

/// Threads by number; 0 is left for "not known".
#[derive(Default)]
struct ThreadTable {
    threads: Vec<SampleThread>,
    numbers: HashMap<SampleThread, u32>,
    last: Option<(SampleThread, u32)>,
}

impl ThreadTable {
    fn number(&mut self, id: Option<i64>, name: &str) -> u32 {
        if id.is_none() && name.is_empty() {
            return 0;
        }
        // Neighbours mostly share their thread.
        if let Some((last, number)) = &self.last
            && last.id == id
            && last.name.as_ref() == name
        {
            return *number;
        }
        let thread = SampleThread { id, name: Arc::from(name) };
        let next = self.threads.len() as u32 + 1;
        let number = *self.numbers.entry(thread.clone()).or_insert(next);
        if number == next {
            self.threads.push(thread.clone());
        }
        self.last = Some((thread, number));
        number
    }
}
