//! OTLP attributes and resources.

use hotspan_model::{Attribute, Resource, Value};

use super::protobuf::Writer;

pub(super) fn write_attributes(out: &mut Writer, field: u32, attributes: &[Attribute<'_>]) {
    for attribute in attributes {
        out.message(field, |pair| {
            pair.text(1, &attribute.key);
            pair.message(2, |any| write_value(any, &attribute.value));
        });
    }
}

/// The fields of an `AnyValue`.
pub(super) fn write_value(out: &mut Writer, value: &Value<'_>) {
    match value {
        Value::Empty => {}
        Value::String(text) => out.bytes(1, text.as_bytes()),
        Value::Bool(flag) => out.always_varint(2, u64::from(*flag)),
        Value::Int(number) => out.always_varint(3, *number as u64),
        Value::Double(number) => out.fixed64(4, number.to_bits()),
        Value::Array(values) => out.message(5, |array| {
            for value in values {
                array.message(1, |any| write_value(any, value));
            }
        }),
        Value::KeyValues(attributes) => out.message(6, |list| write_attributes(list, 1, attributes)),
        Value::Bytes(bytes) => out.bytes(7, bytes),
    }
}

pub(super) fn write_resource(out: &mut Writer, resource: &Resource<'_>) {
    out.message(1, |message| write_attributes(message, 1, &resource.attributes));
}

/// The scope that everything is in, named after the service's language.
pub(super) fn write_scope(out: &mut Writer, language: &str) {
    out.message(1, |scope| {
        scope.text(1, &format!("io.opentelemetry.{language}.instrumentation"));
        scope.text(2, "2.19.0");
    });
}
