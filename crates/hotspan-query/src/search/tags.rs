//! Names and values of attributes, for completion.

use std::collections::{BTreeMap, BTreeSet};

use arrow::array::{Array, AsArray};
use futures::TryStreamExt;
use hotspan_lake::compaction::attributes::ATTRIBUTE_PREFIX;
use hotspan_lake::{ReadOptions, arrays};
use hotspan_model::{TenantId, attributes_from_json};
use hotspan_traceql::{Program, Search, SpanSource, TraceView, Value};

use super::binding::{BoundSpans, columns_of};
use super::run::overlapping;
use crate::Engine;
use crate::error::Result;

/// Attribute names by scope.
pub type TagScopes = BTreeMap<&'static str, BTreeSet<String>>;

/// A value of a tag, with its type as Tempo names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TagValue {
    /// `string`, `int`, `float`, `bool`, `duration` or `keyword`.
    pub value_type: &'static str,
    /// The value as text.
    pub text: String,
}

impl Engine {
    /// The names of attributes that spans of a time have.
    pub async fn tag_names(&self, tenant: &TenantId, from: i64, until: i64) -> Result<TagScopes> {
        let mut scopes = TagScopes::new();
        let columns = ["attributes", "attributes_json", "resource", "scope", "events", "links"];
        for segment in overlapping(&self.snapshot(), tenant, from, until) {
            let options =
                ReadOptions::columns(&columns).with_prefix(ATTRIBUTE_PREFIX).within("start_time", from, until);
            let mut stream = self.lake().reader().stream(&segment, options).await?;
            while let Some(batch) = stream.try_next().await? {
                for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
                    if let Some(key) = field.name().strip_prefix(ATTRIBUTE_PREFIX)
                        && column.null_count() < column.len()
                    {
                        add(&mut scopes, "span", key);
                    }
                }
                for column in ["attributes", "attributes_json"] {
                    let keys = arrays::maps(&batch, column)?.keys().as_string::<i32>();
                    for key in keys.iter().flatten() {
                        add(&mut scopes, "span", key);
                    }
                }
                for (column, scope) in [("resource", "resource"), ("scope", "instrumentation")] {
                    if let arrays::Texts::Coded(_, distinct) = arrays::texts(&batch, column)? {
                        for text in distinct.iter().flatten() {
                            let json: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
                            for attribute in attributes_from_json(&json["attributes"].to_string()) {
                                add(&mut scopes, scope, &attribute.key);
                            }
                        }
                    }
                }
                for (column, scope, at) in [("events", "event", 2), ("links", "link", 3)] {
                    let elements = arrays::lists(&batch, column)?.values().as_struct().column(at).clone();
                    for text in elements.as_string::<i32>().iter().flatten() {
                        for attribute in attributes_from_json(text) {
                            add(&mut scopes, scope, &attribute.key);
                        }
                    }
                }
            }
        }
        Ok(scopes)
    }

    /// The values that `program`, a query with one selected field, shows for its matching spans.
    pub async fn tag_values(
        &self,
        tenant: &TenantId,
        program: &Program,
        from: i64,
        until: i64,
        limit: usize,
    ) -> Result<BTreeSet<TagValue>> {
        let mut values = BTreeSet::new();
        let (Some(search), columns) = (program.search(), columns_of(program.fields())) else { return Ok(values) };
        let Some((field, _)) = program.fields().iter().last() else { return Ok(values) };
        for segment in overlapping(&self.snapshot(), tenant, from, until) {
            let options = ReadOptions::columns(&columns).within("start_time", from, until);
            let mut stream = self.lake().reader().stream(&segment, options).await?;
            while let Some(batch) = stream.try_next().await? {
                let spans = BoundSpans::bind(batch, program.fields())?;
                for span in matching(search, &spans) {
                    add_values(&spans, span as usize, field, &mut values);
                    if values.len() >= limit {
                        return Ok(values);
                    }
                }
            }
        }
        Ok(values)
    }
}

fn matching(search: &Search, spans: &BoundSpans) -> Vec<u32> {
    let mut matches = Vec::new();
    match search.span_filter() {
        Some(filter) => filter.select(&TraceView::of_batch(spans), 0..spans.len(), &mut matches),
        None => matches.extend(0..spans.len() as u32),
    }
    matches
}

fn add(scopes: &mut TagScopes, scope: &'static str, key: &str) {
    let names = scopes.entry(scope).or_default();
    if !names.contains(key) {
        names.insert(key.to_owned());
    }
}

fn add_values(spans: &BoundSpans, span: usize, field: hotspan_traceql::FieldId, values: &mut BTreeSet<TagValue>) {
    use hotspan_traceql::FieldValue;
    let mut add = |value: FieldValue<'_>| {
        let (value_type, text) = match value {
            FieldValue::Nil | FieldValue::Many(_) => return,
            FieldValue::Bool(value) => ("bool", value.to_string()),
            FieldValue::Int(value) => ("int", value.to_string()),
            FieldValue::Float(value) => ("float", value.to_string()),
            FieldValue::Duration(nanos) => ("duration", Value::Duration(nanos).to_string()),
            FieldValue::Str(text) => ("string", text.to_owned()),
            FieldValue::Status(status) => ("keyword", Value::Status(status).to_string()),
            FieldValue::Kind(kind) => ("keyword", Value::Kind(kind).to_string()),
            FieldValue::SpanId(id) => ("string", id.to_string()),
            FieldValue::TraceId(id) => ("string", id.to_string()),
        };
        values.insert(TagValue { value_type, text });
    };
    match spans.value(span, field) {
        FieldValue::Many(count) => (0..count).for_each(|index| add(spans.element(span, field, index))),
        single => add(single),
    }
}
