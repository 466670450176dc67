//! TraceQL over the lake: a program's fields are bound to columns, spans are scanned or gathered into whole
//! traces, and the evaluator of `hotspan-traceql` does the rest.

mod binding;
mod gather;
mod metrics;
mod run;
mod tags;

pub(crate) use gather::{gather, slices};
pub use metrics::MetricsAnswer;
pub use run::{FoundSpan, FoundSpanset, FoundTrace, SearchAnswer, SearchQuery};
pub(crate) use run::{overlapping, reach_back, reach_on};
pub use tags::{TagScopes, TagValue};
