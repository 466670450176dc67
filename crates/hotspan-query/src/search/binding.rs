//! Binding: a batch of spans answers the fields of one query, each bound to its columns once.

use std::sync::Arc;

use arrow::array::{Array, FixedSizeBinaryArray, Int8Array, Int64Array, RecordBatch, TimestampNanosecondArray};
use hotspan_lake::arrays;
use hotspan_lake::compaction::attributes::ATTRIBUTE_PREFIX;
use hotspan_model::{SpanId, SpanKind, StatusCode, TraceId, attributes_from_json};
use hotspan_traceql::ast::Scope;
use hotspan_traceql::{
    FieldColumn, FieldId, FieldTable, FieldValue, SpanColumns, SpanSource, TraceSource, Value, adjusted_count,
};

use super::chunk_fold::Place;
use super::field_binding::{Binding, bind_field};
use super::profile_fields::ProfileFields;
use super::span_attribute::{AttributeColumn, SparseValues, TextValues, owned, scalar_from_json};
use crate::error::Result;

/// A batch of spans that answers the fields of a query.
#[derive(Debug)]
pub(crate) struct BoundSpans {
    batch: RecordBatch,
    // A scan does not read what its question does not ask for; such columns answer with zeros.
    trace_ids: Option<FixedSizeBinaryArray>,
    span_ids: Option<FixedSizeBinaryArray>,
    parent_ids: Option<FixedSizeBinaryArray>,
    starts: Option<TimestampNanosecondArray>,
    durations: Option<Int64Array>,
    statuses: Option<Int8Array>,
    services: TextValues,
    names: TextValues,
    trace_states: TextValues,
    bindings: Vec<Binding>,
    profiles: Option<Arc<ProfileFields>>,
    /// Where the spans are stored, if that is to stand for the traces of spans.
    place: Option<Place>,
    /// The rows to show, in order; all rows if none.
    rows: Option<Vec<u32>>,
}

impl BoundSpans {
    /// Binds the fields of a query to a batch.
    pub(crate) fn bind(batch: RecordBatch, fields: &FieldTable) -> Result<Self> {
        let bindings = fields.iter().map(|(_, field)| bind_field(&batch, field)).collect::<Result<_>>()?;
        Ok(Self {
            trace_ids: arrays::ids(&batch, "trace_id").ok().cloned(),
            span_ids: arrays::ids(&batch, "span_id").ok().cloned(),
            parent_ids: arrays::ids(&batch, "parent_span_id").ok().cloned(),
            starts: arrays::times(&batch, "start_time").ok().cloned(),
            durations: arrays::int64s(&batch, "duration").ok().cloned(),
            statuses: arrays::int8s(&batch, "status").ok().cloned(),
            services: TextValues::of(&batch, "service"),
            names: TextValues::of(&batch, "name"),
            trace_states: TextValues::of(&batch, "trace_state"),
            batch,
            bindings,
            profiles: None,
            place: None,
            rows: None,
        })
    }

    /// Answers profile fields from what profiles know.
    pub(crate) fn with_profiles(mut self, profiles: Option<&Arc<ProfileFields>>) -> Self {
        let Some(profiles) = profiles else { return self };
        let mut bindings = std::mem::take(&mut self.bindings);
        for binding in &mut bindings {
            if let Binding::ProfileNames(intrinsic, by_row) = binding {
                for row in 0..self.batch.num_rows() {
                    let names = profiles.names(self.trace_id_at(row), self.span_id_at(row), *intrinsic);
                    if !names.is_empty() {
                        by_row.insert(row, names);
                    }
                }
            }
        }
        self.bindings = bindings;
        self.profiles = Some(Arc::clone(profiles));
        self
    }

    /// Lets places stand for the traces of spans, if those were not read.
    pub(super) fn at(mut self, place: Place) -> Self {
        self.place = Some(place).filter(|_| self.trace_ids.is_none());
        self
    }

    /// Shows only these rows from here on.
    pub(crate) fn show(&mut self, rows: Vec<u32>) {
        self.rows = Some(rows);
    }

    /// Whether a span ended with an error.
    pub(super) fn is_error(&self, span: usize) -> bool {
        self.statuses.as_ref().is_some_and(|codes| codes.value(self.row(span)) == StatusCode::Error.number())
    }

    /// How many spans are shown.
    pub(super) fn len(&self) -> usize {
        self.rows.as_ref().map_or(self.batch.num_rows(), Vec::len)
    }

    fn row(&self, span: usize) -> usize {
        self.rows.as_ref().map_or(span, |rows| rows[span] as usize)
    }

    fn parent_of(&self, row: usize) -> Option<SpanId> {
        let parents = self.parent_ids.as_ref()?;
        parents.is_valid(row).then(|| SpanId(arrays::id_at(parents, row)))
    }

    fn duration_at(&self, row: usize) -> i64 {
        self.durations.as_ref().map_or(0, |values| values.value(row))
    }

    fn span_id_at(&self, row: usize) -> SpanId {
        SpanId(self.span_ids.as_ref().map_or([0; 8], |ids| arrays::id_at(ids, row)))
    }

    fn trace_id_at(&self, row: usize) -> TraceId {
        match (&self.trace_ids, self.place) {
            (Some(ids), _) => TraceId(arrays::id_at(ids, row)),
            (None, Some(place)) => place.as_trace_id(row),
            (None, None) => TraceId([0; 16]),
        }
    }

    fn read<'a>(&'a self, binding: &'a Binding, row: usize) -> FieldValue<'a> {
        match binding {
            Binding::Nothing => FieldValue::Nil,
            Binding::Duration => FieldValue::Duration(self.duration_at(row)),
            Binding::Name => FieldValue::Str(self.names.get(row)),
            Binding::Status(codes) => FieldValue::Status(StatusCode::from_number(codes.value(row))),
            Binding::StatusMessage(texts) => FieldValue::Str(texts.get(row)),
            Binding::Kind(codes) => FieldValue::Kind(SpanKind::from_number(codes.value(row))),
            Binding::SpanId => FieldValue::SpanId(self.span_id_at(row)),
            Binding::ParentId => match self.parent_of(row) {
                Some(parent) => FieldValue::SpanId(parent),
                None => FieldValue::Str(""),
            },
            Binding::TraceId => FieldValue::TraceId(self.trace_id_at(row)),
            Binding::Service => FieldValue::Str(self.services.get(row)),
            Binding::Coded { codes, values } if codes.is_valid(row) => {
                single_or_many(&values[codes.value(row) as usize])
            }
            Binding::Coded { .. } => FieldValue::Nil,
            Binding::SpanAttribute(attribute) => attribute.get(row),
            Binding::Sparse(values) => {
                values.get(&row).map_or(FieldValue::Nil, |values| FieldValue::Many(values.len()))
            }
            Binding::ProfileFact(intrinsic) => self.profiles.as_ref().map_or(FieldValue::Nil, |profiles| {
                profiles.value(self.trace_id_at(row), self.span_id_at(row), *intrinsic)
            }),
            Binding::ProfileNames(_, by_row) => {
                by_row.get(&row).map_or(FieldValue::Nil, |names| FieldValue::Many(names.len()))
            }
            Binding::FirstOf(bindings) => bindings
                .iter()
                .map(|binding| self.read(binding, row))
                .find(|value| *value != FieldValue::Nil)
                .unwrap_or(FieldValue::Nil),
        }
    }

    fn read_element<'a>(&'a self, binding: &'a Binding, row: usize, index: usize) -> FieldValue<'a> {
        match binding {
            Binding::Sparse(values) => sparse_element(values, row, index),
            Binding::SpanAttribute(attribute) => sparse_element(&attribute.arrays, row, index),
            Binding::ProfileNames(intrinsic, by_row) => {
                let number = by_row.get(&row).and_then(|names| names.get(index));
                let text =
                    number.zip(self.profiles.as_ref()).map(|(number, profiles)| profiles.name(*intrinsic, *number));
                text.map_or(FieldValue::Nil, FieldValue::Str)
            }
            Binding::Coded { codes, values } if codes.is_valid(row) => match &values[codes.value(row) as usize] {
                Value::Array(values) => values.get(index).map_or(FieldValue::Nil, Value::as_field_value),
                single => single.as_field_value(),
            },
            Binding::FirstOf(bindings) => bindings
                .iter()
                .find(|binding| self.read(binding, row) != FieldValue::Nil)
                .map_or(FieldValue::Nil, |binding| self.read_element(binding, row, index)),
            _ => FieldValue::Nil,
        }
    }
}

impl SpanSource for BoundSpans {
    fn value(&self, span: usize, field: FieldId) -> FieldValue<'_> {
        self.bindings.get(field.index()).map_or(FieldValue::Nil, |binding| self.read(binding, self.row(span)))
    }

    fn code(&self, span: usize, field: FieldId) -> Option<u32> {
        let row = self.row(span);
        let codes = match self.bindings.get(field.index())? {
            Binding::Name => self.names.codes()?,
            Binding::Service => self.services.codes()?,
            Binding::Coded { codes, .. } => codes,
            Binding::SpanAttribute(attribute) => match attribute.columns.as_slice() {
                [AttributeColumn::Coded(codes, _)] => codes,
                _ => return None,
            },
            _ => return None,
        };
        codes.is_valid(row).then(|| codes.value(row) as u32)
    }

    fn columns(&self) -> Option<SpanColumns<'_>> {
        let starts = self.starts.as_ref().filter(|_| self.rows.is_none())?.values();
        let span_ids = self.span_ids.as_ref().map(|ids| ids.value_data().as_chunks().0);
        Some(SpanColumns { starts, span_ids })
    }

    fn field_column(&self, field: FieldId) -> Option<FieldColumn<'_>> {
        let codes = match self.bindings.get(field.index()).filter(|_| self.rows.is_none())? {
            Binding::Duration => return self.durations.as_ref().map(|column| FieldColumn::Durations(column.values())),
            Binding::Name => self.names.codes()?,
            Binding::Service => self.services.codes()?,
            Binding::Coded { codes, .. } => codes,
            _ => return None,
        };
        (codes.null_count() == 0).then(|| FieldColumn::Codes(codes.values()))
    }

    fn element(&self, span: usize, field: FieldId, index: usize) -> FieldValue<'_> {
        let binding = self.bindings.get(field.index());
        binding.map_or(FieldValue::Nil, |binding| self.read_element(binding, self.row(span), index))
    }

    fn start_nanos(&self, span: usize) -> i64 {
        self.starts.as_ref().map_or(0, |starts| starts.value(self.row(span)))
    }

    fn span_id(&self, span: usize) -> SpanId {
        self.span_id_at(self.row(span))
    }

    fn trace_id(&self, span: usize) -> TraceId {
        self.trace_id_at(self.row(span))
    }

    fn adjusted_count(&self, span: usize) -> f64 {
        adjusted_count(self.trace_states.get(self.row(span)))
    }

    fn for_each_attribute(&self, span: usize, visit: &mut dyn FnMut(Scope, &str, FieldValue<'_>)) {
        let row = self.row(span);
        for (field, column) in self.batch.schema_ref().fields().iter().zip(self.batch.columns()) {
            if let Some(key) = field.name().strip_prefix(ATTRIBUTE_PREFIX)
                && let Some(column) = AttributeColumn::of(column.as_ref())
                && column.get(row) != FieldValue::Nil
            {
                visit(Scope::Span, key, column.get(row));
            }
        }
        for (column, is_json) in [("attributes", false), ("attributes_json", true)] {
            let Ok(map) = arrays::maps(&self.batch, column) else { continue };
            for entry in map.entries_of(row) {
                let value = map.value(entry);
                let value = if is_json { scalar_from_json(value) } else { FieldValue::Str(value) };
                visit(Scope::Span, map.key(entry), value);
            }
        }
        let resource = arrays::texts(&self.batch, "resource").map_or("", |texts| texts.get(row));
        let resource: serde_json::Value = serde_json::from_str(resource).unwrap_or_default();
        for attribute in attributes_from_json(&resource["attributes"].to_string()) {
            visit(Scope::Resource, &attribute.key, owned(&attribute.value).as_field_value());
        }
    }
}

impl TraceSource for BoundSpans {
    fn span_count(&self) -> usize {
        self.len()
    }

    fn parent_id(&self, span: usize) -> Option<SpanId> {
        self.parent_of(self.row(span))
    }

    fn duration_nanos(&self, span: usize) -> i64 {
        self.duration_at(self.row(span))
    }

    fn name(&self, span: usize) -> &str {
        self.names.get(self.row(span))
    }

    fn service_name(&self, span: usize) -> &str {
        self.services.get(self.row(span))
    }
}

fn sparse_element(values: &SparseValues, row: usize, index: usize) -> FieldValue<'_> {
    values.get(&row).and_then(|values| values.get(index)).map_or(FieldValue::Nil, Value::as_field_value)
}

fn single_or_many(value: &Value) -> FieldValue<'_> {
    match value {
        Value::Array(values) => FieldValue::Many(values.len()),
        single => single.as_field_value(),
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::ArrayRef;
    use arrow::datatypes::Int32Type;
    use hotspan_traceql::{MetricsLimits, Program, TimeGrid, TraceView};
    use proptest::prelude::*;

    use super::*;

    /// Spans with a start, a duration and the number of their service.
    fn batch(spans: &[(i64, i64, u8)]) -> RecordBatch {
        let ids = |size: usize| {
            let numbers = (0..spans.len() as u64).map(|number| number.to_be_bytes().repeat(size / 8));
            Arc::new(FixedSizeBinaryArray::try_from_iter(numbers).unwrap()) as ArrayRef
        };
        let services: arrow::array::DictionaryArray<Int32Type> =
            spans.iter().map(|(_, _, service)| ["shop", "cart", "mail"][usize::from(*service)]).collect();
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("trace_id", ids(16)),
            ("span_id", ids(8)),
            ("start_time", Arc::new(TimestampNanosecondArray::from_iter_values(spans.iter().map(|span| span.0)))),
            ("duration", Arc::new(Int64Array::from_iter_values(spans.iter().map(|span| span.1)))),
            ("service", Arc::new(services)),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    }

    proptest! {
        /// Scenario: metrics that arrays can answer, with and without a condition, of random spans, some out of time.
        /// Guarantee: folded as arrays and folded span by span, they are the same, exemplars and all.
        #[test]
        fn arrays_are_folded_as_spans_are(
            spans in prop::collection::vec((-50i64..150, -2i64..5_000_000_000, 0u8..3), 1..200),
            filter in prop_oneof![Just("{ }"), Just("{ duration > 1s }")],
            function in prop_oneof![
                Just("rate()"),
                Just("count_over_time() by (resource.service.name)"),
                Just("quantile_over_time(duration, .5, .99) by (resource.service.name)"),
                Just("histogram_over_time(duration)"),
            ],
        ) {
            let program = Program::new(&format!("{filter} | {function}")).unwrap();
            let metrics = program.metrics().unwrap();
            let fold = |with_arrays: bool| {
                let mut bound = BoundSpans::bind(batch(&spans), program.fields()).unwrap();
                if !with_arrays {
                    bound.show((0..spans.len() as u32).collect());
                }
                assert_eq!(bound.columns().is_some(), with_arrays);
                let limits = MetricsLimits { exemplars: 7, ..MetricsLimits::default() };
                let mut state = metrics.start(TimeGrid::range(0, 100, 10).unwrap(), limits);
                metrics.observe_batch(&mut state, &TraceView::of_batch(&bound), 0..spans.len()).unwrap();
                // Not-a-number is equal to itself as text.
                format!("{:?}", metrics.finish(state))
            };
            prop_assert_eq!(fold(true), fold(false));
        }
    }
}
