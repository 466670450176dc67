//! TraceQL: grammar, types and evaluation. No I/O, no async.
//!
//! ```text
//! text ──parse──▶ ast::Query ──Program::compile──▶ Program ──┬─ fields()     what to read, as dense FieldIds
//!                    │                                       ├─ prefilter()  which traces can be skipped
//!                    └─ Display: canonical text              ├─ needs()      single spans, or whole traces
//!                                                            ├─ search()     ─▶ Vec<Spanset> of a trace
//!                                                            └─ metrics()    ─▶ MetricsState ─merge─▶ Vec<Series>
//! ```
//!
//! An engine shows its spans through [`SpanSource`] and [`TraceSource`]. It alone knows what it read and what is missing, so it
//! says what results rest on. [`memory`] has a simple one for tests:
//!
//! ```
//! use hotspan_traceql::{Program, memory::{MemorySpan, MemoryTrace}};
//!
//! let program = Program::new("{ name = \"checkout\" && duration > 500ms }")?;
//! let slow = MemorySpan { name: "checkout".into(), duration_nanos: 800_000_000, ..MemorySpan::default() };
//! let trace = MemoryTrace { spans: vec![slow], ..MemoryTrace::default() };
//!
//! let source = trace.bind(program.fields());
//! let view = program.view(&source);
//! let search = program.search().expect("not a metrics query");
//! assert_eq!(search.evaluate(&view)[0].spans, [0]);
//! # Ok::<(), hotspan_traceql::TraceqlError>(())
//! ```
//!
//! # The language
//!
//! All of TraceQL as Tempo 3 has it, and Hotspan's own: the fields `profile.cpu`, `profile.wall`, `profile.samples`,
//! `profile.function`, `profile.file`, and the last stages `flame(TYPE)`, `top(N, TYPE)`, `diff({…}, TYPE)`,
//! `ledger()`.
//!
//! Rules worth knowing:
//! - `&&` and `||` bind equally strong, left to right, as in Tempo: `a || b && c` is `(a || b) && c`.
//! - A missing field satisfies no comparison, not even `!=`; neither does a value of another type.
//! - Of several values (arrays, events, links, functions) any may match; for `!=` and `!~`, all must.
//! - Regular expressions match the whole text; `.` matches a newline, and `\d \w \s \b` are ASCII.
//! - An attribute name may hold `+ - * /`: write `.a - .b` with spaces.
//!
//! # Where this differs from Tempo
//!
//! | subject | Tempo | here |
//! |---|---|---|
//! | `parent.x`, `parent.span.x`, `parent = nil` | parses, refused | works |
//! | arithmetic on aggregates, aggregate against aggregate, `({…} \| count()) > ({…} \| count())` | parses, refused | works; an empty side counts 0 |
//! | `count() > 2 && avg(duration) > 1s` as a stage | refused | works |
//! | `a ^ b` on integers | b to the power of a | a to the power of b |
//! | the text `"nil"` as a value | looks absent | is a text |
//! | traces without a root, or with orphans | structure does not work | an orphan is a root; cycles are cut |
//! | siblings | by number of the parent | children of one parent in the trace; roots are no siblings |
//! | `quantile_over_time`, `histogram_over_time` of floats, and of values below 2 | dropped | counted, as documented ("any numerical attribute") |
//! | `span:parentID = nil`, other intrinsics `= nil` | refused | refused, but events, links and profile fields may be missing |
//! | integer overflow | wraps | goes on as a float |
//! | duration arithmetic | a float | a duration where it is still a time (`duration / 2`) |
//! | over-time functions of expressions (`sum_over_time(span.a * span.b)`) | refused | works |
//! | `by(…)` on one side of a structural operator | error at run time | error at the query |
//! | ids in comparisons | as stored | short or capital forms too |
//! | `compare()` | with `rootName`, `rootServiceName` | without, so that spans stream |
//! | `with(precise_quantiles=true)` | unknown | quantiles within 0.5 % |
//!
//! # Never
//!
//! No input panics, hangs or recurses without bound: the text is at most [`MAX_QUERY_BYTES`] long, nesting is
//! at most [`MAX_DEPTH`] deep and trees [`MAX_HEIGHT`] high, patterns compile to bounded size, and metrics states are bounded by [`MetricsLimits`].

mod arithmetic;
pub mod ast;
mod check;
pub mod editor;
mod error;
mod eval;
pub mod memory;
mod metrics;
mod plan;
mod program;
mod regex_match;
mod source;
mod suggest;
mod syntax;
mod value;

pub use error::{SourceRange, TraceqlError};
pub use eval::{ROOT_NOT_YET_RECEIVED, Spanset, TraceFacts, TraceShape, TraceView};
pub use metrics::{
    Exemplar, LogHistogram, MAX_INTERVALS, Metrics, MetricsError, MetricsLimits, MetricsState, Point, Series, TimeGrid,
    adjusted_count, default_step,
};
pub use plan::{
    Exemplars, FieldId, FieldTable, Hints, NeededSpans, Needs, Prefilter, Sampling, SpanCondition, SpanPredicate,
    SpanTest,
};
pub use program::{Program, Search, SpanFilter};
pub use regex_match::Matcher;
pub use source::{FieldColumn, SpanColumns, SpanSource, TraceSource};
pub use suggest::{nearest, suggest_attributes};
pub use syntax::{MAX_DEPTH, MAX_HEIGHT, MAX_QUERY_BYTES, parse_syntax};
pub use value::{FieldValue, Value};

/// Parses a query and checks its types.
pub fn parse(text: &str) -> Result<ast::Query, TraceqlError> {
    let query = parse_syntax(text)?;
    check::check(&query).map_err(|error| error.locate(text))?;
    Ok(query)
}

/// Parses the name of a field alone, such as the tag in `/api/v2/search/tag/{tag}/values`.
pub fn parse_field(text: &str) -> Result<ast::Field, TraceqlError> {
    let query = parse_syntax(&format!("{{ }} | select({text})"));
    if let Ok(ast::Query { body: ast::QueryBody::Search { pipeline, sink: None }, hints }) = query
        && hints.is_empty()
        && let [_, ast::Stage::Select(fields)] = pipeline.stages.as_slice()
        && let [ast::FieldExpr { kind: ast::FieldExprKind::Field(field), .. }] = fields.as_slice()
    {
        return Ok(field.clone());
    }
    let error = TraceqlError::at(SourceRange::new(0, text.len()), format!("`{text}` is not the name of a field"));
    Err(error.expecting("a name such as `resource.service.name`, `.http.method` or `span:name`").locate(text))
}
