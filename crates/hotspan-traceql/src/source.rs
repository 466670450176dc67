//! How an engine shows its spans to the evaluator.
//!
//! A query names its fields once, as dense [`FieldId`]s; a source binds each of them to a column when it is made and
//! answers by position from then on. All calls are statically dispatched.

use hotspan_model::{SpanId, TraceId};

use crate::ast::Scope;
use crate::plan::FieldId;
use crate::value::FieldValue;

/// A batch of spans, of one trace or of many.
pub trait SpanSource {
    /// The value of a field for a span.
    ///
    /// An unscoped attribute is the first of span, resource, event, link and instrumentation that has the name. Fields
    /// of events and links, arrays and profile functions give [`FieldValue::Many`] (or nil if there are none; a single
    /// one may be given plainly).
    fn value(&self, span: usize, field: FieldId) -> FieldValue<'_>;

    /// The number of a field's value for a span, where the source has numbered the distinct values of the field: spans
    /// with the same number have the same value. None if it has not, or if the span has no value.
    fn code(&self, _span: usize, _field: FieldId) -> Option<u32> {
        None
    }

    /// What every span has, where the source has it side by side.
    fn columns(&self) -> Option<SpanColumns<'_>> {
        None
    }

    /// The values of a field, one for each span, where the source has them side by side.
    fn field_column(&self, _field: FieldId) -> Option<FieldColumn<'_>> {
        None
    }

    /// One of the values that [`FieldValue::Many`] announced.
    fn element(&self, span: usize, field: FieldId, index: usize) -> FieldValue<'_>;

    /// Start of a span in nanoseconds since 1970.
    fn start_nanos(&self, span: usize) -> i64;

    /// The id of a span.
    fn span_id(&self, span: usize) -> SpanId;

    /// The trace a span belongs to.
    fn trace_id(&self, span: usize) -> TraceId;

    /// How many spans a span stands for, where its trace state says so; only `with(extrapolate=true)` asks.
    fn adjusted_count(&self, _span: usize) -> f64 {
        1.0
    }

    /// Calls `visit` for every attribute of a span and its resource that has a single value; only `compare()` asks.
    fn for_each_attribute(&self, span: usize, visit: &mut dyn FnMut(Scope, &str, FieldValue<'_>));
}

/// What every span of a source has, by span.
#[derive(Debug, Clone, Copy)]
pub struct SpanColumns<'s> {
    /// As [`SpanSource::start_nanos`] gives them.
    pub starts: &'s [i64],
    /// As [`SpanSource::span_id`] gives them; none if they were not read.
    pub span_ids: Option<&'s [[u8; 8]]>,
}

/// The values of a field, by span. Every span has one.
#[derive(Debug, Clone, Copy)]
pub enum FieldColumn<'s> {
    /// Their numbers, as [`SpanSource::code`] gives them.
    Codes(&'s [i32]),
    /// Durations in nanoseconds.
    Durations(&'s [i64]),
}

/// All spans of one trace.
pub trait TraceSource: SpanSource {
    /// How many spans there are.
    fn span_count(&self) -> usize;

    /// The id of a span's parent; `None` for a root.
    fn parent_id(&self, span: usize) -> Option<SpanId>;

    /// Length of a span in nanoseconds.
    fn duration_nanos(&self, span: usize) -> i64;

    /// Name of a span.
    fn name(&self, span: usize) -> &str;

    /// `service.name` of a span's resource, or an empty text.
    fn service_name(&self, span: usize) -> &str;
}
