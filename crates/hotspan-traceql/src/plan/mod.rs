//! What an engine needs to know of a query before it reads anything.

mod fields;
mod hints;
mod prefilter;
mod relax;

pub(crate) use fields::is_derived;
pub use fields::{FieldId, FieldTable};
pub use hints::{Exemplars, Hints, Sampling};
pub use prefilter::{NeededSpans, Prefilter, SpanCondition, SpanPredicate, SpanTest};
pub(crate) use relax::{condition_of, requirement_of};

/// How much of a trace a query looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Needs {
    /// All spans of a trace together; otherwise each span can be judged alone, in any order, in any batch.
    pub whole_trace: bool,
    /// The tree of spans.
    pub structure: bool,
    /// Root and duration of the trace.
    pub trace_facts: bool,
}
