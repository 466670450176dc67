//! Profiles as particular senders make them, and what has to become of them.

use hotspan_formats::otlp::{Outcome, WireVersion, decode_profiles};
use hotspan_formats::{DecodeError, Limits};
use hotspan_model::{FrameKind, Link, ProfileSet, SpanId, TraceId};
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::profiles::v1development::{Location, Mapping, Profile, Sample};
use prost::Message as _;

use crate::builder::Builder;

/// Decodes a request and shows the set to `check`.
fn with_set(request: &ExportProfilesServiceRequest, check: impl FnOnce(&ProfileSet<'_>, &Outcome)) {
    let bytes = request.encode_to_vec();
    let (set, outcome, version) = decode_profiles(&bytes, &Limits::default(), 77).unwrap();
    assert_eq!(version, WireVersion::V1_10);
    check(&set, &outcome);
}

fn functions(set: &ProfileSet<'_>, path: u32) -> Vec<String> {
    let mut names: Vec<String> = set.paths.walk_to_root(path).map(|frame| frame.function.into_owned()).collect();
    names.reverse();
    names
}

/// Scenario: the eBPF profiler's CPU data: timestamps without values, thread and CPU number on each sample, some
/// linked, native frames without functions.
/// Guarantee: one observation of a period per timestamp, on its thread, linked; the CPU number stays out of labels;
/// the frame keeps file address, file and build id.
#[test]
fn ebpf_cpu_samples() {
    let mut builder = Builder::new();
    let native = builder.text_attribute("profile.frame.type", "native");
    let build_id = builder.text_attribute("process.executable.build_id.gnu", "abcd");
    let hash = builder.text_attribute("process.executable.build_id.htlhash", "ffff");
    let file = builder.string("/usr/bin/app");
    builder.dictionary.mapping_table.push(Mapping {
        memory_start: 0x1000,
        memory_limit: 0x9000,
        file_offset: 0x1000,
        filename_strindex: file,
        attribute_indices: vec![hash, build_id],
    });
    builder.dictionary.location_table.push(Location {
        mapping_index: 1,
        address: 0x1234,
        attribute_indices: vec![native],
        ..Location::default()
    });
    let stack = builder.stack(&[1]);
    let name = builder.text_attribute("thread.name", "worker");
    let id = builder.attribute("thread.id", Value::IntValue(12));
    let cpu = builder.attribute("cpu.logical_number", Value::IntValue(3));
    let link = builder.link(7, 9);
    let sample = |link_index: i32, times: &[u64]| Sample {
        stack_index: stack,
        attribute_indices: vec![name, id, cpu],
        link_index,
        timestamps_unix_nano: times.to_vec(),
        ..Sample::default()
    };
    let profile = builder.cpu_profile(vec![sample(link, &[1_100, 1_200]), sample(0, &[1_300])]);
    let request = builder.request(&[("service.name", "checkout"), ("container.id", "c1")], vec![profile]);
    with_set(&request, |set, outcome| {
        assert_eq!((outcome.accepted, outcome.rejected, outcome.is_clean()), (1, 0, true));
        let profile = &set.profiles[0];
        assert_eq!(profile.profile_type.to_string(), "process_cpu:cpu:nanoseconds:cpu:nanoseconds");
        assert_eq!(profile.labels.get("service_name"), Some("checkout"));
        assert_eq!(profile.labels.get("container.id"), Some("c1"));
        assert_eq!(
            profile.context.resource,
            "{\"attributes\":{\"service.name\":\"checkout\",\"container.id\":\"c1\"}}"
        );
        assert_eq!(
            profile.context.mappings,
            "[{\"memory_start\":4096,\"memory_limit\":36864,\"file_offset\":4096,\"filename\":\"/usr/bin/app\",\
             \"build_id\":\"abcd\",\"attributes\":{\"process.executable.build_id.htlhash\":\"ffff\",\
             \"process.executable.build_id.gnu\":\"abcd\"}}]"
        );
        let rows: Vec<(i64, i64, bool)> =
            profile.samples.iter().map(|sample| (sample.value, sample.time, sample.timed)).collect();
        assert_eq!(rows, [(50, 1_100, true), (50, 1_200, true), (50, 1_300, true)]);
        let [first, _, last] = &profile.samples[..] else { panic!() };
        assert_eq!(set.links[first.link as usize], Link { trace_id: TraceId([7; 16]), span_id: SpanId([9; 8]) });
        assert_eq!(set.links[last.link as usize], Link::default());
        assert_eq!(set.threads[first.thread as usize].id, Some(12));
        assert_eq!(set.threads[first.thread as usize].name, "worker");
        assert!(set.label_sets[first.labels as usize].is_empty());
        assert_eq!(set.attribute_sets[first.attributes as usize], "{\"cpu.logical_number\":3}");
        let frame = set.paths.walk_to_root(first.path).next().unwrap();
        assert_eq!((frame.address, frame.build_id.as_ref(), frame.mapping.as_ref()), (0x1234, "abcd", "/usr/bin/app"));
        assert_eq!((frame.kind, frame.function.as_ref()), (FrameKind::Native, ""));
    });
}

/// Scenario: the same program in two processes of a pprof-like profiler, at addresses of its own each time, and as the eBPF
/// profiler has it, where the linker placed it.
/// Guarantee: one frame.
#[test]
fn addresses_become_offsets_in_the_file() {
    let mut builder = Builder::new();
    let file = builder.string("app");
    for start in [0x55d0_0000_0000u64, 0x5612_3400_0000, 0x40_2000] {
        builder.dictionary.mapping_table.push(Mapping {
            memory_start: start,
            memory_limit: start + 0x10_0000,
            file_offset: 0x2000,
            filename_strindex: file,
            ..Mapping::default()
        });
        let mapping_index = builder.dictionary.mapping_table.len() as i32 - 1;
        builder.dictionary.location_table.push(Location {
            mapping_index,
            address: start + 0x10,
            ..Location::default()
        });
    }
    let stacks = [builder.stack(&[1]), builder.stack(&[2]), builder.stack(&[3])];
    let samples = stacks.map(|stack_index| Sample { stack_index, values: vec![1], ..Sample::default() }).to_vec();
    let profile = builder.cpu_profile(samples);
    with_set(&builder.request(&[], vec![profile]), |set, _| {
        let [one, other, linked] =
            [0, 1, 2].map(|sample: usize| set.paths.node_id(set.profiles[0].samples[sample].path));
        assert_eq!((one, one), (other, linked));
        assert_eq!(set.paths.frames.get(0).address, 0x2010);
        assert_eq!(set.profiles[0].labels.get("service_name"), Some("unknown_service"));
    });
}

/// Scenario: a location with inlined functions, the innermost first as the protocol has it.
/// Guarantee: the path runs from the outermost to the innermost, with lines and columns.
#[test]
fn inlined_functions_are_frames() {
    let mut builder = Builder::new();
    let inlined = builder.location(&["inner", "middle", "outer"]);
    let root = builder.location(&["main"]);
    let stack_index = builder.stack(&[inlined, root]);
    let profile = builder.cpu_profile(vec![Sample { stack_index, values: vec![1], ..Sample::default() }]);
    with_set(&builder.request(&[], vec![profile]), |set, _| {
        let path = set.profiles[0].samples[0].path;
        assert_eq!(functions(set, path), ["main", "outer", "middle", "inner"]);
        let leaf = set.paths.walk_to_root(path).next().unwrap();
        assert_eq!((leaf.line, leaf.column, leaf.kind), (1, 3, FrameKind::Inlined));
    });
}

/// Scenario: the three shapes of samples, those that are none, and values below zero.
/// Guarantee: values add up, timestamps count, pairs stay pairs; the others are refused one by one.
#[test]
fn sample_shapes() {
    let mut builder = Builder::new();
    let stack_index = builder.function_stack(&["f"]);
    let sample = |values: &[i64], times: &[u64]| Sample {
        stack_index,
        values: values.to_vec(),
        timestamps_unix_nano: times.to_vec(),
        ..Sample::default()
    };
    let samples = vec![
        sample(&[5], &[]),
        sample(&[5, 6], &[]),
        sample(&[], &[10, 20]),
        sample(&[7, 8], &[30, 40]),
        sample(&[7, 8], &[50]),
        sample(&[], &[]),
        sample(&[i64::MAX, 1], &[]),
        sample(&[-40], &[]),
        sample(&[50, -40], &[60, 70]),
    ];
    let mut profile = builder.cpu_profile(samples);
    profile.sample_type = builder.value_type("events", "count");
    with_set(&builder.request(&[], vec![profile]), |set, outcome| {
        assert_eq!(set.profiles[0].profile_type.to_string(), "cpu:events:count:cpu:nanoseconds");
        let rows: Vec<(i64, i64)> = set.profiles[0].samples.iter().map(|sample| (sample.value, sample.time)).collect();
        assert_eq!(rows, [(5, 1_000), (11, 1_000), (1, 10), (1, 20), (7, 30), (8, 40), (i64::MAX, 1_000)]);
        assert_eq!((outcome.accepted, outcome.rejected, outcome.rejected_samples), (1, 0, 4));
        assert_eq!(
            outcome.message(),
            "resource_profiles[0].scope_profiles[0].profiles[0].samples[4] has 2 values and 1 timestamps; equally \
             many, or only one of the two, expected; \
             resource_profiles[0].scope_profiles[0].profiles[0].samples[5] has neither values nor timestamps; \
             resource_profiles[0].scope_profiles[0].profiles[0].samples[7].values has the value -40; a difference of two \
             profiles can't be stored (and 1 more like it)"
        );
    });
}

/// Scenario: Go's CPU profile through a collector: the samples and the CPU time of one measurement.
/// Guarantee: CPU time is counted once.
#[test]
fn samples_and_cpu_time_do_not_count_twice() {
    let mut builder = Builder::new();
    let stack_index = builder.function_stack(&["f"]);
    let counts = builder.cpu_profile(vec![Sample { stack_index, values: vec![2], ..Sample::default() }]);
    let mut time = builder.cpu_profile(vec![Sample { stack_index, values: vec![100], ..Sample::default() }]);
    time.sample_type = builder.value_type("cpu", "nanoseconds");
    with_set(&builder.request(&[], vec![counts, time]), |set, _| {
        let told: Vec<(String, i64)> =
            set.profiles.iter().map(|profile| (profile.profile_type.to_string(), profile.samples[0].value)).collect();
        assert_eq!(
            told,
            [
                ("process_cpu:samples:count:cpu:nanoseconds".to_owned(), 2),
                ("process_cpu:cpu:nanoseconds:cpu:nanoseconds".to_owned(), 100)
            ]
        );
    });
}

/// Scenario: ids as attributes: of the sample in two spellings, of the resource; a link beside them.
/// Guarantee: all become links, none a label; the link table wins over attributes, the sample over the resource.
#[test]
fn ids_become_links_never_labels() {
    let mut builder = Builder::new();
    let stack_index = builder.function_stack(&["f"]);
    let span = builder.text_attribute("span_id", "0909090909090909");
    let decimal = builder.attribute("span id", Value::IntValue(1));
    let route = builder.text_attribute("http.route", "/cart");
    let link_index = builder.link(7, 9);
    let sample = |attribute_indices: &[i32], link_index: i32| Sample {
        stack_index,
        attribute_indices: attribute_indices.to_vec(),
        link_index,
        values: vec![1],
        ..Sample::default()
    };
    let samples =
        vec![sample(&[span, route], 0), sample(&[decimal], 0), sample(&[decimal], link_index), sample(&[], 0)];
    let profile = builder.cpu_profile(samples);
    let request = builder.request(&[("trace_id", "05050505050505050505050505050505")], vec![profile]);
    with_set(&request, |set, _| {
        let samples = &set.profiles[0].samples;
        let links: Vec<Link> = samples.iter().map(|sample| set.links[sample.link as usize]).collect();
        let trace_id = TraceId([5; 16]);
        assert_eq!(links[0], Link { trace_id, span_id: SpanId([9; 8]) });
        assert_eq!(links[1], Link { trace_id, span_id: SpanId([0, 0, 0, 0, 0, 0, 0, 1]) });
        assert_eq!(links[2], Link { trace_id: TraceId([7; 16]), span_id: SpanId([9; 8]) });
        assert_eq!(links[3], Link { trace_id, span_id: SpanId::default() });
        assert_eq!(set.label_sets[samples[0].labels as usize].get("http.route"), Some("/cart"));
        assert_eq!(set.label_sets.len(), 2);
        assert_eq!(set.profiles[0].labels.get("trace_id"), None);
    });
}

/// Scenario: ids that can't be read: of a sample as text and as bytes, of the resource.
/// Guarantee: no link and no label, but attributes of the sample; that of the resource stays with it.
#[test]
fn unreadable_ids_become_attributes() {
    let mut builder = Builder::new();
    let stack_index = builder.function_stack(&["f"]);
    let span = builder.text_attribute("span_id", "550e8400-e29b-41d4-a716-446655440000");
    let trace = builder.attribute("trace_id", Value::BytesValue(vec![1; 3]));
    let attribute_indices = vec![span, trace];
    let sample = Sample { stack_index, attribute_indices, values: vec![1], ..Sample::default() };
    let profile = builder.cpu_profile(vec![sample]);
    let request = builder.request(&[("trace_id", "not an id")], vec![profile]);
    with_set(&request, |set, _| {
        let sample = &set.profiles[0].samples[0];
        let attributes = &set.attribute_sets[sample.attributes as usize];
        assert!(attributes.contains(r#""span_id":"550e8400-e29b-41d4-a716-446655440000""#), "{attributes}");
        assert!(attributes.contains("\"trace_id\":"), "{attributes}");
        assert_eq!((sample.link, sample.labels, set.profiles[0].labels.get("trace_id")), (0, 0, None));
        assert!(set.profiles[0].context.resource.contains("not an id"), "{}", set.profiles[0].context.resource);
    });
}

/// Scenario: a host-wide profile whose samples name their service.
/// Guarantee: one profile for each service; the id stays with one of them.
#[test]
fn samples_of_several_services_are_parted() {
    let mut builder = Builder::new();
    let stack_index = builder.function_stack(&["f"]);
    let services = ["cart", "pay"].map(|name| builder.text_attribute("service.name", name));
    let samples = [services[0], services[1], services[0]]
        .map(|attribute| Sample {
            stack_index,
            attribute_indices: vec![attribute],
            values: vec![1],
            ..Sample::default()
        })
        .to_vec();
    let profile = Profile { profile_id: vec![4; 16], ..builder.cpu_profile(samples) };
    with_set(&builder.request(&[("service.name", "host")], vec![profile]), |set, outcome| {
        assert_eq!(outcome.accepted, 1);
        let told: Vec<(String, usize, bool)> = set
            .profiles
            .iter()
            .map(|profile| (profile.labels.service().into_owned(), profile.samples.len(), profile.id.is_some()))
            .collect();
        assert_eq!(told, [("cart".to_owned(), 2, true), ("pay".to_owned(), 1, false)]);
    });
}

/// Scenario: a stack deeper than the limit, cut inside a location with inlined functions.
/// Guarantee: the leaf side is kept under a marker, and the cut frames are counted and told, with nothing rejected.
#[test]
fn deep_stacks_are_cut_at_the_root() {
    let mut builder = Builder::new();
    let locations = [builder.location(&["a"]), builder.location(&["b", "c", "d"]), builder.location(&["main"])];
    let stack_index = builder.stack(&locations);
    let profile = builder.cpu_profile(vec![Sample { stack_index, values: vec![1], ..Sample::default() }]);
    let bytes = builder.request(&[], vec![profile]).encode_to_vec();
    let limits = Limits { max_stack_depth: 3, ..Limits::default() };
    let (set, outcome, _) = decode_profiles(&bytes, &limits, 0).unwrap();
    assert_eq!(functions(&set, set.profiles[0].samples[0].path), ["[truncated]", "c", "b", "a"]);
    assert_eq!((set.cut_frames, outcome.cut_frames, outcome.rejected, outcome.rejected_samples), (2, 2, 0, 0));
    assert!(outcome.message().contains("more than 3 frames, of which 2 in all were cut"), "{}", outcome.message());
    let limits = Limits { max_stack_depth: 2, ..Limits::default() };
    let (set, ..) = decode_profiles(&bytes, &limits, 0).unwrap();
    assert_eq!(functions(&set, set.profiles[0].samples[0].path), ["[truncated]", "b", "a"]);
    assert_eq!(set.cut_frames, 3);
}

/// Scenario: profiles without a time, with one that no clock shows, and with an id of the wrong size.
/// Guarantee: the time of arrival; the profile is kept, and the answer tells what was not.
#[test]
fn odd_times_and_ids() {
    let mut builder = Builder::new();
    let stack_index = builder.function_stack(&["f"]);
    let sample = |time: u64| Sample { stack_index, timestamps_unix_nano: vec![time], ..Sample::default() };
    let missing = Profile { time_unix_nano: 0, ..builder.cpu_profile(vec![sample(5), sample(u64::MAX)]) };
    let absurd = Profile {
        time_unix_nano: u64::MAX,
        duration_nano: u64::MAX,
        profile_id: vec![1; 15],
        ..builder.cpu_profile(vec![sample(5)])
    };
    with_set(&builder.request(&[], vec![missing, absurd]), |set, outcome| {
        assert_eq!((set.profiles[0].time, set.profiles[1].time), (77, 77));
        assert!(set.profiles.iter().all(|profile| profile.context.undated));
        assert_eq!(set.profiles[1].duration, i64::MAX);
        let rows: Vec<(i64, bool)> = set.profiles[0].samples.iter().map(|sample| (sample.time, sample.timed)).collect();
        assert_eq!(rows, [(5, true), (77, false)]);
        assert_eq!((outcome.accepted, outcome.rejected), (2, 0));
        assert!(outcome.message().contains("profiles[1].profile_id has 15 bytes"), "{}", outcome.message());
        assert!(outcome.message().contains("the time of arrival was taken"), "{}", outcome.message());
    });
}

/// Scenario: samples whose stack, link or function points nowhere.
/// Guarantee: refused one by one, with the index and the size of its table.
#[test]
fn indices_that_point_nowhere() {
    let mut builder = Builder::new();
    let good = builder.function_stack(&["f"]);
    builder.dictionary.function_table[1].name_strindex = 1;
    let bad_function = builder.function_stack(&["g"]);
    builder.dictionary.function_table[2].name_strindex = 99;
    let sample =
        |stack_index: i32, link_index: i32| Sample { stack_index, link_index, values: vec![1], ..Sample::default() };
    let samples = vec![sample(good, 0), sample(40, 0), sample(good, -1), sample(bad_function, 0)];
    let profile = builder.cpu_profile(samples);
    with_set(&builder.request(&[], vec![profile]), |set, outcome| {
        assert_eq!((set.sample_count(), outcome.rejected_samples), (1, 3));
        let message = outcome.message();
        assert!(message.contains("samples[1].stack_index is 40, but stack_table has 3 entries"), "{message}");
        assert!(message.contains("samples[2].link_index is -1, but link_table has 1 entries"), "{message}");
        assert!(
            message.contains(
                "samples[3].stack_index uses a dictionary entry that is broken: dictionary.stack_table[2].\
                 location_table[2].lines[0].name_strindex is 99, but string_table has 7 entries"
            ),
            "{message}"
        );
    });
}

/// Scenario: a few kilobytes whose profiles would each carry a copy of a large resource.
/// Guarantee: refused as a whole before the memory is taken.
#[test]
fn small_requests_do_not_become_large() {
    let builder = Builder::new();
    let text = "x".repeat(1_000_000);
    let request = builder.request(&[("big", &text)], vec![Profile::default(); 10_000]);
    let wrong = decode_profiles(&request.encode_to_vec(), &Limits::default(), 0).unwrap_err();
    assert_eq!(wrong, DecodeError::Expands { limit: 512 << 20 });
    assert!(wrong.is_too_large());
}

/// Scenario: 2,000 samples, each with a stack of its own 60 deep, walked down a call graph with rare side branches.
/// Guarantee: within a budget of eight times the request, as the default limits have it.
#[test]
fn real_requests_stay_within_the_budget() {
    let mut builder = Builder::new();
    let locations: Vec<i32> = (0..2_000)
        .map(|number| builder.location(&[&format!("com.example.shop.module.Handler{number}.process")]))
        .collect();
    let mut samples = Vec::new();
    for number in 0..2_000usize {
        let mut function = 0;
        let mut stack = Vec::new();
        for depth in 0..60usize {
            stack.push(locations[function]);
            let branches = (number * 7919 + depth * 104_729) % 23 == 0;
            function = (function * 31 + usize::from(branches) * 97 + 13) % 2_000;
        }
        stack.reverse();
        let stack_index = builder.stack(&stack);
        samples.push(Sample {
            stack_index,
            timestamps_unix_nano: vec![1_700_000_000_000_000_000 + number as u64],
            ..Sample::default()
        });
    }
    let profile = builder.cpu_profile(samples);
    let bytes = builder.request(&[("service.name", "cart")], vec![profile]).encode_to_vec();
    let limits = Limits { max_decoded_bytes: 8 * bytes.len(), ..Limits::default() };
    let (set, ..) = decode_profiles(&bytes, &limits, 0).unwrap();
    assert_eq!(set.sample_count(), 2_000);
}

/// Scenario: stacks of a few bytes that all go through a location with 500 inlined functions.
/// Guarantee: refused for the work they make, not carried out.
#[test]
fn inlining_does_not_multiply_work() {
    let mut builder = Builder::new();
    let names: Vec<String> = (0..500).map(|number| format!("f{number}")).collect();
    let inlined = builder.location(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let samples = (0..20_000)
        .map(|_| Sample { stack_index: builder.stack(&[inlined]), values: vec![1], ..Sample::default() })
        .collect();
    let profile = builder.cpu_profile(samples);
    let bytes = builder.request(&[], vec![profile]).encode_to_vec();
    assert!(bytes.len() < 400_000);
    let limits = Limits { max_decoded_bytes: 16 << 20, ..Limits::default() };
    let wrong = decode_profiles(&bytes, &limits, 0).unwrap_err();
    assert!(wrong.is_too_large(), "{wrong}");
}
