//! Which columns a question reads: those of the fields that it names, and what evaluating spans or traces takes besides.

use hashbrown::HashSet;
use hotspan_lake::compaction::attributes::ATTRIBUTE_PREFIX;
use hotspan_traceql::ast::{Field, Intrinsic, Scope};
use hotspan_traceql::{FieldTable, Program};

use super::profile_fields::is_profile_field;

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
