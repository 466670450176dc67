//! TraceQL over the lake: a program's fields are bound to columns, spans are scanned or gathered into whole
//! traces, and the evaluator of `hotspan-traceql` does the rest.

mod binding;
mod candidates;
mod chunk_fold;
mod chunk_scan;
mod column_masks;
mod field_binding;
mod found;
mod gather;
mod judge;
mod latest;
mod latest_matches;
mod longest;
mod metrics;
mod order;
mod profile_fields;
mod query_columns;
mod run;
mod scan_filter;
mod span_attribute;
mod tags;
mod trace_filter;
mod whole;

pub(crate) use binding::BoundSpans;
pub use found::{FoundSpan, FoundSpanset, FoundTrace};
pub(crate) use gather::{Slice, gather, slices};
pub use metrics::{MetricsAnswer, MetricsRun};
pub use order::{Rank, SearchOrder};
pub(crate) use profile_fields::ProfileFields;
pub(crate) use query_columns::columns_of;
pub use run::{Inspected, SearchAnswer, SearchQuery, SearchRun};
pub(crate) use run::{overlapping, reach_back, reach_on};
pub(crate) use scan_filter::ScanFilter;
pub(crate) use span_attribute::SpanAttribute;
pub use tags::{TagNamesRun, TagQuery, TagScopes, TagValue, TagValuesRun};
pub use trace_filter::{KeptSpans, TraceFilter};
