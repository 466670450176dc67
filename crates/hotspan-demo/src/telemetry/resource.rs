//! Who says it: the OTel resource of each service.

use opentelemetry_proto::tonic::common::v1::any_value::Value as OtlpValue;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;

use crate::mesh::Service;

/// A service in one of its two versions: with its problem, or with it fixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Release {
    pub(crate) service: Service,
    pub(crate) is_fixed: bool,
}

impl Release {
    /// What it calls itself. A fix is a release, so that before and after can be told apart by version.
    pub(crate) fn version(self) -> &'static str {
        if self.is_fixed { "1.4.1" } else { "1.4.0" }
    }

    /// Its resource, the same for spans and profiles.
    pub(crate) fn resource(self) -> Resource {
        let name = self.service.name();
        let attributes = vec![
            text("service.name", name),
            text("service.namespace", "shop"),
            text("service.version", self.version()),
            text("service.instance.id", &format!("{name}-1")),
            text("deployment.environment.name", "demo"),
            KeyValue {
                key: "process.pid".to_owned(),
                value: Some(AnyValue { value: Some(OtlpValue::IntValue(i64::from(std::process::id()))) }),
                ..KeyValue::default()
            },
            text("telemetry.sdk.name", "hotspan-demo"),
            text("telemetry.sdk.language", "rust"),
            text("telemetry.sdk.version", env!("CARGO_PKG_VERSION")),
        ];
        Resource { attributes, ..Resource::default() }
    }
}

/// An attribute with a text.
pub(super) fn text(key: &str, value: &str) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(OtlpValue::StringValue(value.to_owned())) }),
        ..KeyValue::default()
    }
}
