//! A profile request put together by name instead of by index.

use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::profiles::v1development::{
    Function, KeyValueAndUnit, Line, Link, Location, Mapping, Profile, ProfilesDictionary, ResourceProfiles, Sample,
    ScopeProfiles, Stack, ValueType,
};
use opentelemetry_proto::tonic::resource::v1::Resource;

/// Tables with their null entries.
pub(crate) struct Builder {
    pub(crate) dictionary: ProfilesDictionary,
}

impl Builder {
    pub(crate) fn new() -> Self {
        let dictionary = ProfilesDictionary {
            mapping_table: vec![Mapping::default()],
            location_table: vec![Location::default()],
            function_table: vec![Function::default()],
            link_table: vec![Link::default()],
            string_table: vec![String::new()],
            attribute_table: vec![KeyValueAndUnit::default()],
            stack_table: vec![Stack::default()],
        };
        Self { dictionary }
    }

    pub(crate) fn string(&mut self, text: &str) -> i32 {
        let table = &mut self.dictionary.string_table;
        let at = table.iter().position(|known| known == text).unwrap_or_else(|| {
            table.push(text.to_owned());
            table.len() - 1
        });
        at as i32
    }

    pub(crate) fn value_type(&mut self, kind: &str, unit: &str) -> Option<ValueType> {
        Some(ValueType { type_strindex: self.string(kind), unit_strindex: self.string(unit) })
    }

    pub(crate) fn attribute(&mut self, key: &str, value: Value) -> i32 {
        let key_strindex = self.string(key);
        let value = Some(AnyValue { value: Some(value) });
        self.dictionary.attribute_table.push(KeyValueAndUnit { key_strindex, value, unit_strindex: 0 });
        self.dictionary.attribute_table.len() as i32 - 1
    }

    pub(crate) fn text_attribute(&mut self, key: &str, text: &str) -> i32 {
        self.attribute(key, Value::StringValue(text.to_owned()))
    }

    /// A location with a line for each function, the innermost first.
    pub(crate) fn location(&mut self, functions: &[&str]) -> i32 {
        let mut lines = Vec::new();
        for (number, name) in functions.iter().enumerate() {
            let function = Function { name_strindex: self.string(name), ..Function::default() };
            self.dictionary.function_table.push(function);
            let function_index = self.dictionary.function_table.len() as i32 - 1;
            lines.push(Line { function_index, line: number as i64 + 1, column: 3 });
        }
        self.dictionary.location_table.push(Location { lines, ..Location::default() });
        self.dictionary.location_table.len() as i32 - 1
    }

    /// A stack of these locations, the leaf first.
    pub(crate) fn stack(&mut self, locations: &[i32]) -> i32 {
        self.dictionary.stack_table.push(Stack { location_indices: locations.to_vec() });
        self.dictionary.stack_table.len() as i32 - 1
    }

    /// A stack of these functions, the leaf first.
    pub(crate) fn function_stack(&mut self, functions: &[&str]) -> i32 {
        let locations: Vec<i32> = functions.iter().map(|name| self.location(&[name])).collect();
        self.stack(&locations)
    }

    pub(crate) fn link(&mut self, trace: u8, span: u8) -> i32 {
        self.dictionary.link_table.push(Link { trace_id: vec![trace; 16], span_id: vec![span; 8] });
        self.dictionary.link_table.len() as i32 - 1
    }

    /// CPU samples as the eBPF profiler sends them.
    pub(crate) fn cpu_profile(&mut self, samples: Vec<Sample>) -> Profile {
        Profile {
            sample_type: self.value_type("samples", "count"),
            samples,
            time_unix_nano: 1_000,
            duration_nano: 5_000,
            period_type: self.value_type("cpu", "nanoseconds"),
            period: 50,
            ..Profile::default()
        }
    }

    /// A request with one resource, one scope and these profiles.
    pub(crate) fn request(self, resource: &[(&str, &str)], profiles: Vec<Profile>) -> ExportProfilesServiceRequest {
        let attributes = resource
            .iter()
            .map(|(key, text)| KeyValue {
                key: (*key).to_owned(),
                value: Some(AnyValue { value: Some(Value::StringValue((*text).to_owned())) }),
                key_strindex: 0,
            })
            .collect();
        let resource = Resource { attributes, ..Resource::default() };
        let scope_profiles = vec![ScopeProfiles { profiles, ..ScopeProfiles::default() }];
        let group = ResourceProfiles { resource: Some(resource), scope_profiles, ..ResourceProfiles::default() };
        ExportProfilesServiceRequest { resource_profiles: vec![group], dictionary: Some(self.dictionary) }
    }
}
