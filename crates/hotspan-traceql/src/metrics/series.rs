//! The answer of a metrics query.

use hotspan_model::{SpanId, TraceId};

use crate::value::Value;

/// A value at a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Right edge of the interval, in nanoseconds since 1970.
    pub timestamp_nanos: i64,
    /// The value; durations are in seconds.
    pub value: f64,
}

/// A span that stands for a point.
#[derive(Debug, Clone, PartialEq)]
pub struct Exemplar {
    /// Its trace.
    pub trace_id: TraceId,
    /// Itself.
    pub span_id: SpanId,
    /// Its start, in nanoseconds since 1970.
    pub timestamp_nanos: i64,
    /// Its measured value, or the value of the series at its time where spans are merely counted.
    pub value: f64,
}

/// Labels and the values under them. Points without a value are left out.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Series {
    /// Names with typed values.
    pub labels: Vec<(String, Value)>,
    /// In order of time.
    pub points: Vec<Point>,
    /// In order of time.
    pub exemplars: Vec<Exemplar>,
}

/// Label of a series without groups: the name of its function.
pub(super) const NAME: &str = "__name__";
/// Label of a quantile.
pub(super) const QUANTILE: &str = "p";
/// Label of a histogram's bucket: its upper bound.
pub(super) const BUCKET: &str = "__bucket";
/// Label that says which part of `compare()` a series is.
pub(super) const META_TYPE: &str = "__meta_type";
/// Label of an attribute that `compare()` could not report in full.
pub(super) const META_ERROR: &str = "__meta_error";
