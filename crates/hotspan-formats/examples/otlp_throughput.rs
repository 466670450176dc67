//! How long it takes to read a span and a sample, beside what decoding into the generated types takes.
//!
//! `cargo run --release -p hotspan-formats --example otlp_throughput`
//!
//! The data has the shape that benches/README.md describes: spans of about 340 bytes, samples of about 305 bytes all told with
//! stacks up to 60 deep. CPU time is measured, and the best of several rounds is shown.
#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use hotspan_formats::Limits;
use hotspan_formats::otlp::{decode_profiles, decode_traces};
use hotspan_model::{Resource, Scope, Span, TraceSink};
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::profiles::v1development as profiles;
use opentelemetry_proto::tonic::resource::v1::Resource as ProtoResource;
use opentelemetry_proto::tonic::trace::v1 as trace;
use prost::Message as _;

/// The allocator of the server.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const SPANS: usize = 5_000;
const SAMPLES: usize = 2_000;
const FUNCTIONS: usize = 2_500;
const ROUNDS: usize = 40;

fn main() {
    let mut random = Random(7);
    let traces = trace_request(&mut random).encode_to_vec();
    let profiles = profile_request(&mut random, 1).encode_to_vec();
    let shared = profile_request(&mut random, 5).encode_to_vec();
    let limits = Limits::default();
    // With `spans` or `samples` as argument only our own reader runs, again and again, for a profiler to look at.
    match std::env::args().nth(1).as_deref() {
        Some("spans") => {
            return (0..20 * ROUNDS).for_each(|_| {
                black_box(decode_traces(&traces, &limits, &mut Counter::default()).ok());
            });
        }
        Some("samples") => {
            return (0..50 * ROUNDS).for_each(|_| {
                black_box(decode_profiles(&shared, &limits, 0).ok());
            });
        }
        _ => {}
    }
    println!("spans: {} bytes each", traces.len() / SPANS);
    let ours = best(|| {
        let mut sink = Counter::default();
        let outcome = decode_traces(&traces, &limits, &mut sink).map(|outcome| outcome.accepted);
        assert_eq!(outcome, Ok(SPANS as u64));
        black_box(sink);
    });
    let prost = best(|| {
        black_box(ExportTraceServiceRequest::decode(&traces[..]).ok());
    });
    report("span", ours, prost, SPANS);

    for (profiles, sharing) in [(profiles, "every stack used once"), (shared, "every stack used five times")] {
        let (paths, frames) = match decode_profiles(&profiles, &limits, 0) {
            Ok((set, ..)) => (set.paths.path_count(), set.paths.frames.len()),
            Err(_) => (0, 0),
        };
        println!("samples, {sharing}: {} bytes each", profiles.len() / SAMPLES);
        println!("  for {SAMPLES} samples: {paths} distinct paths, {frames} distinct frames");
        let ours = best(|| {
            let set = decode_profiles(&profiles, &limits, 0).map(|(set, ..)| set.sample_count());
            assert_eq!(set, Ok(SAMPLES));
        });
        let prost = best(|| {
            black_box(ExportProfilesServiceRequest::decode(&profiles[..]).ok());
        });
        report("sample", ours, prost, SAMPLES);
    }
}

fn report(item: &str, ours: Duration, prost: Duration, count: usize) {
    let each = |time: Duration| time.as_nanos() as f64 / count as f64;
    println!("{item}: {:.0} ns to the model, {:.0} ns to the generated types", each(ours), each(prost));
}

fn best(mut work: impl FnMut()) -> Duration {
    let round = |_| {
        let start = Instant::now();
        work();
        start.elapsed()
    };
    (0..ROUNDS).map(round).min().unwrap_or_default()
}

#[derive(Default)]
struct Counter {
    spans: u64,
    attributes: usize,
}

impl TraceSink for Counter {
    fn resource(&mut self, resource: &Resource<'_>) {
        self.attributes += resource.attributes.len();
    }

    fn scope(&mut self, scope: &Scope<'_>) {
        self.attributes += scope.attributes.len();
    }

    fn span(&mut self, span: &Span<'_>) {
        self.spans += 1;
        self.attributes += span.attributes.len() + span.events.len();
    }
}

/// SplitMix64: enough for a shape.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb)
    }

    fn below(&mut self, most: usize) -> usize {
        (self.next() % most as u64) as usize
    }

    /// Small numbers are much more frequent than large ones.
    fn skewed(&mut self, most: usize) -> usize {
        let share = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        (share.powi(30) * most as f64) as usize
    }

    fn id(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8 | 1).collect()
    }
}

fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), key_strindex: 0 }
}

fn text(key: &str, value: impl Into<String>) -> KeyValue {
    attribute(key, Value::StringValue(value.into()))
}

fn resource(service: usize) -> Option<ProtoResource> {
    let attributes = vec![
        text("service.name", format!("service-{service}")),
        text("service.version", "1.4.2"),
        text("deployment.environment.name", "production"),
        text("host.name", "node-17.eu-west-1"),
        attribute("process.pid", Value::IntValue(4711)),
    ];
    Some(ProtoResource { attributes, ..ProtoResource::default() })
}

fn trace_request(random: &mut Random) -> ExportTraceServiceRequest {
    let spans_of_scope = |random: &mut Random| {
        (0..SPANS / 10)
            .map(|_| trace::Span {
                trace_id: random.id(16),
                span_id: random.id(8),
                parent_span_id: random.id(8),
                flags: 1,
                name: format!("GET /api/v1/orders/{}", random.below(50)),
                kind: 2,
                start_time_unix_nano: 1_700_000_000_000_000_000 + random.next() % 1_000_000_000,
                end_time_unix_nano: 1_700_000_001_000_000_000 + random.next() % 1_000_000_000,
                attributes: vec![
                    text("http.request.method", "GET"),
                    text("http.route", "/api/v1/orders/{id}"),
                    text("url.full", format!("http://orders:8080/api/v1/orders/{:016x}", random.next())),
                    attribute("http.response.status_code", Value::IntValue(200)),
                    attribute("server.port", Value::IntValue(8080)),
                    text("net.peer.name", "orders"),
                ],
                status: Some(trace::Status { message: String::new(), code: 1 }),
                ..trace::Span::default()
            })
            .collect::<Vec<_>>()
    };
    let group = |service: usize, random: &mut Random| trace::ResourceSpans {
        resource: resource(service),
        scope_spans: vec![trace::ScopeSpans { spans: spans_of_scope(random), ..trace::ScopeSpans::default() }],
        schema_url: "https://opentelemetry.io/schemas/1.26.0".to_owned(),
    };
    ExportTraceServiceRequest { resource_spans: (0..10).map(|service| group(service, random)).collect() }
}

/// A request in which every stack is used by so many samples.
fn profile_request(random: &mut Random, samples_per_stack: usize) -> ExportProfilesServiceRequest {
    let mut strings: Vec<String> =
        ["", "samples", "count", "cpu", "nanoseconds", "thread.name", "thread.id"].map(str::to_owned).to_vec();
    let mut dictionary = profiles::ProfilesDictionary {
        mapping_table: vec![profiles::Mapping::default()],
        location_table: vec![profiles::Location::default()],
        function_table: vec![profiles::Function::default()],
        link_table: vec![profiles::Link::default()],
        attribute_table: vec![profiles::KeyValueAndUnit::default()],
        stack_table: vec![profiles::Stack::default()],
        ..profiles::ProfilesDictionary::default()
    };
    for number in 0..FUNCTIONS {
        strings.push(format!("com.example.shop.module{}.Handler{number}.process", number % 40));
        let name_strindex = strings.len() as i32 - 1;
        if number % 10 == 0 {
            strings.push(format!("src/module{}/handler.rs", number % 40));
        }
        let filename_strindex = strings.len() as i32 - 1;
        let function = profiles::Function { name_strindex, filename_strindex, ..profiles::Function::default() };
        dictionary.function_table.push(function);
        let line = profiles::Line { function_index: number as i32 + 1, line: number as i64 + 10, column: 0 };
        dictionary.location_table.push(profiles::Location { lines: vec![line], ..profiles::Location::default() });
    }
    for number in 0..16 {
        for (key, value) in [(5, Value::StringValue(format!("worker-{number}"))), (6, Value::IntValue(1000 + number))] {
            let value = Some(AnyValue { value: Some(value) });
            let entry = profiles::KeyValueAndUnit { key_strindex: key, value, unit_strindex: 0 };
            dictionary.attribute_table.push(entry);
        }
    }
    let mut samples = Vec::new();
    for number in 0..SAMPLES {
        if number % samples_per_stack == 0 {
            // A walk down a call graph in which one callee is much more frequent than the others.
            let mut function = random.skewed(4);
            let mut location_indices = Vec::new();
            for _ in 0..30 + random.below(31) {
                location_indices.push(1 + function as i32);
                function = (function * 31 + random.skewed(4) * 97 + 13) % FUNCTIONS;
            }
            location_indices.reverse();
            dictionary.stack_table.push(profiles::Stack { location_indices });
        }
        let link_index = if number % 2 == 0 {
            dictionary.link_table.push(profiles::Link { trace_id: random.id(16), span_id: random.id(8) });
            dictionary.link_table.len() as i32 - 1
        } else {
            0
        };
        let thread = 1 + 2 * random.below(16) as i32;
        samples.push(profiles::Sample {
            stack_index: dictionary.stack_table.len() as i32 - 1,
            attribute_indices: vec![thread, thread + 1],
            link_index,
            values: vec![1 + random.below(3) as i64],
            timestamps_unix_nano: vec![1_700_000_000_000_000_000 + random.next() % 15_000_000_000],
        });
    }
    dictionary.string_table = strings;
    let value_type = |kind, unit| Some(profiles::ValueType { type_strindex: kind, unit_strindex: unit });
    let profile = profiles::Profile {
        sample_type: value_type(1, 2),
        samples,
        time_unix_nano: 1_700_000_000_000_000_000,
        duration_nano: 15_000_000_000,
        period_type: value_type(3, 4),
        period: 10_000_000,
        profile_id: random.id(16),
        ..profiles::Profile::default()
    };
    let scope = profiles::ScopeProfiles { profiles: vec![profile], ..profiles::ScopeProfiles::default() };
    let group = profiles::ResourceProfiles {
        resource: resource(1),
        scope_profiles: vec![scope],
        ..profiles::ResourceProfiles::default()
    };
    ExportProfilesServiceRequest { resource_profiles: vec![group], dictionary: Some(dictionary) }
}
