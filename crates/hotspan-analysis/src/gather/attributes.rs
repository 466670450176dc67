//! Attributes of the spans that can tell slow requests from fast ones, and what resources say about clocks.

use std::sync::Arc;

use hashbrown::HashMap;
use hotspan_model::{Attribute, SpanId, TraceId, Value, attributes_from_json};
use hotspan_query::{Result, SpanOutline};

use super::load::Loader;
use crate::explain::Analysis;
use crate::request::AttributeValue;
use crate::vocabulary::{TextId, Vocabulary};

/// What tells clocks apart, the best first: machines have clocks, processes on them share these.
const CLOCKS: [&str; 5] = ["host.id", "host.name", "k8s.node.name", "k8s.pod.name", "service.instance.id"];
/// Texts longer than this are no values to group by.
const LONGEST_VALUE: usize = 200;

/// The resource of each span.
pub(super) type Resources = HashMap<(TraceId, SpanId), Arc<str>>;

/// Resources as they are met.
#[derive(Debug, Default)]
pub(super) struct ResourceTable {
    clocks: HashMap<(Arc<str>, Arc<str>), TextId>,
    of_span: Resources,
}

impl ResourceTable {
    /// The clock of a resource.
    pub(super) fn clock(&mut self, vocabulary: &mut Vocabulary, service: &Arc<str>, resource: &Arc<str>) -> TextId {
        let key = (Arc::clone(service), Arc::clone(resource));
        *self.clocks.entry(key).or_insert_with(|| {
            let attributes = resource_attributes(resource);
            let found = CLOCKS.iter().find_map(|clock| attributes.iter().find(|attribute| attribute.key == *clock));
            match found {
                Some(attribute) => vocabulary.text(&attribute.value.to_label()),
                None => vocabulary.text(service),
            }
        })
    }

    /// Remembers the resource of a span.
    pub(super) fn remember(&mut self, span: &SpanOutline) {
        self.of_span.insert((span.trace_id, span.span_id), Arc::clone(&span.resource));
    }

    pub(super) fn finish(self) -> Resources {
        self.of_span
    }
}

fn resource_attributes(resource: &str) -> Vec<Attribute<'static>> {
    let stored: serde_json::Value = serde_json::from_str(resource).unwrap_or_default();
    attributes_from_json(&stored["attributes"].to_string())
}

impl Loader<'_> {
    /// Reads the attributes of the spans that can tell requests apart.
    pub(super) async fn add_attributes(
        &self,
        analysis: &mut Analysis,
        resources: &Resources,
        range: (i64, i64),
    ) -> Result<()> {
        let wanted = analysis.telling_spans();
        let id_of = |(side, request, span): (usize, usize, usize)| {
            let request = &analysis.sides[side][request];
            (request.trace_id, request.spans[span].span_id)
        };
        let ids: Vec<(TraceId, SpanId)> = wanted.iter().map(|place| id_of(*place)).collect();
        let mut found = self.engine.span_attributes(self.tenant, self.snapshot, &ids, range).await?.answer;
        let mut shared: HashMap<Arc<str>, Vec<(TextId, AttributeValue)>> = HashMap::new();
        for (place, id) in wanted.into_iter().zip(ids) {
            let mut attributes = Vec::new();
            if let Some(resource) = resources.get(&id) {
                if !shared.contains_key(resource) {
                    let read = readable(&mut analysis.vocabulary, resource_attributes(resource));
                    shared.insert(Arc::clone(resource), read);
                }
                attributes.extend(shared.get(resource).into_iter().flatten().copied());
            }
            let own = found.remove(&id).unwrap_or_default();
            attributes.extend(readable(&mut analysis.vocabulary, own));
            let (side, request, span) = place;
            analysis.sides[side][request].spans[span].attributes = attributes;
        }
        Ok(())
    }
}

/// The attributes that requests can be grouped by.
fn readable(vocabulary: &mut Vocabulary, attributes: Vec<Attribute<'static>>) -> Vec<(TextId, AttributeValue)> {
    let read = attributes.into_iter().filter_map(|attribute| {
        let value = match &attribute.value {
            Value::String(text) if text.len() <= LONGEST_VALUE => AttributeValue::Text(vocabulary.text(text)),
            Value::Bool(is) => AttributeValue::Text(vocabulary.text(if *is { "true" } else { "false" })),
            Value::Int(number) => AttributeValue::Number(*number as f64),
            Value::Double(number) if number.is_finite() => AttributeValue::Number(*number),
            _ => return None,
        };
        Some((vocabulary.text(&attribute.key), value))
    });
    read.collect()
}
