//! A trace in memory, for tests and small tools. It looks attributes up by name: engines bind columns instead.

use hotspan_model::{SpanId, TraceId};

use crate::ast::{Field, Intrinsic, Kind, Scope, Status};
use crate::plan::{FieldId, FieldTable};
use crate::source::{SpanSource, TraceSource};
use crate::value::{FieldValue, Value};

/// Named values.
pub type Attributes = Vec<(String, Value)>;

/// One span with everything a query can ask.
#[derive(Debug, Clone, Default, PartialEq)]
#[allow(missing_docs)]
pub struct MemorySpan {
    pub id: SpanId,
    pub parent_id: Option<SpanId>,
    pub name: String,
    pub kind: Kind,
    pub status: Status,
    pub status_message: String,
    pub start_nanos: i64,
    pub duration_nanos: i64,
    pub attributes: Attributes,
    pub resource: Attributes,
    pub instrumentation_name: String,
    pub instrumentation_version: String,
    pub instrumentation: Attributes,
    pub events: Vec<MemoryEvent>,
    pub links: Vec<MemoryLink>,
    pub profile: Option<MemoryProfile>,
}

/// An event of a span.
#[derive(Debug, Clone, Default, PartialEq)]
#[allow(missing_docs)]
pub struct MemoryEvent {
    pub name: String,
    pub since_start_nanos: i64,
    pub attributes: Attributes,
}

/// A link of a span.
#[derive(Debug, Clone, Default, PartialEq)]
#[allow(missing_docs)]
pub struct MemoryLink {
    pub trace_id: TraceId,
    pub span_id: SpanId,
    pub attributes: Attributes,
}

/// What profiles know of a span.
#[derive(Debug, Clone, Default, PartialEq)]
#[allow(missing_docs)]
pub struct MemoryProfile {
    pub cpu_nanos: i64,
    pub wall_nanos: i64,
    pub samples: i64,
    pub functions: Vec<String>,
    pub files: Vec<String>,
}

/// A trace in memory.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MemoryTrace {
    /// Its id.
    pub id: TraceId,
    /// Its spans in any order.
    pub spans: Vec<MemorySpan>,
}

/// A trace in memory that answers the fields of one query.
#[derive(Debug, Clone, Copy)]
pub struct BoundTrace<'a> {
    trace: &'a MemoryTrace,
    fields: &'a FieldTable,
}

impl MemoryTrace {
    /// Makes the trace answer the fields of a query.
    pub fn bind<'a>(&'a self, fields: &'a FieldTable) -> BoundTrace<'a> {
        BoundTrace { trace: self, fields }
    }
}

fn find<'a>(attributes: &'a Attributes, name: &str) -> Option<&'a Value> {
    attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value)
}

fn single_or_many(value: &Value) -> FieldValue<'_> {
    match value {
        Value::Array(values) => FieldValue::Many(values.len()),
        single => single.as_field_value(),
    }
}

/// Values of several carriers (events, links) in one row; arrays among them are laid flat.
fn nth<'a>(values: impl Iterator<Item = &'a Value>, mut index: usize) -> FieldValue<'a> {
    for value in values {
        match value {
            Value::Array(inner) if index < inner.len() => return inner[index].as_field_value(),
            Value::Array(inner) => index -= inner.len(),
            single if index == 0 => return single.as_field_value(),
            _ => index -= 1,
        }
    }
    FieldValue::Nil
}

fn count_all<'a>(values: impl Iterator<Item = &'a Value>) -> FieldValue<'static> {
    let mut found = false;
    let mut count = 0;
    for value in values {
        found = true;
        count += if let Value::Array(inner) = value { inner.len() } else { 1 };
    }
    if found { FieldValue::Many(count) } else { FieldValue::Nil }
}

impl MemorySpan {
    fn attribute(&self, scope: Scope, name: &str) -> FieldValue<'_> {
        let own = |attributes| find(attributes, name).map_or(FieldValue::Nil, single_or_many);
        match scope {
            Scope::Span => own(&self.attributes),
            Scope::Resource => own(&self.resource),
            Scope::Instrumentation => own(&self.instrumentation),
            Scope::Event => count_all(self.events.iter().filter_map(|event| find(&event.attributes, name))),
            Scope::Link => count_all(self.links.iter().filter_map(|link| find(&link.attributes, name))),
            Scope::Unscoped => self.first_scope(name).map_or(FieldValue::Nil, |scope| self.attribute(scope, name)),
        }
    }

    /// The scope an unscoped name is found in.
    fn first_scope(&self, name: &str) -> Option<Scope> {
        [Scope::Span, Scope::Resource, Scope::Event, Scope::Link, Scope::Instrumentation]
            .into_iter()
            .find(|scope| self.attribute(*scope, name) != FieldValue::Nil)
    }

    fn attribute_element(&self, scope: Scope, name: &str, index: usize) -> FieldValue<'_> {
        let own = |attributes| nth(find(attributes, name).into_iter(), index);
        match scope {
            Scope::Span => own(&self.attributes),
            Scope::Resource => own(&self.resource),
            Scope::Instrumentation => own(&self.instrumentation),
            Scope::Event => nth(self.events.iter().filter_map(|event| find(&event.attributes, name)), index),
            Scope::Link => nth(self.links.iter().filter_map(|link| find(&link.attributes, name)), index),
            Scope::Unscoped => {
                self.first_scope(name).map_or(FieldValue::Nil, |scope| self.attribute_element(scope, name, index))
            }
        }
    }

    fn intrinsic(&self, intrinsic: Intrinsic) -> FieldValue<'_> {
        let many = |count: usize| if count > 0 { FieldValue::Many(count) } else { FieldValue::Nil };
        let profile = self.profile.as_ref();
        match intrinsic {
            Intrinsic::Duration => FieldValue::Duration(self.duration_nanos),
            Intrinsic::Name => FieldValue::Str(&self.name),
            Intrinsic::Status => FieldValue::Status(self.status),
            Intrinsic::StatusMessage => FieldValue::Str(&self.status_message),
            Intrinsic::Kind => FieldValue::Kind(self.kind),
            Intrinsic::SpanId => FieldValue::SpanId(self.id),
            Intrinsic::ParentId => self.parent_id.map_or(FieldValue::Str(""), FieldValue::SpanId),
            Intrinsic::EventName | Intrinsic::EventTimeSinceStart => many(self.events.len()),
            Intrinsic::LinkTraceId | Intrinsic::LinkSpanId => many(self.links.len()),
            Intrinsic::InstrumentationName => FieldValue::Str(&self.instrumentation_name),
            Intrinsic::InstrumentationVersion => FieldValue::Str(&self.instrumentation_version),
            Intrinsic::ProfileCpu => profile.map_or(FieldValue::Nil, |p| FieldValue::Duration(p.cpu_nanos)),
            Intrinsic::ProfileWall => profile.map_or(FieldValue::Nil, |p| FieldValue::Duration(p.wall_nanos)),
            Intrinsic::ProfileSamples => profile.map_or(FieldValue::Nil, |p| FieldValue::Int(p.samples)),
            Intrinsic::ProfileFunction => profile.map_or(FieldValue::Nil, |p| many(p.functions.len())),
            Intrinsic::ProfileFile => profile.map_or(FieldValue::Nil, |p| many(p.files.len())),
            _ => FieldValue::Nil,
        }
    }

    fn intrinsic_element(&self, intrinsic: Intrinsic, index: usize) -> FieldValue<'_> {
        let event = self.events.get(index);
        let link = self.links.get(index);
        let profile = self.profile.as_ref();
        let found = match intrinsic {
            Intrinsic::EventName => event.map(|event| FieldValue::Str(&event.name)),
            Intrinsic::EventTimeSinceStart => event.map(|event| FieldValue::Duration(event.since_start_nanos)),
            Intrinsic::LinkTraceId => link.map(|link| FieldValue::TraceId(link.trace_id)),
            Intrinsic::LinkSpanId => link.map(|link| FieldValue::SpanId(link.span_id)),
            Intrinsic::ProfileFunction => {
                profile.and_then(|p| p.functions.get(index)).map(|text| FieldValue::Str(text))
            }
            Intrinsic::ProfileFile => profile.and_then(|p| p.files.get(index)).map(|text| FieldValue::Str(text)),
            _ => None,
        };
        found.unwrap_or(FieldValue::Nil)
    }
}

impl SpanSource for BoundTrace<'_> {
    fn value(&self, span: usize, field: FieldId) -> FieldValue<'_> {
        let at = &self.trace.spans[span];
        match self.fields.get(field) {
            Some(Field::Intrinsic(Intrinsic::TraceId)) => FieldValue::TraceId(self.trace.id),
            Some(Field::Intrinsic(intrinsic)) => at.intrinsic(*intrinsic),
            Some(Field::Attribute { scope, name, .. }) => at.attribute(*scope, name),
            None => FieldValue::Nil,
        }
    }

    fn element(&self, span: usize, field: FieldId, index: usize) -> FieldValue<'_> {
        let at = &self.trace.spans[span];
        match self.fields.get(field) {
            Some(Field::Intrinsic(intrinsic)) => at.intrinsic_element(*intrinsic, index),
            Some(Field::Attribute { scope, name, .. }) => at.attribute_element(*scope, name, index),
            None => FieldValue::Nil,
        }
    }

    fn start_nanos(&self, span: usize) -> i64 {
        self.trace.spans[span].start_nanos
    }

    fn span_id(&self, span: usize) -> SpanId {
        self.trace.spans[span].id
    }

    fn trace_id(&self, _: usize) -> TraceId {
        self.trace.id
    }

    fn for_each_attribute(&self, span: usize, visit: &mut dyn FnMut(Scope, &str, FieldValue<'_>)) {
        let at = &self.trace.spans[span];
        for (scope, attributes) in [(Scope::Span, &at.attributes), (Scope::Resource, &at.resource)] {
            for (name, value) in attributes {
                if !matches!(value, Value::Array(_)) {
                    visit(scope, name, value.as_field_value());
                }
            }
        }
    }
}

impl TraceSource for BoundTrace<'_> {
    fn span_count(&self) -> usize {
        self.trace.spans.len()
    }

    fn parent_id(&self, span: usize) -> Option<SpanId> {
        self.trace.spans[span].parent_id
    }

    fn duration_nanos(&self, span: usize) -> i64 {
        self.trace.spans[span].duration_nanos
    }

    fn name(&self, span: usize) -> &str {
        &self.trace.spans[span].name
    }

    fn service_name(&self, span: usize) -> &str {
        match find(&self.trace.spans[span].resource, "service.name") {
            Some(Value::Str(name)) => name,
            _ => "",
        }
    }
}
