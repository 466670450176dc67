//! Spans evaluated a second on one core: a simple filter, a structural query, a quantile by service.
//!
//! `cargo run --release -p hotspan-traceql --example throughput`

#![allow(clippy::print_stdout)]

use std::time::Instant;

use hotspan_model::{SpanId, StatusCode, TraceId};
use hotspan_traceql::ast::{Field, Intrinsic, Scope};
use hotspan_traceql::{
    FieldId, FieldTable, FieldValue, MetricsLimits, Program, SpanSource, TimeGrid, TraceSource, TraceView,
};

/// Spans in columns, as an engine has them: texts as positions in a dictionary, numbers in arrays.
struct Columns {
    services: Vec<u8>,
    names: Vec<u8>,
    durations: Vec<i64>,
    starts: Vec<i64>,
    statuses: Vec<StatusCode>,
    ids: Vec<u64>,
    parents: Vec<u64>,
    dictionary: Vec<String>,
}

/// One column for each field of a query.
#[derive(Clone, Copy)]
enum Column<'a> {
    Text(&'a [u8]),
    Duration(&'a [i64]),
    Status(&'a [StatusCode]),
    Absent,
}

struct Bound<'a> {
    columns: &'a Columns,
    fields: Vec<Column<'a>>,
    from: usize,
    count: usize,
}

impl<'a> Bound<'a> {
    fn new(columns: &'a Columns, table: &FieldTable, from: usize, count: usize) -> Self {
        let fields = table
            .iter()
            .map(|(_, field)| match field {
                Field::Intrinsic(Intrinsic::Name) => Column::Text(&columns.names),
                Field::Intrinsic(Intrinsic::Duration) => Column::Duration(&columns.durations),
                Field::Intrinsic(Intrinsic::Status) => Column::Status(&columns.statuses),
                Field::Attribute { scope: Scope::Resource, name, .. } if name == "service.name" => {
                    Column::Text(&columns.services)
                }
                _ => Column::Absent,
            })
            .collect();
        Self { columns, fields, from, count }
    }
}

impl SpanSource for Bound<'_> {
    #[inline]
    fn value(&self, span: usize, field: FieldId) -> FieldValue<'_> {
        let at = self.from + span;
        match self.fields[field.index()] {
            Column::Text(codes) => FieldValue::Str(&self.columns.dictionary[usize::from(codes[at])]),
            Column::Duration(values) => FieldValue::Duration(values[at]),
            Column::Status(values) => FieldValue::Status(values[at]),
            Column::Absent => FieldValue::Nil,
        }
    }

    fn element(&self, _: usize, _: FieldId, _: usize) -> FieldValue<'_> {
        FieldValue::Nil
    }

    #[inline]
    fn start_nanos(&self, span: usize) -> i64 {
        self.columns.starts[self.from + span]
    }

    #[inline]
    fn span_id(&self, span: usize) -> SpanId {
        SpanId(self.columns.ids[self.from + span].to_be_bytes())
    }

    fn trace_id(&self, span: usize) -> TraceId {
        let mut id = [0; 16];
        id[8..].copy_from_slice(&((self.from + span) as u64 / SPANS_IN_TRACE as u64).to_be_bytes());
        TraceId(id)
    }

    fn for_each_attribute(&self, _: usize, _: &mut dyn FnMut(Scope, &str, FieldValue<'_>)) {}
}

impl TraceSource for Bound<'_> {
    fn span_count(&self) -> usize {
        self.count
    }

    #[inline]
    fn parent_id(&self, span: usize) -> Option<SpanId> {
        let id = self.columns.parents[self.from + span];
        (id != 0).then(|| SpanId(id.to_be_bytes()))
    }

    fn duration_nanos(&self, span: usize) -> i64 {
        self.columns.durations[self.from + span]
    }

    fn name(&self, span: usize) -> &str {
        &self.columns.dictionary[usize::from(self.columns.names[self.from + span])]
    }

    fn service_name(&self, span: usize) -> &str {
        &self.columns.dictionary[usize::from(self.columns.services[self.from + span])]
    }
}

/// Few enough that a run fits into one time slice of a busy machine.
const TRACES: usize = 5_000;
const SPANS_IN_TRACE: usize = 20;
const SPANS: usize = TRACES * SPANS_IN_TRACE;

fn columns() -> Columns {
    let mut dictionary: Vec<String> = (0..40).map(|at| format!("service-{at}")).collect();
    dictionary.extend((0..60).map(|at| format!("operation.number_{at}")));
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    let mut columns = Columns {
        services: Vec::new(),
        names: Vec::new(),
        durations: Vec::new(),
        starts: Vec::new(),
        statuses: Vec::new(),
        ids: Vec::new(),
        parents: Vec::new(),
        dictionary,
    };
    for at in 0..SPANS {
        let within = at % SPANS_IN_TRACE;
        columns.services.push((next() % 40) as u8);
        columns.names.push(40 + (next() % 60) as u8);
        columns.durations.push((next() % 1_000_000_000) as i64);
        columns.starts.push((at as i64) * 36_000_000);
        columns.statuses.push(if next() % 50 == 0 { StatusCode::Error } else { StatusCode::Unset });
        columns.ids.push(at as u64 + 1);
        let parent = if within == 0 { 0 } else { at - within + (next() % within as u64) as usize + 1 };
        columns.parents.push(parent as u64);
    }
    columns
}

/// The best of several runs, in spans a second.
fn measure(what: &str, query: &str, mut run: impl FnMut() -> usize) {
    let mut best = f64::MAX;
    let mut result = 0;
    for _ in 0..100 {
        let start = Instant::now();
        result = run();
        best = best.min(start.elapsed().as_secs_f64());
    }
    println!(
        "{what:<12} {:>8.1} M spans/s   {:>6.1} ns/span   {result:>8} found   {query}",
        SPANS as f64 / best / 1e6,
        best / SPANS as f64 * 1e9
    );
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let columns = columns();
    for text in [
        "{ duration > 990ms }",
        "{ resource.service.name = \"service-7\" && duration > 500ms }",
        "{ name =~ \"operation.number_1.*\" && status = error }",
        "{ name = \"operation.number_1\" || name = \"operation.number_2\" || name = \"operation.number_3\" }",
    ] {
        let program = Program::new(text)?;
        let source = Bound::new(&columns, program.fields(), 0, SPANS);
        let filter = program.search().and_then(|search| search.span_filter()).ok_or("not a filter")?;
        let mut found = Vec::new();
        measure("filter", text, || {
            found.clear();
            filter.select(&TraceView::of_batch(&source), 0..SPANS, &mut found);
            found.len()
        });
    }
    for text in ["{ resource.service.name = \"service-7\" } >> { status = error }", "{ status = error } | count() > 2"]
    {
        let program = Program::new(text)?;
        let search = program.search().ok_or("not a search")?;
        measure("whole traces", text, || {
            (0..TRACES)
                .map(|trace| {
                    let source = Bound::new(&columns, program.fields(), trace * SPANS_IN_TRACE, SPANS_IN_TRACE);
                    search.evaluate(&program.view(&source)).iter().map(|set| set.spans.len()).sum::<usize>()
                })
                .sum()
        });
    }
    for text in [
        "{ } | rate()",
        "{ } | rate() by(resource.service.name)",
        "{ } | quantile_over_time(duration, .99) by(resource.service.name)",
        "{ } | quantile_over_time(duration, .99) by(resource.service.name) with(precise_quantiles=true)",
    ] {
        let program = Program::new(text)?;
        let metrics = program.metrics().ok_or("not a metrics query")?;
        let grid = TimeGrid::range(0, 3_600_000_000_000, 15_000_000_000)?;
        let source = Bound::new(&columns, program.fields(), 0, SPANS);
        measure("metrics", text, || {
            let mut state = metrics.start(grid, MetricsLimits::default());
            let view = TraceView::of_batch(&source);
            if metrics.observe_batch(&mut state, &view, 0..SPANS).is_err() {
                return 0;
            }
            metrics.finish(state).len()
        });
    }
    Ok(())
}
