//! Fields bound to the columns of a batch: where the values of each are, found once.

use arrow::array::{Array, AsArray, Int8Array, Int32Array, RecordBatch, StructArray};
use arrow::datatypes::TimestampNanosecondType;
use hashbrown::HashMap;
use hotspan_lake::arrays::{self, Texts};
use hotspan_model::{SpanId, TraceId, attributes_from_json};
use hotspan_traceql::Value;
use hotspan_traceql::ast::{Field, Intrinsic, Scope};

use super::profile_fields::is_profile_field;
use super::span_attribute::{SpanAttribute, SparseValues, TextValues, owned};
use crate::error::Result;

#[derive(Debug)]
pub(super) enum Binding {
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

/// Binds a field to a batch.
pub(super) fn bind_field(batch: &RecordBatch, field: &Field) -> Result<Binding> {
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

fn event_values(
    batch: &RecordBatch,
    values_of: impl Fn(&StructArray, usize, i64) -> Vec<Value>,
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

fn link_values(batch: &RecordBatch, values_of: impl Fn(&StructArray, usize) -> Vec<Value>) -> Result<SparseValues> {
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
