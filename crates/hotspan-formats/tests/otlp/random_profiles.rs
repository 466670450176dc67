//! Random profile requests in the generated types, with indices that mostly point somewhere.

use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::profiles::v1development::{
    Function, KeyValueAndUnit, Line, Link, Location, Mapping, Profile, ProfilesDictionary, ResourceProfiles, Sample,
    ScopeProfiles, Stack, ValueType,
};
use opentelemetry_proto::tonic::resource::v1::Resource;

use crate::dice::Dice;

const STRINGS: [&str; 24] = [
    "",
    "samples",
    "count",
    "cpu",
    "nanoseconds",
    "off_cpu",
    "wall",
    "alloc_space",
    "bytes",
    "main",
    "_ZN4main",
    "main.rs",
    "libc.so",
    "thread.name",
    "thread.id",
    "span_id",
    "trace_id",
    "service.name",
    "profile.frame.type",
    "cpu.logical_number",
    "process.executable.build_id.gnu",
    "00000000000004d2",
    "native",
    "$weird",
];

/// Mostly an index below `len`, rarely one that points nowhere.
fn index(dice: &mut Dice<'_>, len: usize) -> i32 {
    if dice.rarely(64) { [-1, i32::MIN, i32::MAX, len as i32][dice.roll(4)] } else { dice.roll(len) as i32 }
}

fn string(dice: &mut Dice<'_>) -> i32 {
    index(dice, STRINGS.len())
}

pub(crate) fn request(dice: &mut Dice<'_>) -> ExportProfilesServiceRequest {
    let dictionary = ProfilesDictionary {
        mapping_table: table(dice, 3, Mapping::default(), |dice| Mapping {
            memory_start: dice.u64(),
            memory_limit: dice.u64(),
            file_offset: dice.u64(),
            filename_strindex: string(dice),
            attribute_indices: dice.many(2, |dice| index(dice, 8)),
        }),
        location_table: table(dice, 7, Location::default(), |dice| Location {
            mapping_index: index(dice, 3),
            address: dice.u64(),
            lines: dice.many(3, |dice| Line { function_index: index(dice, 5), line: dice.i64(), column: dice.i64() }),
            attribute_indices: dice.many(2, |dice| index(dice, 8)),
        }),
        function_table: table(dice, 5, Function::default(), |dice| Function {
            name_strindex: string(dice),
            system_name_strindex: string(dice),
            filename_strindex: string(dice),
            start_line: dice.i64(),
        }),
        link_table: table(dice, 4, Link::default(), |dice| Link { trace_id: dice.id(16), span_id: dice.id(8) }),
        string_table: STRINGS.map(str::to_owned).to_vec(),
        attribute_table: table(dice, 8, KeyValueAndUnit::default(), |dice| KeyValueAndUnit {
            key_strindex: string(dice),
            value: Some(if dice.rarely(2) {
                AnyValue { value: Some(Value::StringValueStrindex(string(dice))) }
            } else {
                dice.any_value(1)
            }),
            unit_strindex: if dice.rarely(4) { string(dice) } else { 0 },
        }),
        stack_table: table(dice, 6, Stack::default(), |dice| Stack {
            location_indices: dice.many(6, |dice| index(dice, 7)),
        }),
    };
    let resource_profiles = dice.many(2, |dice| ResourceProfiles {
        resource: Some(Resource {
            attributes: resource_attributes(dice),
            dropped_attributes_count: dice.count(),
            entity_refs: dice.entity_refs(),
        }),
        scope_profiles: dice.many(2, |dice| ScopeProfiles {
            scope: Some(InstrumentationScope {
                name: dice.text(),
                version: dice.text(),
                attributes: dice.attributes(),
                dropped_attributes_count: dice.count(),
            }),
            profiles: dice.many(2, profile),
            schema_url: dice.text(),
        }),
        schema_url: dice.text(),
    });
    ExportProfilesServiceRequest { resource_profiles, dictionary: Some(dictionary) }
}

/// A table of this length whose first entry is null.
fn table<T: Clone>(dice: &mut Dice<'_>, len: usize, null: T, mut make: impl FnMut(&mut Dice<'_>) -> T) -> Vec<T> {
    let mut entries = vec![null];
    entries.extend((1..len).map(|_| make(dice)));
    entries
}

fn resource_attributes(dice: &mut Dice<'_>) -> Vec<KeyValue> {
    let mut attributes = dice.attributes();
    for key in [17, 15, 16] {
        if dice.rarely(3) {
            let value = Some(AnyValue { value: Some(Value::StringValueStrindex(string(dice))) });
            attributes.push(KeyValue { key: String::new(), value, key_strindex: key });
        }
    }
    attributes
}

fn profile(dice: &mut Dice<'_>) -> Profile {
    let value_type = |dice: &mut Dice<'_>| {
        let [kind, unit] = [[1, 2], [3, 4], [5, 4], [6, 4], [7, 8], [12, 2], [0, 0]][dice.roll(7)];
        Some(ValueType { type_strindex: kind, unit_strindex: unit })
    };
    Profile {
        sample_type: value_type(dice),
        samples: dice.many(6, sample),
        time_unix_nano: dice.u64(),
        duration_nano: dice.u64(),
        period_type: value_type(dice),
        period: dice.i64(),
        profile_id: dice.id(16),
        dropped_attributes_count: dice.count(),
        original_payload_format: dice.text(),
        original_payload: {
            let len = dice.roll(4);
            dice.bytes(len)
        },
        attribute_indices: dice.many(2, |dice| index(dice, 8)),
    }
}

fn sample(dice: &mut Dice<'_>) -> Sample {
    let (values, times) = [(1, 0), (0, 1), (2, 2), (3, 0), (0, 3), (1, 1), (0, 0), (2, 1)][dice.roll(8)];
    Sample {
        stack_index: index(dice, 6),
        attribute_indices: dice.many(3, |dice| index(dice, 8)),
        link_index: if dice.rarely(2) { index(dice, 4) } else { 0 },
        values: (0..values).map(|_| dice.i64()).collect(),
        timestamps_unix_nano: (0..times).map(|_| dice.u64()).collect(),
    }
}
