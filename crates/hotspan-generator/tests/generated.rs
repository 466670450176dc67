//! What the generator promises: the same bytes for the same seed, the sizes of the design's data set, samples inside
//! their spans, and an oracle that agrees with what the server's own decoders read.

// Helpers of tests may unwrap like the tests themselves; clippy knows only the latter.
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;

use hotspan_formats::Limits;
use hotspan_formats::otlp::{decode_profiles, decode_traces};
use hotspan_generator::encode::{SampleShape, pprof_file, profile_requests, trace_requests};
use hotspan_generator::{
    Oracle, OracleDetail, PlantedCause, PlantedTime, SampleKind, Settings, WINDOW_NANOS, Workload,
};
use hotspan_model::{Resource, Scope, Span, StatusCode, TraceSink};

fn workload(settings: Settings) -> Workload {
    Workload::new(settings).unwrap()
}

fn bytes_of(workload: &Workload) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for window in workload.windows() {
        all.extend(trace_requests(&window, 1000).map(|request| request.bytes));
        all.extend(profile_requests(&window, 2, SampleShape::Merged).map(|request| request.bytes));
        all.extend(window.profiles.iter().map(|profile| pprof_file(&window, profile)));
    }
    all
}

/// Scenario: one seed twice, and another one; the last window alone.
/// Guarantee: equal bytes, other bytes, and the same window as when all before it are made.
#[test]
fn seeds_decide_everything() {
    let first = bytes_of(&workload(Settings::small()));
    assert_eq!(first, bytes_of(&workload(Settings::small())));
    assert_ne!(first, bytes_of(&workload(Settings { seed: 43, ..Settings::small() })));
    let again = workload(Settings::small());
    let alone = profile_requests(&again.window(3), 2, SampleShape::Merged).map(|request| request.bytes).last();
    let window = again.windows().last().unwrap();
    assert_eq!(alone, profile_requests(&window, 2, SampleShape::Merged).map(|request| request.bytes).last());
}

/// Scenario: two minutes at the rates of the design. Guarantee: about as many bytes, spans and linked samples as it says.
#[test]
fn sizes_are_those_of_the_design() {
    let workload = workload(Settings::of_hours(1.0 / 30.0));
    let mut oracle = Oracle::new(&workload, OracleDetail::OneTraceIn(100));
    let (mut trace_bytes, mut profile_bytes, mut deepest, mut shallow) = (0, 0, 0, 0);
    for window in workload.windows() {
        oracle.add(&window);
        trace_bytes += trace_requests(&window, 1000).map(|request| request.bytes.len()).sum::<usize>();
        profile_bytes +=
            profile_requests(&window, 1, SampleShape::Merged).map(|request| request.bytes.len()).sum::<usize>();
        for profile in &window.profiles {
            let calls = &workload.fleet().services[usize::from(profile.service)].calls;
            for sample in &profile.samples {
                let depth = calls.leaf_to_root(sample.node).count();
                deepest = deepest.max(depth);
                shallow += usize::from(depth <= 20);
            }
        }
    }
    let span_bytes = trace_bytes as f64 / oracle.spans as f64;
    assert!((310.0..370.0).contains(&span_bytes), "{span_bytes} B a span");
    let sample_bytes = profile_bytes as f64 / oracle.samples as f64;
    assert!((275.0..335.0).contains(&sample_bytes), "{sample_bytes} B a sample");
    let spans_per_trace = oracle.spans as f64 / oracle.traces as f64;
    assert!((18.0..22.0).contains(&spans_per_trace), "{spans_per_trace}");
    let linked = oracle.linked_samples as f64 / oracle.samples as f64;
    assert!((0.49..0.51).contains(&linked), "{linked}");
    assert_eq!((oracle.traces, oracle.samples), (workload.settings().traces, workload.settings().samples));
    assert!((55..=60).contains(&deepest), "{deepest}");
    assert!(shallow as f64 > 0.1 * oracle.samples as f64, "{shallow}");
}

/// Scenario: every span and every linked sample. Guarantee: children inside parents, samples inside their span and on
/// its service, everything inside its window.
#[test]
fn times_and_services_fit() {
    let workload = workload(Settings::small());
    for window in workload.windows() {
        let by_id: HashMap<_, _> = window.spans.iter().map(|span| (span.span.span_id, span)).collect();
        for span in &window.spans {
            assert!(span.span.start < span.span.end);
            if let Some(parent) = span.span.parent_id {
                let parent = &by_id[&parent].span;
                assert!(parent.start <= span.span.start && span.span.end <= parent.end);
                assert_eq!(parent.trace_id, span.span.trace_id);
            } else {
                assert!((window.start..window.end()).contains(&span.span.start));
            }
        }
        for profile in &window.profiles {
            for sample in &profile.samples {
                assert!((profile.start..profile.start + WINDOW_NANOS).contains(&sample.time));
                let Some(number) = sample.span else { continue };
                let span = &window.spans[number as usize];
                assert_eq!(span.service, profile.service);
                assert!((span.span.start..span.span.end).contains(&sample.time));
            }
        }
    }
}

#[derive(Default)]
struct SpanCounter {
    service: String,
    counts: HashMap<(String, String, StatusCode), u64>,
}

impl TraceSink for SpanCounter {
    fn resource(&mut self, resource: &Resource<'_>) {
        let name = resource.attributes.iter().find(|attribute| attribute.key == "service.name").unwrap();
        self.service = name.value.as_str().unwrap().to_owned();
    }

    fn scope(&mut self, _: &Scope<'_>) {}

    fn span(&mut self, span: &Span<'_>) {
        *self.counts.entry((self.service.clone(), span.name.to_owned(), span.status)).or_default() += 1;
    }
}

/// Scenario: all requests, in either shape, read by the server's decoders.
/// Guarantee: nothing refused, and every sum is the oracle's.
#[test]
fn decoders_read_what_the_oracle_says() {
    for shape in [SampleShape::Merged, SampleShape::Single] {
        assert_sums_of_oracle(shape);
    }
}

fn assert_sums_of_oracle(shape: SampleShape) {
    let workload = workload(Settings { planted: vec![tax_lookup(PlantedTime::Waiting)], ..Settings::small() });
    let oracle = Oracle::of(&workload, OracleDetail::Everything);
    let limits = Limits::default();
    let mut counter = SpanCounter::default();
    let mut paths: HashMap<(String, String, Vec<String>), i64> = HashMap::new();
    let mut spans: HashMap<_, i64> = HashMap::new();
    for window in workload.windows() {
        for request in trace_requests(&window, 300) {
            let outcome = decode_traces(&request.bytes, &limits, &mut counter).unwrap();
            assert_eq!((outcome.accepted, outcome.rejected), (request.spans as u64, 0));
        }
        for request in profile_requests(&window, 3, shape) {
            let (set, outcome, _) = decode_profiles(&request.bytes, &limits, 0).unwrap();
            assert_eq!(outcome.rejected, 0, "{outcome:?}");
            assert_eq!(set.sample_count(), request.samples);
            for profile in &set.profiles {
                let service = profile.labels.get("service_name").unwrap();
                for sample in &profile.samples {
                    let mut names: Vec<String> =
                        set.paths.walk_to_root(sample.path).map(|frame| frame.function.to_string()).collect();
                    names.reverse();
                    let key = (service.to_owned(), profile.profile_type.sample_type.clone(), names);
                    *paths.entry(key).or_default() += sample.value;
                    let link = set.links[sample.link as usize];
                    *spans.entry(link.span_id).or_default() += sample.value;
                }
            }
        }
    }
    for (service, name, status, count) in oracle.span_counts() {
        let service = &workload.fleet().services[usize::from(service)].name;
        assert_eq!(counter.counts.remove(&(service.clone(), name.to_owned(), status)), Some(count));
    }
    assert!(counter.counts.is_empty());
    for (number, service) in workload.fleet().services.iter().enumerate() {
        for kind in SampleKind::ALL {
            for (path, value) in oracle.paths(workload.fleet(), number as u16, kind) {
                assert_eq!(paths.remove(&(service.name.clone(), kind.name().to_owned(), path)), Some(value));
            }
        }
    }
    assert!(paths.is_empty(), "{} paths too many", paths.len());
    for (span, sums) in oracle.spans_kept() {
        assert_eq!(spans.get(&span).copied().unwrap_or(0), sums.values.iter().sum::<i64>());
    }
}

/// Scenario: the oracle's own sums. Guarantee: services, windows, functions, spans and traces add up to the same.
#[test]
fn oracle_adds_up() {
    let workload = workload(Settings::small());
    let oracle = Oracle::of(&workload, OracleDetail::Everything);
    let kind = SampleKind::Cpu;
    let mut sum = 0;
    for service in 0..workload.settings().services {
        let total = oracle.service_total(service, kind);
        sum += total;
        assert_eq!(oracle.series(service, kind).iter().map(|(_, value)| value).sum::<i64>(), total);
        let functions = oracle.functions(workload.fleet(), service, kind);
        assert_eq!(functions.values().map(|(own, _)| own).sum::<i64>(), total);
        assert!(functions.values().all(|(own, all)| own <= all && *all <= total));
    }
    assert_eq!(sum, oracle.total(kind));
    assert_eq!(oracle.spans_kept().len() as u64, oracle.spans);
    assert_eq!(oracle.traces_kept().iter().map(|(_, trace)| trace.spans).sum::<u64>(), oracle.spans);
    assert_eq!(oracle.spans_kept().iter().map(|(_, span)| span.samples).sum::<u64>(), oracle.linked_samples);
    let in_traces: i64 = oracle.traces_kept().iter().map(|(_, trace)| trace.values[0]).sum();
    assert_eq!(in_traces, oracle.spans_kept().iter().map(|(_, span)| span.values[0]).sum::<i64>());
    let some = Oracle::of(&workload, OracleDetail::OneTraceIn(10));
    assert!((5..50).contains(&some.traces_kept().len()), "{}", some.traces_kept().len());
    assert_eq!(some.total(kind), sum);
}

fn tax_lookup(time: PlantedTime) -> PlantedCause {
    let fleet = workload(Settings::small());
    let service = &fleet.fleet().services[3];
    PlantedCause {
        service: service.name.clone(),
        operation: service.endpoints()[0].name.clone(),
        slow_share: 0.3,
        slow_nanos: 400_000_000,
        fast_nanos: 0,
        function: "tax.lookupTaxRate".to_owned(),
        file: "tax.go".to_owned(),
        line: 112,
        time,
        marking: Some(("tax.region".to_owned(), "remote".to_owned())),
    }
}

/// Scenario: a planted cause on the CPU. Guarantee: about its share of requests is slow, marked, and has its time in the
/// planted function; a service that is not there is refused by name.
#[test]
fn planted_causes_show() {
    let cause = tax_lookup(PlantedTime::OnCpu);
    let planted = workload(Settings { planted: vec![cause.clone()], traces: 2_000, ..Settings::small() });
    let (mut slow, mut fast) = ((0, 0), (0, 0));
    for window in planted.windows() {
        for span in window.spans.iter().filter(|span| span.span.name == cause.operation && span.service == 3) {
            let sums = if span.planted_slow { &mut slow } else { &mut fast };
            *sums = (sums.0 + 1, sums.1 + span.span.end - span.span.start);
            let marked = span.span.attributes.iter().any(|attribute| attribute.key == "tax.region");
            assert_eq!(marked, span.planted_slow || span.span.kind == hotspan_model::SpanKind::Client && marked);
        }
    }
    let share = f64::from(slow.0) / f64::from(slow.0 + fast.0);
    assert!((0.2..0.4).contains(&share), "{share}");
    assert!(slow.1 / i64::from(slow.0) - fast.1 / i64::from(fast.0) > 200_000_000);
    let oracle = Oracle::of(&planted, OracleDetail::OneTraceIn(1000));
    let functions = oracle.functions(planted.fleet(), 3, SampleKind::Cpu);
    let per_request = functions["tax.lookupTaxRate"].0 / i64::from(slow.0);
    assert!((300_000_000..500_000_000).contains(&per_request), "{per_request}");

    let wrong = PlantedCause { service: "nobody".to_owned(), ..cause };
    let error = Workload::new(Settings { planted: vec![wrong], ..Settings::small() }).unwrap_err();
    assert!(error.to_string().contains("nobody"));
    assert!(Workload::new(Settings { linked_share: f64::NAN, ..Settings::small() }).is_err());
}
