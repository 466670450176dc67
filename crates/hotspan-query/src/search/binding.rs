//! Binding: a batch of spans answers the fields of one query, each bound to its columns once.

use std::sync::Arc;

use arrow::array::{
    Array, AsArray, BooleanArray, FixedSizeBinaryArray, Float64Array, Int8Array, Int32Array, Int64Array, MapArray,
    RecordBatch, StringArray, TimestampNanosecondArray,
};
use arrow::datatypes::TimestampNanosecondType;
use hashbrown::{HashMap, HashSet};
use hotspan_lake::arrays::{self, Texts};
use hotspan_lake::compaction::attributes::ATTRIBUTE_PREFIX;
use hotspan_model::{SpanId, SpanKind, StatusCode, TraceId, Value as AttributeValue, attributes_from_json};
use hotspan_traceql::ast::{Field, Intrinsic, Scope};
use hotspan_traceql::{FieldId, FieldTable, FieldValue, Program, SpanSource, TraceSource, Value, adjusted_count};

use super::chunk_fold::Place;
use super::gather::holds_attribute;
use super::profile_fields::{ProfileFields, is_profile_field};
use crate::error::Result;

/// The columns that every evaluation reads, whatever the query asks.
pub(super) const CORE_COLUMNS: [&str; 8] =
    ["trace_id", "span_id", "parent_span_id", "start_time", "duration", "service", "name", "status"];

/// The columns that a query's fields need, besides the attribute columns of each file, for traces as a whole.
pub(crate) fn columns_of(fields: &FieldTable) -> Vec<String> {
    let mut columns = field_columns(fields);
    columns.extend(CORE_COLUMNS.iter().map(|name| (*name).to_owned()));
    sorted(columns)
}

/// The columns that tell whether a trace matches, besides `others`.
pub(super) fn judged_columns(program: &Program, others: &[&str]) -> Vec<String> {
    let needs = program.needs();
    let mut columns = field_columns(program.fields());
    let mut add = |names: &[&str]| columns.extend(names.iter().map(|name| (*name).to_owned()));
    add(&["trace_id", "span_id", "start_time"]);
    add(others);
    if needs.structure || needs.trace_facts {
        add(&["parent_span_id"]);
    }
    if needs.trace_facts {
        add(&["duration", "service", "name"]);
    }
    sorted(columns)
}

/// The columns that are needed to judge spans one by one: those of the fields, and `others`.
pub(super) fn scan_columns(fields: &FieldTable, others: &[&str]) -> Vec<String> {
    let mut columns = field_columns(fields);
    columns.extend(others.iter().map(|name| (*name).to_owned()));
    sorted(columns)
}

fn sorted(columns: HashSet<String>) -> Vec<String> {
    let mut columns: Vec<String> = columns.into_iter().collect();
    columns.sort_unstable();
    columns
}

fn field_columns(fields: &FieldTable) -> HashSet<String> {
    let mut columns: HashSet<String> = HashSet::new();
    for (_, field) in fields.iter() {
        if let Field::Attribute { scope: Scope::Span | Scope::Unscoped, name, .. } = field {
            columns.insert(format!("{ATTRIBUTE_PREFIX}{name}"));
        }
        columns.extend(columns_of_field(field).iter().map(|name| (*name).to_owned()));
    }
    columns
}

/// The columns that a field needs, besides the attribute column of a file.
pub(super) fn columns_of_field(field: &Field) -> &'static [&'static str] {
    match field {
        Field::Intrinsic(intrinsic) => match intrinsic {
            Intrinsic::Duration => &["duration"],
            Intrinsic::Name => &["name"],
            Intrinsic::Status => &["status"],
            Intrinsic::StatusMessage => &["status_message"],
            Intrinsic::Kind => &["kind"],
            Intrinsic::SpanId => &["span_id"],
            Intrinsic::ParentId => &["parent_span_id"],
            Intrinsic::TraceId => &["trace_id"],
            // Times of events are told from the start of their span.
            Intrinsic::EventName | Intrinsic::EventTimeSinceStart => &["events", "start_time"],
            Intrinsic::LinkTraceId | Intrinsic::LinkSpanId => &["links"],
            Intrinsic::InstrumentationName | Intrinsic::InstrumentationVersion => &["scope"],
            profile if is_profile_field(*profile) => &["trace_id", "span_id"],
            _ => &[],
        },
        Field::Attribute { scope: Scope::Resource, name, .. } if name == "service.name" => &["service"],
        Field::Attribute { scope, .. } => match scope {
            Scope::Span => &["attributes", "attributes_json"],
            Scope::Resource => &["resource"],
            Scope::Event => &["events", "start_time"],
            Scope::Link => &["links"],
            Scope::Instrumentation => &["scope"],
            Scope::Unscoped => {
                &["attributes", "attributes_json", "resource", "service", "events", "start_time", "links", "scope"]
            }
        },
    }
}

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

/// A text column by itself, plain or coded.
#[derive(Debug)]
enum TextValues {
    Plain(StringArray),
    Coded(Int32Array, StringArray),
    Missing,
}

impl TextValues {
    fn of(batch: &RecordBatch, column: &str) -> Self {
        match arrays::texts(batch, column) {
            Ok(Texts::Plain(texts)) => Self::Plain(texts.clone()),
            Ok(Texts::Coded(codes, texts)) => Self::Coded(codes.keys().clone(), texts.clone()),
            Err(_) => Self::Missing,
        }
    }

    /// The numbers of its texts, if it has numbered them.
    fn codes(&self) -> Option<&Int32Array> {
        match self {
            Self::Coded(codes, _) => Some(codes),
            _ => None,
        }
    }

    fn get(&self, row: usize) -> &str {
        match self {
            Self::Plain(texts) if texts.is_valid(row) => texts.value(row),
            Self::Coded(codes, texts) if codes.is_valid(row) => texts.value(codes.value(row) as usize),
            _ => "",
        }
    }
}

#[derive(Debug)]
enum Binding {
    Nothing,
    Duration,
    Name,
    Status(Int8Array),
    StatusMessage(TextValues),
    Kind(Int8Array),
    SpanId,
    ParentId,
    TraceId,
    Service,
    /// One value for each code of a dictionary column.
    Coded {
        codes: Int32Array,
        values: Vec<Value>,
    },
    /// An attribute of the span: its column, if the file has one, and the maps.
    SpanAttribute(Box<SpanAttribute>),
    /// Values of events or links.
    Sparse(SparseValues),
    /// A number that profiles know.
    ProfileFact(Intrinsic),
    /// Functions or files that profiles know, for the rows that have some.
    ProfileNames(Intrinsic, HashMap<usize, Vec<u32>>),
    /// The first of several bindings that has a value.
    FirstOf(Vec<Binding>),
}

/// Several values for few rows.
type SparseValues = HashMap<usize, Vec<Value>>;

#[derive(Debug)]
pub(crate) struct SpanAttribute {
    key: String,
    /// Usually one; several where files have different types for the attribute.
    columns: Vec<AttributeColumn>,
    texts: Option<MapArray>,
    others: Option<MapArray>,
    arrays: SparseValues,
}

#[derive(Debug)]
enum AttributeColumn {
    Text(StringArray),
    Coded(Int32Array, StringArray),
    Int(Int64Array),
    Double(Float64Array),
    Bool(BooleanArray),
}

impl AttributeColumn {
    fn of(column: &dyn Array) -> Option<Self> {
        if let Some(Texts::Coded(codes, texts)) = arrays::texts_of(column) {
            return Some(Self::Coded(codes.keys().clone(), texts.clone()));
        }
        let any = column.as_any();
        any.downcast_ref().cloned().map(Self::Text).or_else(|| any.downcast_ref().cloned().map(Self::Int)).or_else(
            || any.downcast_ref().cloned().map(Self::Double).or_else(|| any.downcast_ref().cloned().map(Self::Bool)),
        )
    }

    fn get(&self, row: usize) -> FieldValue<'_> {
        match self {
            Self::Text(texts) if texts.is_valid(row) => FieldValue::Str(texts.value(row)),
            Self::Coded(codes, texts) if codes.is_valid(row) => FieldValue::Str(texts.value(codes.value(row) as usize)),
            Self::Int(values) if values.is_valid(row) => FieldValue::Int(values.value(row)),
            Self::Double(values) if values.is_valid(row) => FieldValue::Float(values.value(row)),
            Self::Bool(values) if values.is_valid(row) => FieldValue::Bool(values.value(row)),
            _ => FieldValue::Nil,
        }
    }
}

impl SpanAttribute {
    pub(crate) fn of(batch: &RecordBatch, name: &str) -> Self {
        let columns = batch.schema_ref().fields().iter().zip(batch.columns());
        let columns = columns.filter(|(field, _)| holds_attribute(field.name(), name));
        Self {
            key: name.to_owned(),
            columns: columns.filter_map(|(_, column)| AttributeColumn::of(column.as_ref())).collect(),
            texts: arrays::maps(batch, "attributes").ok().cloned(),
            others: arrays::maps(batch, "attributes_json").ok().cloned(),
            arrays: array_attributes(batch, name),
        }
    }

    pub(crate) fn get(&self, row: usize) -> FieldValue<'_> {
        for column in &self.columns {
            let value = column.get(row);
            if value != FieldValue::Nil {
                return value;
            }
        }
        if let Some(values) = self.arrays.get(&row) {
            return FieldValue::Many(values.len());
        }
        if let Some(text) = self.texts.as_ref().and_then(|map| map_value(map, &self.key, row)) {
            return FieldValue::Str(text);
        }
        let json = self.others.as_ref().and_then(|map| map_value(map, &self.key, row));
        json.map_or(FieldValue::Nil, scalar_from_json)
    }
}

fn sparse_element(values: &SparseValues, row: usize, index: usize) -> FieldValue<'_> {
    values.get(&row).and_then(|values| values.get(index)).map_or(FieldValue::Nil, Value::as_field_value)
}

fn map_value<'a>(map: &'a MapArray, key: &str, row: usize) -> Option<&'a str> {
    let keys = map.keys().as_string_opt::<i32>()?;
    let mut range = map.value_offsets()[row] as usize..map.value_offsets()[row + 1] as usize;
    let entry = range.find(|entry| keys.value(*entry) == key)?;
    Some(map.values().as_string_opt::<i32>()?.value(entry))
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
        self.statuses.as_ref().is_some_and(|codes| codes.value(self.row(span)) == StatusCode::Error as i8)
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
            Binding::Status(codes) => FieldValue::Status(StatusCode::from_number(i64::from(codes.value(row)))),
            Binding::StatusMessage(texts) => FieldValue::Str(texts.get(row)),
            Binding::Kind(codes) => FieldValue::Kind(SpanKind::from_number(i64::from(codes.value(row)))),
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
            let (keys, values) = (map.keys().as_string::<i32>(), map.values().as_string::<i32>());
            for entry in map.value_offsets()[row] as usize..map.value_offsets()[row + 1] as usize {
                let value = values.value(entry);
                let value = if is_json { scalar_from_json(value) } else { FieldValue::Str(value) };
                visit(Scope::Span, keys.value(entry), value);
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

fn bind_field(batch: &RecordBatch, field: &Field) -> Result<Binding> {
    Ok(match field {
        Field::Intrinsic(intrinsic) => match intrinsic {
            Intrinsic::Duration => Binding::Duration,
            Intrinsic::Name => Binding::Name,
            Intrinsic::Status => Binding::Status(arrays::int8s(batch, "status")?.clone()),
            Intrinsic::StatusMessage => Binding::StatusMessage(TextValues::of(batch, "status_message")),
            Intrinsic::Kind => Binding::Kind(arrays::int8s(batch, "kind")?.clone()),
            Intrinsic::SpanId => Binding::SpanId,
            Intrinsic::ParentId => Binding::ParentId,
            Intrinsic::TraceId => Binding::TraceId,
            Intrinsic::EventName => Binding::Sparse(event_values(batch, |events, at, _| {
                vec![Value::Str(events.column(1).as_string::<i32>().value(at).to_owned())]
            })?),
            Intrinsic::EventTimeSinceStart => Binding::Sparse(event_values(batch, |events, at, start| {
                let time = events.column(0).as_primitive::<TimestampNanosecondType>().value(at);
                vec![Value::Duration(time.saturating_sub(start))]
            })?),
            Intrinsic::LinkTraceId => Binding::Sparse(link_values(batch, |links, at| {
                let id = TraceId(arrays::id_at(links.column(0).as_fixed_size_binary(), at));
                vec![Value::Str(id.to_string())]
            })?),
            Intrinsic::LinkSpanId => Binding::Sparse(link_values(batch, |links, at| {
                let id = SpanId(arrays::id_at(links.column(1).as_fixed_size_binary(), at));
                vec![Value::Str(id.to_string())]
            })?),
            Intrinsic::InstrumentationName => coded(batch, "scope", |scope| text_member(scope, "name")),
            Intrinsic::InstrumentationVersion => coded(batch, "scope", |scope| text_member(scope, "version")),
            Intrinsic::ProfileFunction | Intrinsic::ProfileFile => Binding::ProfileNames(*intrinsic, HashMap::new()),
            profile if is_profile_field(*profile) => Binding::ProfileFact(*profile),
            // Facts about the tree and the trace are derived by the evaluator.
            _ => Binding::Nothing,
        },
        Field::Attribute { scope, name, .. } => bind_attribute(batch, *scope, name)?,
    })
}

fn bind_attribute(batch: &RecordBatch, scope: Scope, name: &str) -> Result<Binding> {
    Ok(match scope {
        Scope::Span => Binding::SpanAttribute(Box::new(SpanAttribute::of(batch, name))),
        Scope::Resource if name == "service.name" => Binding::Service,
        Scope::Resource => coded(batch, "resource", |resource| attribute_member(resource, name)),
        Scope::Instrumentation => coded(batch, "scope", |scope| attribute_member(scope, name)),
        Scope::Event => Binding::Sparse(event_values(batch, |events, at, _| {
            attribute_values(events.column(2).as_string::<i32>().value(at), name)
        })?),
        Scope::Link => Binding::Sparse(link_values(batch, |links, at| {
            attribute_values(links.column(3).as_string::<i32>().value(at), name)
        })?),
        Scope::Unscoped => Binding::FirstOf(
            [Scope::Span, Scope::Resource, Scope::Event, Scope::Link, Scope::Instrumentation]
                .into_iter()
                .map(|scope| bind_attribute(batch, scope, name))
                .collect::<Result<_>>()?,
        ),
    })
}

/// The codes of a column that many spans share a value of, such as their resource, and the value of a field for each.
pub(super) fn coded_values(batch: &RecordBatch, field: &Field) -> Option<(Int32Array, Vec<Value>)> {
    match bind_field(batch, field).ok()? {
        Binding::Coded { codes, values } => Some((codes, values)),
        _ => None,
    }
}

/// One value for each distinct text of a dictionary column.
fn coded(batch: &RecordBatch, column: &str, value_of: impl Fn(&serde_json::Value) -> Value) -> Binding {
    let Ok(Texts::Coded(codes, distinct)) = arrays::texts(batch, column) else { return Binding::Nothing };
    let values = (0..distinct.len()).map(|code| {
        let json: serde_json::Value = serde_json::from_str(distinct.value(code)).unwrap_or_default();
        value_of(&json)
    });
    Binding::Coded { codes: codes.keys().clone(), values: values.collect() }
}

fn text_member(json: &serde_json::Value, key: &str) -> Value {
    json[key].as_str().map_or(Value::Nil, |text| Value::Str(text.to_owned()))
}

fn attribute_member(json: &serde_json::Value, name: &str) -> Value {
    let attributes = attributes_from_json(&json["attributes"].to_string());
    attributes.iter().find(|attribute| attribute.key == name).map_or(Value::Nil, |attribute| owned(&attribute.value))
}

fn attribute_values(json: &str, name: &str) -> Vec<Value> {
    let attributes = attributes_from_json(json);
    let found = attributes.iter().find(|attribute| attribute.key == name).map(|attribute| owned(&attribute.value));
    match found {
        Some(Value::Array(values)) => values,
        Some(Value::Nil) | None => Vec::new(),
        Some(single) => vec![single],
    }
}

/// Attributes of spans that are arrays, for the rows that have one.
fn array_attributes(batch: &RecordBatch, name: &str) -> SparseValues {
    let mut found = SparseValues::new();
    let Ok(map) = arrays::maps(batch, "attributes_json") else { return found };
    let (keys, values) = (map.keys().as_string::<i32>(), map.values().as_string::<i32>());
    for row in 0..batch.num_rows() {
        for entry in map.value_offsets()[row] as usize..map.value_offsets()[row + 1] as usize {
            if keys.value(entry) == name
                && values.value(entry).starts_with('[')
                && let Ok(value) = AttributeValue::from_json(values.value(entry))
                && let Value::Array(values) = owned(&value)
            {
                found.insert(row, values);
            }
        }
    }
    found
}

fn event_values(
    batch: &RecordBatch,
    values_of: impl Fn(&arrow::array::StructArray, usize, i64) -> Vec<Value>,
) -> Result<SparseValues> {
    let lists = arrays::lists(batch, "events")?;
    let starts = arrays::times(batch, "start_time")?.values();
    let Some(events) = lists.values().as_struct_opt() else { return Ok(SparseValues::new()) };
    let mut found = SparseValues::new();
    for (row, start) in starts.iter().enumerate() {
        let range = lists.value_offsets()[row] as usize..lists.value_offsets()[row + 1] as usize;
        let values: Vec<Value> = range.flat_map(|at| values_of(events, at, *start)).collect();
        if !values.is_empty() {
            found.insert(row, values);
        }
    }
    Ok(found)
}

fn link_values(
    batch: &RecordBatch,
    values_of: impl Fn(&arrow::array::StructArray, usize) -> Vec<Value>,
) -> Result<SparseValues> {
    let lists = arrays::lists(batch, "links")?;
    let Some(links) = lists.values().as_struct_opt() else { return Ok(SparseValues::new()) };
    let mut found = SparseValues::new();
    for row in 0..batch.num_rows() {
        let range = lists.value_offsets()[row] as usize..lists.value_offsets()[row + 1] as usize;
        let values: Vec<Value> = range.flat_map(|at| values_of(links, at)).collect();
        if !values.is_empty() {
            found.insert(row, values);
        }
    }
    Ok(found)
}

/// A scalar from its canonical JSON, without allocating; texts never come here.
pub(super) fn scalar_from_json(json: &str) -> FieldValue<'static> {
    match json {
        "true" => FieldValue::Bool(true),
        "false" => FieldValue::Bool(false),
        _ if json.contains(['.', 'e']) => json.parse().map_or(FieldValue::Nil, FieldValue::Float),
        _ => json.parse().map_or(FieldValue::Nil, FieldValue::Int),
    }
}

/// A stored attribute value as TraceQL has it; what TraceQL has no type for is shown as text.
pub(super) fn owned(value: &AttributeValue<'_>) -> Value {
    match value {
        AttributeValue::Empty => Value::Nil,
        AttributeValue::String(text) => Value::Str(text.clone().into_owned()),
        AttributeValue::Bool(value) => Value::Bool(*value),
        AttributeValue::Int(value) => Value::Int(*value),
        AttributeValue::Double(value) => Value::Float(*value),
        AttributeValue::Array(values) => Value::Array(values.iter().map(owned).collect()),
        other => {
            let mut json = String::new();
            other.write_json(&mut json);
            Value::Str(json)
        }
    }
}

fn single_or_many(value: &Value) -> FieldValue<'_> {
    match value {
        Value::Array(values) => FieldValue::Many(values.len()),
        single => single.as_field_value(),
    }
}
