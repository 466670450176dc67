//! The bytes as others read them: OpenTelemetry's generated types for OTLP, and pprof by its own field numbers.

use std::collections::HashMap;

use hotspan_generator::encode::{SampleShape, pprof_file, profile_requests, trace_requests};
use hotspan_generator::{Settings, Workload};
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message as _;

/// Scenario: requests of one window, read by the generated types and written again.
/// Guarantee: nothing is lost, so no field has a number or a type that the types do not know.
#[test]
fn generated_types_read_otlp() {
    let workload = Workload::new(Settings::small()).unwrap();
    let window = workload.window(0);
    let mut spans = 0;
    for request in trace_requests(&window, 100) {
        let read = ExportTraceServiceRequest::decode(&request.bytes[..]).unwrap();
        assert_eq!(read.encoded_len(), request.bytes.len());
        let scopes = read.resource_spans.iter().flat_map(|group| &group.scope_spans);
        let found: usize = scopes.map(|scope| scope.spans.len()).sum();
        assert_eq!(found, request.spans);
        spans += found;
    }
    assert_eq!(spans, window.spans.len());
    for request in profile_requests(&window, 2, SampleShape::Merged) {
        let read = ExportProfilesServiceRequest::decode(&request.bytes[..]).unwrap();
        assert_eq!(read.encoded_len(), request.bytes.len());
        let dictionary = read.dictionary.unwrap();
        // The first entry of every table is the null value.
        assert_eq!(dictionary.string_table[0], "");
        assert_eq!(dictionary.stack_table[0].location_indices.len(), 0);
        let profiles =
            read.resource_profiles.iter().flat_map(|group| &group.scope_profiles).flat_map(|scope| &scope.profiles);
        let mut observations = 0;
        for profile in profiles {
            let mut seen = HashMap::new();
            for sample in &profile.samples {
                assert_eq!(sample.values.len(), sample.timestamps_unix_nano.len());
                observations += sample.values.len();
                let identity = (sample.stack_index, sample.attribute_indices.clone(), sample.link_index);
                assert!(seen.insert(identity, ()).is_none(), "an identity stands twice in a profile");
                assert!((sample.stack_index as usize) < dictionary.stack_table.len());
                assert!((sample.link_index as usize) < dictionary.link_table.len());
            }
        }
        assert_eq!(observations, request.samples);
    }
}

#[derive(Clone, PartialEq, prost::Message)]
struct Pprof {
    #[prost(message, repeated, tag = "2")]
    samples: Vec<PprofSample>,
    #[prost(message, repeated, tag = "4")]
    locations: Vec<PprofLocation>,
    #[prost(message, repeated, tag = "5")]
    functions: Vec<PprofFunction>,
    #[prost(string, repeated, tag = "6")]
    strings: Vec<String>,
    #[prost(int64, tag = "9")]
    time_nanos: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct PprofSample {
    #[prost(uint64, repeated, tag = "1")]
    locations: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    values: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    labels: Vec<PprofLabel>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct PprofLabel {
    #[prost(int64, tag = "1")]
    key: i64,
    #[prost(int64, tag = "2")]
    text: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct PprofLocation {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(message, repeated, tag = "4")]
    lines: Vec<PprofLine>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct PprofLine {
    #[prost(uint64, tag = "1")]
    function: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct PprofFunction {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "2")]
    name: i64,
}

/// Scenario: pprof files of one window. Guarantee: sample by sample the value, leaf function and span of the profile.
#[test]
fn pprof_holds_the_same_samples() {
    let workload = Workload::new(Settings::small()).unwrap();
    let window = workload.window(1);
    for profile in &window.profiles {
        let read = Pprof::decode(&pprof_file(&window, profile)[..]).unwrap();
        assert_eq!((read.samples.len(), read.time_nanos), (profile.samples.len(), profile.start));
        let function_of: HashMap<u64, u64> =
            read.locations.iter().map(|location| (location.id, location.lines[0].function)).collect();
        let name_of: HashMap<u64, i64> = read.functions.iter().map(|function| (function.id, function.name)).collect();
        let calls = &workload.fleet().services[usize::from(profile.service)].calls;
        for (read_sample, sample) in read.samples.iter().zip(&profile.samples) {
            assert_eq!(read_sample.values, [1, sample.value]);
            let name = name_of[&function_of[&read_sample.locations[0]]];
            let (_, leaf) = calls.leaf_to_root(sample.node).next().unwrap();
            assert_eq!(read.strings[name as usize], calls.function(leaf).name);
            assert_eq!(read_sample.locations.len(), calls.leaf_to_root(sample.node).count());
            let span = read_sample.labels.iter().find(|label| read.strings[label.key as usize] == "span_id");
            let span = span.map(|label| read.strings[label.text as usize].clone());
            assert_eq!(span, sample.span.map(|span| window.spans[span as usize].span.span_id.to_string()));
        }
    }
}
