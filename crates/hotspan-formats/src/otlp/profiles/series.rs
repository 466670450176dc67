//! The labels of a series, from the attributes of a resource and a scope.

use std::borrow::Cow;

use hotspan_model::labels::{SERVICE_NAME, UNKNOWN_SERVICE};
use hotspan_model::{Attribute, Labels, Resource, Scope, Value};

use super::facts::take_identity_value;
use crate::Limits;
use crate::span_identity::{Identity, is_id};

/// Labels that all samples of a resource or scope share, and the span, should it name one for all of them.
#[derive(Debug, Clone, Default)]
pub(super) struct Series {
    pub(super) labels: Labels,
    pub(super) identity: Identity,
}

impl Series {
    /// Labels under the attributes' own dotted keys, and the service under the name that queries use.
    pub(super) fn of_resource(resource: &Resource<'_>, limits: &Limits) -> Self {
        let mut series = Self::default();
        for attribute in &resource.attributes {
            series.add(attribute, limits);
        }
        let text = |key: &str| {
            let found = resource.attributes.iter().find(|attribute| attribute.key == key);
            found.and_then(|attribute| attribute.value.as_str()).filter(|text| !text.is_empty())
        };
        let service = match (text("service.name"), text("process.executable.name")) {
            (Some(name), _) => name.to_owned(),
            (None, _) if series.labels.get(SERVICE_NAME).is_some() => return series,
            (None, Some(executable)) => format!("{UNKNOWN_SERVICE}:{executable}"),
            (None, None) => UNKNOWN_SERVICE.to_owned(),
        };
        series.labels.set(SERVICE_NAME, limits.short_label(&service));
        series
    }

    /// Adds the attributes of a scope; those of the resource win.
    pub(super) fn with_scope(mut self, scope: &Scope<'_>, limits: &Limits) -> Self {
        for attribute in &scope.attributes {
            self.add(attribute, limits);
        }
        self
    }

    fn add(&mut self, attribute: &Attribute<'_>, limits: &Limits) {
        // An id that can't be read stays with the resource or scope.
        if take_identity_value(&attribute.key, &attribute.value, &mut self.identity) || is_id(&attribute.key) {
            return;
        }
        // One place is kept for the service.
        let has_room = self.labels.len() + 1 < limits.max_labels.max(2);
        if let Some(value) = label_value(&attribute.value)
            && has_room
            && !attribute.key.is_empty()
            && !value.is_empty()
            && limits.may_be_label(&attribute.key, &value)
        {
            self.labels.set_default(&attribute.key, value);
        }
    }

    /// About how much memory a copy takes.
    pub(super) fn bytes(&self) -> usize {
        self.labels.iter().map(|(name, value)| name.len() + value.len() + 48).sum()
    }
}

/// The text that a value can be matched by; lists and the like are kept with the resource only.
fn label_value<'v>(value: &'v Value<'_>) -> Option<Cow<'v, str>> {
    match value {
        Value::String(_) | Value::Int(_) | Value::Bool(_) | Value::Double(_) => Some(value.to_label()),
        Value::Array(values) => match &values[..] {
            [single @ (Value::String(_) | Value::Int(_) | Value::Bool(_))] => Some(single.to_label()),
            _ => None,
        },
        _ => None,
    }
}
