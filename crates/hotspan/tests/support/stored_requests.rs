//! Requests of the analysis, sent to a server as a collector would send them: spans and profiles in OTLP.

use std::collections::HashMap;

use hotspan_analysis::{AttributeValue, Measure, Request, Vocabulary};
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::profiles::v1development::{
    Function, Line, Link, Location, Profile, ProfilesDictionary, ResourceProfiles, Sample, ScopeProfiles, Stack,
    ValueType,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};
use prost::Message;

use super::support::{Server, text_attribute};

/// How requests become telemetry.
pub(crate) struct Sending<'s> {
    pub(crate) vocabulary: &'s Vocabulary,
    /// Stands before the name of every service, so that workloads do not meet.
    pub(crate) prefix: String,
    /// Added to every time.
    pub(crate) shift: i64,
    /// Whether samples name their spans.
    pub(crate) linked: bool,
}

impl Sending<'_> {
    /// Sends requests and waits until they are acknowledged.
    pub(crate) fn send(&self, server: &Server, requests: &[Request]) {
        for part in requests.chunks(100) {
            let spans = self.spans(part).encode_to_vec();
            let answer = server.post("/v1/traces", "application/x-protobuf", &spans).unwrap();
            assert_eq!(answer.status, 200, "{}", answer.text());
            let profiles = self.profiles(part);
            if !profiles.resource_profiles.is_empty() {
                let body = profiles.encode_to_vec();
                let answer = server.post("/v1development/profiles", "application/x-protobuf", &body).unwrap();
                assert_eq!(answer.status, 200, "{}", answer.text());
            }
        }
    }

    fn service(&self, request: &Request, span: usize) -> String {
        let operation = self.vocabulary.operation_of(request.spans[span].operation);
        format!("{}{}", self.prefix, self.vocabulary.text_of(operation.service))
    }

    pub(crate) fn spans(&self, requests: &[Request]) -> ExportTraceServiceRequest {
        let mut by_service: HashMap<String, Vec<Span>> = HashMap::new();
        for request in requests {
            for (index, span) in request.spans.iter().enumerate() {
                let name = self.vocabulary.operation_of(span.operation).name;
                let sent = Span {
                    trace_id: request.trace_id.0.to_vec(),
                    span_id: span.span_id.0.to_vec(),
                    parent_span_id: span
                        .parent
                        .map_or_else(Vec::new, |at| request.spans[at as usize].span_id.0.to_vec()),
                    name: self.vocabulary.text_of(name).to_owned(),
                    kind: span.role.number().into(),
                    start_time_unix_nano: (span.start + self.shift) as u64,
                    end_time_unix_nano: (span.end + self.shift) as u64,
                    attributes: span.attributes.iter().map(|(key, value)| self.attribute(*key, *value)).collect(),
                    status: span.failed.then(|| Status { code: 2, ..Status::default() }),
                    ..Span::default()
                };
                by_service.entry(self.service(request, index)).or_default().push(sent);
            }
        }
        let resource_spans = by_service.into_iter().map(|(service, spans)| ResourceSpans {
            resource: Some(resource(&service)),
            scope_spans: vec![ScopeSpans { spans, ..ScopeSpans::default() }],
            ..ResourceSpans::default()
        });
        ExportTraceServiceRequest { resource_spans: resource_spans.collect() }
    }

    fn attribute(&self, key: u32, value: AttributeValue) -> KeyValue {
        let value = match value {
            AttributeValue::Text(text) => Value::StringValue(self.vocabulary.text_of(text).to_owned()),
            AttributeValue::Number(number) => Value::DoubleValue(number),
        };
        let key = self.vocabulary.text_of(key).to_owned();
        KeyValue { key, value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
    }

    pub(crate) fn profiles(&self, requests: &[Request]) -> ExportProfilesServiceRequest {
        let mut tables = Tables::new();
        let mut by_profile: HashMap<(String, Measure), Vec<Sample>> = HashMap::new();
        for request in requests {
            for sample in &request.samples {
                let link = if self.linked { tables.link(request, sample.span as usize) } else { 0 };
                let encoded = Sample {
                    stack_index: tables.stack(self.vocabulary, sample.stack),
                    link_index: link,
                    values: vec![sample.value],
                    timestamps_unix_nano: sample.time.map(|time| (time + self.shift) as u64).into_iter().collect(),
                    ..Sample::default()
                };
                by_profile
                    .entry((self.service(request, sample.span as usize), sample.measure))
                    .or_default()
                    .push(encoded);
            }
        }
        let first = requests.iter().map(|request| request.spans[0].start).min().unwrap_or(0) + self.shift;
        let mut resource_profiles = Vec::new();
        for ((service, measure), samples) in by_profile {
            let type_strindex = tables.string(measure.name());
            let value_type = ValueType { type_strindex, unit_strindex: tables.string("nanoseconds") };
            let mut profile_id = xxhash(&service, measure, first);
            profile_id.truncate(16);
            let profile = Profile {
                sample_type: Some(value_type),
                period_type: (measure == Measure::Cpu).then_some(value_type),
                period: 10_000_000,
                samples,
                time_unix_nano: first as u64,
                duration_nano: 1_000_000_000_000,
                profile_id,
                ..Profile::default()
            };
            resource_profiles.push(ResourceProfiles {
                resource: Some(resource(&service)),
                scope_profiles: vec![ScopeProfiles { profiles: vec![profile], ..ScopeProfiles::default() }],
                ..ResourceProfiles::default()
            });
        }
        ExportProfilesServiceRequest { resource_profiles, dictionary: Some(tables.dictionary) }
    }
}

/// Sixteen bytes that differ from profile to profile.
fn xxhash(service: &str, measure: Measure, time: i64) -> Vec<u8> {
    let mut bytes = time.to_be_bytes().to_vec();
    let sum =
        service.bytes().fold(measure as u64 + 1, |sum, byte| sum.wrapping_mul(1_099_511_628_211) ^ u64::from(byte));
    bytes.extend(sum.to_be_bytes());
    bytes
}

fn resource(service: &str) -> Resource {
    Resource { attributes: vec![text_attribute("service.name", service)], ..Resource::default() }
}

/// The tables of a dictionary, each entry once.
struct Tables {
    dictionary: ProfilesDictionary,
    strings: HashMap<String, i32>,
    locations: HashMap<u32, i32>,
    stacks: HashMap<u32, i32>,
    links: HashMap<Vec<u8>, i32>,
}

impl Tables {
    fn new() -> Self {
        let dictionary = ProfilesDictionary {
            mapping_table: vec![Default::default()],
            attribute_table: vec![Default::default()],
            function_table: vec![Function::default()],
            location_table: vec![Location::default()],
            stack_table: vec![Stack::default()],
            link_table: vec![Link::default()],
            string_table: vec![String::new()],
        };
        let strings = HashMap::from([(String::new(), 0)]);
        Self { dictionary, strings, locations: HashMap::new(), stacks: HashMap::new(), links: HashMap::new() }
    }

    fn string(&mut self, text: &str) -> i32 {
        let next = self.dictionary.string_table.len() as i32;
        *self.strings.entry(text.to_owned()).or_insert_with(|| {
            self.dictionary.string_table.push(text.to_owned());
            next
        })
    }

    fn link(&mut self, request: &Request, span: usize) -> i32 {
        let span_id = request.spans[span].span_id.0.to_vec();
        let key = [request.trace_id.0.to_vec(), span_id.clone()].concat();
        let next = self.dictionary.link_table.len() as i32;
        *self.links.entry(key).or_insert_with(|| {
            self.dictionary.link_table.push(Link { trace_id: request.trace_id.0.to_vec(), span_id });
            next
        })
    }

    fn stack(&mut self, vocabulary: &Vocabulary, stack: u32) -> i32 {
        if let Some(known) = self.stacks.get(&stack) {
            return *known;
        }
        let mut encoded = Stack::default();
        for frame in vocabulary.frames_from_leaf(stack) {
            let location = match self.locations.get(&frame) {
                Some(known) => *known,
                None => self.location(vocabulary, frame),
            };
            encoded.location_indices.push(location);
        }
        self.dictionary.stack_table.push(encoded);
        let number = self.dictionary.stack_table.len() as i32 - 1;
        self.stacks.insert(stack, number);
        number
    }

    fn location(&mut self, vocabulary: &Vocabulary, number: u32) -> i32 {
        let frame = vocabulary.frame_of(number);
        let name_strindex = self.string(vocabulary.text_of(frame.function));
        let filename_strindex = self.string(vocabulary.text_of(frame.file));
        self.dictionary.function_table.push(Function { name_strindex, filename_strindex, ..Function::default() });
        let function_index = self.dictionary.function_table.len() as i32 - 1;
        let line = Line { function_index, line: i64::from(frame.line), column: 0 };
        self.dictionary.location_table.push(Location { lines: vec![line], ..Location::default() });
        let location = self.dictionary.location_table.len() as i32 - 1;
        self.locations.insert(number, location);
        location
    }
}
