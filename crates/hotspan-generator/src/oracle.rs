//! The exact answers: sums that every query over the data must agree with.

use hashbrown::HashMap;
use hotspan_model::{SpanId, StatusCode, TraceId};

use crate::fleet::{Fleet, Service};
use crate::workload::{SampleKind, Window, Workload};

/// How much an oracle remembers. Sums by service, function and call path are always kept: they don't grow with time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OracleDetail {
    /// Every span and trace.
    Everything,
    /// One trace of so many, with all its spans; enough to ask questions about some.
    OneTraceIn(u64),
}

/// Sums over the windows that it was shown.
#[derive(Debug, Clone)]
pub struct Oracle {
    detail: OracleDetail,
    windows_before: u64,
    /// How many spans there are.
    pub spans: u64,
    /// How many traces there are.
    pub traces: u64,
    /// How many samples there are.
    pub samples: u64,
    /// How many of them name a span.
    pub linked_samples: u64,
    services: Vec<ServiceSums>,
    span_counts: HashMap<(u16, String, StatusCode), u64>,
    kept_traces: HashMap<TraceId, TraceSums>,
    kept_spans: HashMap<SpanId, SpanSums>,
}

#[derive(Debug, Clone, Default)]
struct ServiceSums {
    kinds: [KindSums; 2],
}

#[derive(Debug, Clone, Default)]
struct KindSums {
    total: i64,
    samples: u64,
    /// Value by node of the service's call tree.
    by_node: HashMap<u32, i64>,
    /// Value by start of the window.
    by_window: Vec<(i64, i64)>,
}

/// What is known about a trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceSums {
    /// How many spans it has.
    pub spans: u64,
    /// Value of its samples, by kind in the order of [`SampleKind::ALL`].
    pub values: [i64; 2],
    /// When its root starts.
    pub start: i64,
}

/// What is known about a span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpanSums {
    /// Its trace.
    pub trace_id: TraceId,
    /// Its service: an index into the fleet's services.
    pub service: u16,
    /// When it starts.
    pub start: i64,
    /// When it ends.
    pub end: i64,
    /// Value of its samples, by kind in the order of [`SampleKind::ALL`].
    pub values: [i64; 2],
    /// How many samples it has.
    pub samples: u64,
}

impl Oracle {
    /// An oracle that knows nothing yet.
    pub fn new(workload: &Workload, detail: OracleDetail) -> Self {
        Self {
            detail,
            windows_before: 0,
            spans: 0,
            traces: 0,
            samples: 0,
            linked_samples: 0,
            services: vec![ServiceSums::default(); workload.fleet().services.len()],
            span_counts: HashMap::new(),
            kept_traces: HashMap::new(),
            kept_spans: HashMap::new(),
        }
    }

    /// An oracle that knows a whole workload, which must be small if everything is kept.
    pub fn of(workload: &Workload, detail: OracleDetail) -> Self {
        let mut oracle = Self::new(workload, detail);
        for window in workload.windows() {
            oracle.add(&window);
        }
        oracle
    }

    /// Adds a window.
    pub fn add(&mut self, window: &Window<'_>) {
        self.windows_before += 1;
        for generated in &window.spans {
            let span = &generated.span;
            self.spans += 1;
            let is_root = span.parent_id.is_none();
            self.traces += u64::from(is_root);
            let key = (generated.service, span.name, span.status);
            // Looked up by reference first, since names repeat and owning one costs.
            match self.span_counts.get_mut(&SpanCountKey(key)) {
                Some(count) => *count += 1,
                None => {
                    self.span_counts.insert((key.0, key.1.to_owned(), key.2), 1);
                }
            }
            if !self.keeps(span.trace_id) {
                continue;
            }
            let trace = self.kept_traces.entry(span.trace_id).or_default();
            trace.spans += 1;
            if is_root {
                trace.start = span.start;
            }
            let (trace_id, service, start, end) = (span.trace_id, generated.service, span.start, span.end);
            self.kept_spans
                .insert(span.span_id, SpanSums { trace_id, service, start, end, values: [0; 2], samples: 0 });
        }
        for profile in &window.profiles {
            let kind = profile.kind as usize;
            let sums = &mut self.services[usize::from(profile.service)].kinds[kind];
            let mut in_window = 0;
            for sample in &profile.samples {
                in_window += sample.value;
                *sums.by_node.entry(sample.node).or_default() += sample.value;
                let Some(number) = sample.span else { continue };
                self.linked_samples += 1;
                let span = &window.spans[number as usize].span;
                if let Some(kept) = self.kept_spans.get_mut(&span.span_id) {
                    kept.values[kind] += sample.value;
                    kept.samples += 1;
                }
                if let Some(kept) = self.kept_traces.get_mut(&span.trace_id) {
                    kept.values[kind] += sample.value;
                }
            }
            sums.total += in_window;
            sums.samples += profile.samples.len() as u64;
            sums.by_window.push((profile.start, in_window));
            self.samples += profile.samples.len() as u64;
        }
    }

    fn keeps(&self, trace: TraceId) -> bool {
        match self.detail {
            OracleDetail::Everything => true,
            OracleDetail::OneTraceIn(many) => {
                let [a, b, c, d, e, f, g, h, ..] = trace.0;
                u64::from_le_bytes([a, b, c, d, e, f, g, h]).rotate_right(1).is_multiple_of(many.max(1))
            }
        }
    }

    fn sums(&self, service: u16, kind: SampleKind) -> Option<&KindSums> {
        self.services.get(usize::from(service)).map(|sums| &sums.kinds[kind as usize])
    }

    /// Value of all samples of a service.
    pub fn service_total(&self, service: u16, kind: SampleKind) -> i64 {
        self.sums(service, kind).map_or(0, |sums| sums.total)
    }

    /// Value of all samples of all services.
    pub fn total(&self, kind: SampleKind) -> i64 {
        self.services.iter().map(|sums| sums.kinds[kind as usize].total).sum()
    }

    /// How many samples of this kind there are.
    pub fn sample_count(&self, kind: SampleKind) -> u64 {
        self.services.iter().map(|sums| sums.kinds[kind as usize].samples).sum()
    }

    /// Value of a service's samples by window: its start and the sum in it.
    pub fn series(&self, service: u16, kind: SampleKind) -> &[(i64, i64)] {
        self.sums(service, kind).map_or(&[], |sums| &sums.by_window)
    }

    /// Value by call path, given as function names from the root; paths that differ by line only are added up.
    pub fn paths(&self, fleet: &Fleet, service: u16, kind: SampleKind) -> HashMap<Vec<String>, i64> {
        let mut paths: HashMap<Vec<String>, i64> = HashMap::new();
        let (Some(sums), Some(owner)) = (self.sums(service, kind), service_of(fleet, service)) else {
            return paths;
        };
        for (node, value) in &sums.by_node {
            let mut names: Vec<String> =
                owner.calls.leaf_to_root(*node).map(|(_, node)| owner.calls.function(node).name.clone()).collect();
            names.reverse();
            *paths.entry(names).or_default() += value;
        }
        paths
    }

    /// Value by function: in itself, and in everything that it called (once for each sample it is on).
    pub fn functions(&self, fleet: &Fleet, service: u16, kind: SampleKind) -> HashMap<String, (i64, i64)> {
        let mut functions: HashMap<u32, (i64, i64)> = HashMap::new();
        let (Some(sums), Some(owner)) = (self.sums(service, kind), service_of(fleet, service)) else {
            return HashMap::new();
        };
        let mut on_path = Vec::new();
        for (node, value) in &sums.by_node {
            on_path.clear();
            on_path.extend(owner.calls.leaf_to_root(*node).map(|(_, node)| node.function));
            if let Some(leaf) = on_path.first() {
                functions.entry(*leaf).or_default().0 += value;
            }
            on_path.sort_unstable();
            on_path.dedup();
            for function in &on_path {
                functions.entry(*function).or_default().1 += value;
            }
        }
        let mut by_name: HashMap<String, (i64, i64)> = HashMap::with_capacity(functions.len());
        for (function, (own, all)) in functions {
            let sums = by_name.entry(owner.calls.functions[function as usize].name.clone()).or_default();
            *sums = (sums.0 + own, sums.1 + all);
        }
        by_name
    }

    /// How many spans there are of this service, name and status.
    pub fn span_count(&self, service: u16, name: &str, status: StatusCode) -> u64 {
        self.span_counts.get(&SpanCountKey((service, name, status))).copied().unwrap_or(0)
    }

    /// All counts of spans, by service, name and status.
    pub fn span_counts(&self) -> impl Iterator<Item = (u16, &str, StatusCode, u64)> {
        self.span_counts.iter().map(|((service, name, status), count)| (*service, name.as_str(), *status, *count))
    }

    /// The traces that were kept, by id, so that the order is the same in every run.
    pub fn traces_kept(&self) -> Vec<(TraceId, &TraceSums)> {
        let mut kept: Vec<_> = self.kept_traces.iter().map(|(id, sums)| (*id, sums)).collect();
        kept.sort_unstable_by_key(|(id, _)| *id);
        kept
    }

    /// The spans that were kept, by id.
    pub fn spans_kept(&self) -> Vec<(SpanId, &SpanSums)> {
        let mut kept: Vec<_> = self.kept_spans.iter().map(|(id, sums)| (*id, sums)).collect();
        kept.sort_unstable_by_key(|(id, _)| *id);
        kept
    }
}

fn service_of(fleet: &Fleet, service: u16) -> Option<&Service> {
    fleet.services.get(usize::from(service))
}

/// A key of the counts that borrows its name.
#[derive(Hash)]
struct SpanCountKey<'n>((u16, &'n str, StatusCode));

impl hashbrown::Equivalent<(u16, String, StatusCode)> for SpanCountKey<'_> {
    fn equivalent(&self, key: &(u16, String, StatusCode)) -> bool {
        let (service, name, status) = self.0;
        service == key.0 && name == key.1 && status == key.2
    }
}
