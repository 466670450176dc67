//! pprof from Go's runtime.

use std::collections::BTreeSet;

use hotspan_formats::{DecodeOptions, Fault, Limits, expanded, gzip, pprof};
use hotspan_model::{Labels, ProfileSet};

use crate::support::{assert_same_through_pprof, fixture, profile, share_of, sums};

const CPU: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";

fn plain(name: &str) -> Vec<u8> {
    expanded(&fixture(name), &Limits::default()).unwrap().into_owned()
}

/// Scenario: a Go CPU profile of which three quarters ran inside a span, with labels set by `pprof.Do`.
/// Guarantee: the burning functions have their shares, and exactly the samples of the span are linked to it.
#[test]
fn go_cpu_with_span_labels() {
    let bytes = plain("go-cpu.pb.gz");
    let set = pprof::decode(&bytes, &DecodeOptions::default()).unwrap();
    let cpu = profile(&set, CPU);
    profile(&set, "process_cpu:samples:count:cpu:nanoseconds");
    assert!((share_of(&set, cpu, "main.burnInSpan") - 0.75).abs() < 0.1);
    assert!((share_of(&set, cpu, "main.burnOutside") - 0.25).abs() < 0.1);
    for sample in &cpu.samples {
        let passes = |name: &str| set.paths.walk_to_root(sample.path).any(|frame| frame.function == name);
        if passes("main.burnInSpan") {
            let link = set.links[sample.link as usize];
            assert_eq!(link.span_id.to_string(), "00f067aa0ba902b7");
            assert_eq!(link.trace_id.to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
            let labels = &set.label_sets[sample.labels as usize];
            let expected = Labels::from_pairs([("span_name", "checkout"), ("vehicle", "car")]);
            assert_eq!(*labels, expected, "ids are links, never labels");
        } else if passes("main.burnOutside") {
            assert_eq!(sample.link, 0);
        }
    }
    assert!(cpu.time > 1_700_000_000_000_000_000 && cpu.duration > 1_900_000_000);
    assert_eq!(cpu.period, 10_000_000);
    assert_same_through_pprof(&set);
}

/// Scenario: the same profile with a span id that can't be read, and with texts longer than the limit.
/// Guarantee: the id is an attribute of its samples; texts are cut, each counted once, and the numbers are the same.
#[test]
fn go_cpu_beyond_limits() {
    let mut bytes = plain("go-cpu.pb.gz");
    let id = b"00f067aa0ba902b7";
    let at = bytes.windows(id.len()).position(|window| window == id).unwrap();
    bytes[at..at + id.len()].copy_from_slice(b"not-the-id-of-it");
    let whole = pprof::decode(&bytes, &DecodeOptions::default()).unwrap();
    let attributes: Vec<&String> = whole.attribute_sets.iter().filter(|set| !set.is_empty()).collect();
    assert_eq!(attributes, [r#"{"span_id":"not-the-id-of-it"}"#]);
    let cpu = profile(&whole, CPU);
    let in_span = cpu.samples.iter().filter(|sample| sample.attributes != 0);
    assert!(in_span.clone().count() > 0);
    assert!(in_span.clone().all(|sample| whole.links[sample.link as usize].span_id.is_zero()));
    assert!(whole.label_sets.iter().all(|labels| labels.get("span_id").is_none()));

    let limits = Limits { max_text_bytes: 16, ..Limits::default() };
    let cut = pprof::decode(&bytes, &DecodeOptions { limits, ..DecodeOptions::default() }).unwrap();
    assert!(cut.paths.frames.iter().all(|frame| frame.function.len() <= 16 && frame.file.len() <= 16));
    let texts = whole.paths.frames.iter().flat_map(|frame| [frame.function.into_owned(), frame.file.into_owned()]);
    let long: BTreeSet<String> = texts.filter(|text| text.len() > 16).collect();
    assert!(cut.cut_texts >= long.len() as u64 && cut.cut_texts < 2 * long.len() as u64, "{}", cut.cut_texts);
    let sum = |set: &ProfileSet<'_>| profile(set, CPU).samples.iter().map(|sample| sample.value).sum::<i64>();
    assert_eq!(sum(&cut), sum(&whole));
}

/// Scenario: Go's heap, mutex, block and goroutine profiles as `/debug/pprof` serves them.
/// Guarantee: each gets Pyroscope's name and types, and holds the function that caused it.
#[test]
fn go_kinds_are_told_apart() {
    let expected = [
        ("go-heap.pb.gz", "memory:inuse_space:bytes:space:bytes", "main.allocateKept"),
        ("go-heap.pb.gz", "memory:alloc_space:bytes:space:bytes", "main.allocateKept"),
        ("go-mutex.pb.gz", "mutex:delay:nanoseconds:contentions:count", "main.contend"),
        ("go-block.pb.gz", "block:delay:nanoseconds:contentions:count", "main.contend"),
    ];
    for (file, profile_type, function) in expected {
        let bytes = plain(file);
        let set = pprof::decode(&bytes, &DecodeOptions::default()).unwrap();
        let share = share_of(&set, profile(&set, profile_type), function);
        assert!(share > 0.5, "{file}: {function} has {share}");
        assert_same_through_pprof(&set);
    }
    let bytes = plain("go-goroutine.pb.gz");
    let set = pprof::decode(&bytes, &DecodeOptions::default()).unwrap();
    assert!(!profile(&set, "goroutine:goroutine:count:goroutine:count").samples.is_empty());
}

/// Scenario: heap samples carry the number of bytes of each object as a numeric label.
/// Guarantee: it is kept beside the sample and makes no label.
#[test]
fn numeric_labels_are_attributes() {
    let bytes = plain("go-heap.pb.gz");
    let set = pprof::decode(&bytes, &DecodeOptions::default()).unwrap();
    let space = profile(&set, "memory:inuse_space:bytes:space:bytes");
    let sample = space.samples.iter().max_by_key(|sample| sample.value).unwrap();
    assert!(set.attribute_sets[sample.attributes as usize].contains("\"bytes\""));
    assert!(set.label_sets.len() == 1);
}

/// Scenario: names and ids that the transport brings: Push's `__name__`, a span id among the series labels.
/// Guarantee: the name is used, the id becomes a link and no label.
#[test]
fn transport_facts() {
    let bytes = plain("go-cpu.pb.gz");
    let labels = [("service_name", "shop"), ("span_id", "00000000000000ab"), ("__delta__", "false")];
    let options = DecodeOptions {
        labels: Labels::from_pairs(labels),
        name: Some("godeltaprof_custom".into()),
        ..DecodeOptions::default()
    };
    let set = pprof::decode(&bytes, &options).unwrap();
    let cpu = profile(&set, "custom:cpu:nanoseconds:cpu:nanoseconds");
    assert_eq!(cpu.labels, Labels::from_pairs([("service_name", "shop")]));
    let spans: Vec<String> =
        cpu.samples.iter().map(|sample| set.links[sample.link as usize].span_id.to_string()).collect();
    assert!(spans.contains(&"00000000000000ab".to_owned()) && spans.contains(&"00f067aa0ba902b7".to_owned()));
}

/// Scenario: a profile cut short at every byte. Guarantee: no panic, and errors name a place inside the file.
#[test]
fn truncation_is_an_error_or_a_shorter_profile() {
    let bytes = plain("go-cpu.pb.gz");
    let mut refused = 0;
    for length in 0..bytes.len() {
        match pprof::decode(&bytes[..length], &DecodeOptions::default()) {
            Ok(_) => {}
            Err(error) => {
                refused += 1;
                assert!(error.offset <= length as u64, "{error}");
            }
        }
    }
    assert!(refused > bytes.len() * 9 / 10);
    let error = pprof::decode(&bytes[..10], &DecodeOptions::default()).unwrap_err();
    assert_eq!(error.to_string(), "pprof: at byte 10: expected at least one sample type, found none");
}

/// Scenario: stacks deeper than the limit. Guarantee: the leaf side stays, and what was cut is counted.
#[test]
fn deep_stacks_are_cut_and_counted() {
    let bytes = plain("go-cpu.pb.gz");
    let limits = Limits { max_stack_depth: 2, ..Limits::default() };
    let options = DecodeOptions { limits, ..DecodeOptions::default() };
    let set = pprof::decode(&bytes, &options).unwrap();
    assert!(set.cut_frames > 0);
    let cpu = profile(&set, CPU);
    assert!(
        sums(&set, cpu)
            .keys()
            .any(|stack| stack.starts_with("[truncated]:0;main.burn") && stack.contains(";main.spin"))
    );
}

/// A profile of one sample: a function with a name called from an address without one, in a binary of this build.
fn of_build(build_id: &str) -> Vec<u8> {
    let field = |number: u8, content: &[u8]| [&[number << 3 | 2, content.len() as u8], content].concat();
    let strings = ["", "cpu", "nanoseconds", "/bin/shop", build_id, "main.work"];
    let mut profile = [
        field(1, &[1 << 3, 1, 2 << 3, 2]),
        field(2, &[field(1, &[1, 2]), field(2, &[7])].concat()),
        field(3, &[1 << 3, 1, 5 << 3, 3, 6 << 3, 4]),
        field(4, &[&[1 << 3, 1, 2 << 3, 1, 3 << 3, 9][..], &field(4, &[1 << 3, 1, 2 << 3, 42])].concat()),
        field(4, &[1 << 3, 2, 2 << 3, 1, 3 << 3, 11]),
        field(5, &[1 << 3, 1, 2 << 3, 5]),
    ]
    .concat();
    strings.iter().for_each(|text| profile.extend(field(6, text.as_bytes())));
    profile
}

/// Scenario: the same program built twice. Guarantee: a frame with a function is the same in both, as by OTLP; one without
/// is known by its build, which a symboliser needs; and a file that is written again still says the build of both.
#[test]
fn builds_split_only_what_has_no_name() {
    let (one, other) = (of_build("b1"), of_build("b2"));
    let [one, other] = [&one, &other].map(|bytes| pprof::decode(bytes, &DecodeOptions::default()).unwrap());
    let frames = |set: &hotspan_model::ProfileSet<'_>| {
        let path = set.profiles[0].samples[0].path;
        set.paths.walk_to_root(path).map(|frame| frame.into_owned()).collect::<Vec<_>>()
    };
    let ([named, bare], [named_other, bare_other]) = (&frames(&one)[..], &frames(&other)[..]) else { panic!() };
    assert_eq!((named, &*named.function, &*named.build_id), (named_other, "main.work", ""));
    assert_eq!((&*bare.build_id, bare.address, &*bare_other.build_id), ("b1", 11, "b2"));
    assert!(one.profiles[0].context.mappings.contains("\"build_id\":\"b1\""));
    let written = expanded(&pprof::encode(&one), &Limits::default()).unwrap().into_owned();
    let again = pprof::decode(&written, &DecodeOptions::default()).unwrap();
    let mappings: serde_json::Value = serde_json::from_str(&again.profiles[0].context.mappings).unwrap();
    assert_eq!(mappings.as_array().unwrap().len(), 1, "{mappings}");
    assert_eq!((&mappings[0]["filename"], &mappings[0]["build_id"]), (&"/bin/shop".into(), &"b1".into()));
}

/// Scenario: a gzip bomb. Guarantee: expanding stops at the limit.
#[test]
fn gzip_is_bounded() {
    let bomb = gzip(&vec![0u8; 1 << 22]);
    let limits = Limits { max_bytes: 1 << 20, ..Limits::default() };
    assert_eq!(expanded(&bomb, &limits).unwrap_err().fault, Fault::TooLarge);
    let cut = expanded(&bomb[..bomb.len() / 2], &Limits::default()).unwrap_err();
    assert!(cut.to_string().starts_with("gzip: at byte"), "{cut}");
}
