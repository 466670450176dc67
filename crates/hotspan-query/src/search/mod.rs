//! TraceQL over the lake: a program's fields are bound to columns, spans are scanned or gathered into whole
//! traces, and the evaluator of `hotspan-traceql` does the rest.

mod binding;
mod found;
mod gather;
mod latest;
mod longest;
mod metrics;
mod order;
mod run;
mod scan_filter;
mod tags;
mod whole;

pub(crate) use binding::{BoundSpans, columns_of};
pub use found::{FoundSpan, FoundSpanset, FoundTrace};
pub(crate) use gather::{Slice, gather, slices};
pub use metrics::{MetricsAnswer, MetricsRun};
pub use order::{Rank, SearchOrder};
pub use run::{Inspected, SearchAnswer, SearchQuery, SearchRun};
pub(crate) use run::{overlapping, reach_back, reach_on};
pub use tags::{TagNamesRun, TagQuery, TagScopes, TagValue, TagValuesRun};
