//! One entry for every file.

use hotspan_formats::{DecodeOptions, Fault, FileFormat, Limits, decode_file, detect, expanded, gzip};

use crate::support::{fixture, flamebearer_of, share_of, sums};

/// Every file that a real tool wrote, and its format.
pub(crate) const FILES: &[(&str, FileFormat)] = &[
    ("async-chunks.jfr", FileFormat::Jfr),
    ("async-cpu-alloc-lock.jfr", FileFormat::Jfr),
    ("async-cpu-wall.jfr", FileFormat::Jfr),
    ("async-itimer.collapsed", FileFormat::Collapsed),
    ("async-itimer.jfr", FileFormat::Jfr),
    ("async-itimer.otlp", FileFormat::OtlpProfiles),
    ("async-live.jfr", FileFormat::Jfr),
    ("async-nativemem.jfr", FileFormat::Jfr),
    ("async-spans.jfr", FileFormat::Jfr),
    ("async-wall.jfr", FileFormat::Jfr),
    ("go-block.pb.gz", FileFormat::Pprof),
    ("go-cpu.pb.gz", FileFormat::Pprof),
    ("go-goroutine.pb.gz", FileFormat::Pprof),
    ("go-heap.pb.gz", FileFormat::Pprof),
    ("go-mutex.pb.gz", FileFormat::Pprof),
    ("jdk-live.jfr.gz", FileFormat::Jfr),
    ("jdk.jfr.gz", FileFormat::Jfr),
    ("node.cpuprofile", FileFormat::V8Cpu),
    ("node.heapprofile", FileFormat::V8Heap),
    ("perf-script.txt", FileFormat::PerfScript),
    ("perf-script-flat.txt", FileFormat::PerfScript),
    ("py-spy.collapsed", FileFormat::Collapsed),
    ("pyroscope-agent.jfr", FileFormat::Jfr),
    ("py-spy.speedscope.json", FileFormat::Speedscope),
];

/// Scenario: each file, whole and cut in half. Guarantee: its format is recognised either way.
#[test]
fn formats_are_recognised() {
    for (name, format) in FILES {
        let bytes = fixture(name);
        let plain = expanded(&bytes, &Limits::default()).unwrap();
        assert_eq!(detect(&plain), Some(*format), "{name}");
        assert_eq!(detect(&plain[..plain.len() / 2]), Some(*format), "half of {name}");
    }
}

/// Scenario: a flame graph as Grafana exports it, whole and cut in half.
/// Guarantee: its format is recognised either way, and half of it is called cut short.
#[test]
fn flamebearer_is_recognised() {
    let exported = flamebearer_of("py-spy.collapsed");
    let half = &exported[..exported.len() / 2];
    assert_eq!((detect(&exported), detect(half)), (Some(FileFormat::Flamebearer), Some(FileFormat::Flamebearer)));
    assert_eq!(decode_file(half, &DecodeOptions::default()).unwrap_err().fault, Fault::Truncated);
}

/// Scenario: each file plain and gzipped. Guarantee: the same profiles with the same sums.
#[test]
fn compression_changes_nothing() {
    let options = DecodeOptions { from: 1_700_000_000_000_000_000, ..DecodeOptions::default() };
    for (name, format) in FILES {
        let bytes = fixture(name);
        let plain = expanded(&bytes, &options.limits).unwrap();
        let zipped = gzip(&plain);
        let (left, right) = (decode_file(&plain, &options).unwrap(), decode_file(&zipped, &options).unwrap());
        assert_eq!(left.profiles.len(), right.profiles.len(), "{name} {format:?}");
        for (a, b) in left.profiles.iter().zip(&right.profiles) {
            assert_eq!((&a.profile_type, &a.samples, &a.labels), (&b.profile_type, &b.samples, &b.labels));
            assert_eq!(sums(&left, a), sums(&right, b));
            assert!(!a.samples.is_empty(), "{name}");
        }
    }
}

/// Scenario: collapsed stacks as PHP's profilers write them, whose root is `{main}`, plain and with lines of comments before.
/// Guarantee: they are no JSON, and each stack has its value.
#[test]
fn braces_are_no_json() {
    for text in ["{main};load;{closure} 3\n{main};load 2\n", "# by xdebug\n\n{main};load;{closure} 3\n{main};load 2\n"]
    {
        assert_eq!(detect(text.as_bytes()), Some(FileFormat::Collapsed), "{text}");
        let set = decode_file(text.as_bytes(), &DecodeOptions::default()).unwrap();
        let expected = [("{main}:0;load:0;{closure}:0".to_owned(), 3), ("{main}:0;load:0".to_owned(), 2)];
        assert_eq!(sums(&set, &set.profiles[0]), expected.into_iter().collect());
    }
    // A line of JSON may end in a number, too.
    assert_eq!(detect(b"{\n  \"a\": 1\n}\n"), None);
}

/// Scenario: every text format with the byte order mark that editors on Windows write, and one that is wrong behind it.
/// Guarantee: the profiles are those of the file without it, and the error names the byte of the file.
#[test]
fn byte_order_marks_are_no_text() {
    let options = DecodeOptions { from: 1_700_000_000_000_000_000, ..DecodeOptions::default() };
    let exported = flamebearer_of("py-spy.collapsed");
    let texts =
        ["py-spy.collapsed", "py-spy.speedscope.json", "perf-script.txt", "node.cpuprofile", "node.heapprofile"];
    let otlp = br#"{"resourceProfiles":[]}"#.to_vec();
    for plain in texts.map(fixture).into_iter().chain([exported, otlp]) {
        let marked = [b"\xef\xbb\xbf", &plain[..]].concat();
        let (left, right) = (decode_file(&plain, &options).unwrap(), decode_file(&marked, &options).unwrap());
        assert_eq!((detect(&marked), left.profiles.len()), (detect(&plain), right.profiles.len()));
        for (a, b) in left.profiles.iter().zip(&right.profiles) {
            assert_eq!((&a.profile_type, &a.samples, sums(&left, a)), (&b.profile_type, &b.samples, sums(&right, b)));
        }
    }
    let error = decode_file("\u{feff}main 1\nmain x\n".as_bytes(), &options).unwrap_err().to_string();
    assert_eq!(error, "collapsed: at byte 15: expected a whole number at the end of the line, found \"x\"");
}

/// Scenario: files that are no profiles. Guarantee: refused with the list of what could have been.
#[test]
fn strangers_are_refused() {
    let long_text = "lorem ipsum\n".repeat(100);
    for bytes in
        [b"".as_slice(), b"hello", b"{\"a\":1}", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", long_text.as_bytes(), b"\0\0\0\0"]
    {
        let error = decode_file(bytes, &DecodeOptions::default()).unwrap_err();
        assert_eq!(error.fault, Fault::UnknownFormat, "{error}");
        assert!(error.to_string().contains("pprof, JFR"), "{error}");
    }
}

/// Scenario: async-profiler's OTLP file, pushed with a service and a span.
/// Guarantee: the burning function has its share, the label is set, and every sample belongs to the span.
#[test]
fn otlp_file_with_given_span() {
    let bytes = fixture("async-itimer.otlp");
    let link = hotspan_model::Link { span_id: "00f067aa0ba902b7".parse().unwrap(), ..Default::default() };
    let labels = hotspan_model::Labels::from_pairs([("service_name", "shop")]);
    let options = DecodeOptions { link, labels, ..DecodeOptions::default() };
    let set = decode_file(&bytes, &options).unwrap();
    let profile = &set.profiles[0];
    assert_eq!(profile.labels.get("service_name"), Some("shop"));
    assert!(share_of(&set, profile, "Burn.burnHot") > 0.4);
    assert!(profile.samples.iter().all(|sample| set.links[sample.link as usize] == link));
}
