//! Files that end too early: refused, with the place where they end, wherever that can be told.

use hotspan_formats::{DecodeOptions, Fault, FileFormat, Limits, collapsed, decode_file, expanded, perf_script};
use hotspan_formats::{speedscope, v8};

use crate::detection::FILES;
use crate::support::{fixture, flamebearer_of};

/// Whether nobody can tell from the bytes that more should follow.
fn may_end(format: FileFormat, plain: &[u8], length: usize) -> bool {
    let kept = &plain[..length];
    match format {
        // A chunk is whole, and the next one is not announced.
        FileFormat::Jfr => {
            let mut at = 0;
            while at < length {
                at += u64::from_be_bytes(plain[at + 8..at + 16].try_into().unwrap()) as usize;
            }
            at == length
        }
        // A number that lost some digits is a number still.
        FileFormat::Collapsed => kept.ends_with(b"\n") || kept.last().is_some_and(u8::is_ascii_digit),
        // Where there are stacks, an empty line ends each.
        FileFormat::PerfScript if plain.ends_with(b"\n\n") => kept.ends_with(b"\n\n"),
        // A command and its id alone are a stack and its count.
        FileFormat::PerfScript => kept.ends_with(b"\n") || !kept.contains(&b':'),
        // Protobuf has no mark at its end: whatever may be absent may be cut off.
        FileFormat::Pprof | FileFormat::OtlpProfiles => {
            let mut at = 0;
            while at < length {
                let tag = plain[at];
                at += 1;
                let mut value = 0;
                for place in 0.. {
                    value |= u64::from(plain[at] & 0x7f) << (7 * place);
                    at += 1;
                    if plain[at - 1] < 0x80 {
                        break;
                    }
                }
                at += if tag & 7 == 2 { value as usize } else { 0 };
            }
            at == length
        }
        _ => false,
    }
}

/// Scenario: every file, cut at hundreds of places, and at each of its last bytes.
/// Guarantee: an error that names a place inside what is left, unless what is left is a whole file by itself; and then no
/// sample is lost unless the format is a list of samples.
#[test]
fn cut_files_are_refused() {
    let options = DecodeOptions { from: 1_700_000_000_000_000_000, ..DecodeOptions::default() };
    let written_here = [("flamebearer", FileFormat::Flamebearer, flamebearer_of("py-spy.collapsed"))];
    let files = FILES.iter().map(|(name, format)| (*name, *format, fixture(name))).chain(written_here);
    for (name, format, bytes) in files {
        let plain = expanded(&bytes, &options.limits).unwrap();
        let samples = decode_file(&plain, &options).unwrap().sample_count();
        let end = plain.trim_ascii_end().len();
        let places = (0..end).step_by(end / 150 + 1).chain(end.saturating_sub(40)..end);
        for length in places {
            match decode_file(&plain[..length], &options) {
                Err(error) => assert!(error.offset <= length as u64, "{name} cut at {length}: {error}"),
                Ok(set) => {
                    assert!(may_end(format, &plain, length), "{name} cut at {length} is accepted");
                    let is_list = matches!(format, FileFormat::Jfr | FileFormat::Collapsed | FileFormat::PerfScript);
                    assert!(is_list || set.sample_count() == samples, "{name} cut at {length} loses samples");
                }
            }
        }
    }
}

/// Scenario: compressed files, cut at many places. Guarantee: refused, and the message says which bytes it counts.
#[test]
fn cut_compressed_files_are_refused() {
    for name in ["go-cpu.pb.gz", "jdk.jfr.gz"] {
        let bytes = fixture(name);
        for length in (20..bytes.len()).step_by(bytes.len() / 20) {
            let error = decode_file(&bytes[..length], &DecodeOptions::default()).unwrap_err().to_string();
            assert!(error.starts_with("gzip: at byte") && error.contains("once decompressed"), "{error}");
        }
    }
    let plain = expanded(&fixture("go-cpu.pb.gz"), &Limits::default()).unwrap().into_owned();
    let packed = zstd::encode_all(&plain[..], 3).unwrap();
    assert!(decode_file(&packed, &DecodeOptions::default()).is_ok());
    let error = decode_file(&packed[..packed.len() / 2], &DecodeOptions::default()).unwrap_err().to_string();
    assert!(error.starts_with("zstd: at byte") && error.contains("once decompressed"), "{error}");
}

/// Scenario: stacks without a count, and a perf script that ends inside a stack: as files, and from clients of `/ingest`.
/// Guarantee: a file is refused at that place; from a client, lines without a count are passed over and the stack is taken.
#[test]
fn clients_are_granted_more_than_files() {
    let (strict, tolerant) = (DecodeOptions::default(), DecodeOptions { tolerant: true, ..DecodeOptions::default() });
    let text = b"# made by hand\n\na;b 3\na;c\na;d 4\n";
    let error = collapsed::decode(text, &strict).unwrap_err().to_string();
    assert_eq!(error, "collapsed: at byte 22: expected a whole number at the end of the line, found \"a;c\"");
    assert_eq!(collapsed::decode(text, &tolerant).unwrap().sample_count(), 2);
    let error = collapsed::decode(b"a;b 3\na;", &strict).unwrap_err();
    assert_eq!((error.fault, error.offset), (Fault::Truncated, 8));
    assert_eq!(collapsed::decode(b"a;b 3", &strict).unwrap().sample_count(), 1, "the last line needs no end");

    let script = b"app 1/1 [000] 1.0: 10 cpu-clock:\n\t1 leaf (app)\n\t2 main (app)\n";
    let error = perf_script::decode(script, &strict).unwrap_err();
    assert_eq!((error.fault, error.offset), (Fault::Truncated, script.len() as u64));
    assert_eq!(perf_script::decode(script, &tolerant).unwrap().sample_count(), 1);
    assert_eq!(perf_script::decode(&[&script[..], b"\n"].concat(), &strict).unwrap().sample_count(), 1);
    let bare = b"app 1/1 [000] 1.0: 10 cpu-clock:\napp 1/1 [000] 2.0: 10 cpu-clock:\n";
    assert_eq!(perf_script::decode(bare, &strict).unwrap().sample_count(), 2, "no stacks, no empty lines");
}

/// Scenario: V8 profiles whose lists don't fit together, and one that tells no times between its samples.
/// Guarantee: refused at the list, or at the sample that leads nowhere; without times, samples are evenly apart.
#[test]
fn lists_of_v8_fit_together() {
    let file = |samples: &str, deltas: &str| {
        format!(
            r#"{{"nodes":[{{"id":1,"callFrame":{{"functionName":"f"}}}}],"startTime":0,"endTime":100,"samples":{samples}{deltas}}}"#
        )
    };
    let read = |samples: &str, deltas: &str| {
        let text = file(samples, deltas);
        v8::decode_cpu(text.as_bytes(), &DecodeOptions::default())
            .map(|set| set.profiles[0].samples.iter().map(|sample| sample.value).collect::<Vec<_>>())
            .map_err(|error| (error.to_string(), text.len()))
    };
    assert_eq!(read("[1,1]", r#","timeDeltas":[10,30]"#), Ok(vec![30_000, 60_000]));
    assert_eq!(read("[1,1,1,1]", ""), Ok(vec![25_000; 4]));
    let (error, length) = read("[1,1,1]", r#","timeDeltas":[10,30]"#).unwrap_err();
    let expected = format!("cpuprofile: at byte {}: expected 3 timeDeltas, one for each sample, found 2", length - 2);
    assert_eq!(error, expected);
    let (error, _) = read("[1,2]", r#","timeDeltas":[10,30]"#).unwrap_err();
    let place = file("[1,", "").len() - 1;
    assert_eq!(error, format!("cpuprofile: at byte {place}: expected the id of a node, found 2"));
}

/// Scenario: speedscope files with frames that open and close, and files whose lists are wrong.
/// Guarantee: the time between events belongs to the stack that is open; what is wrong is refused at its place.
#[test]
fn speedscope_events() {
    let file = |profile: &str| {
        format!(
            r#"{{"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{{"frames":[{{"name":"a"}},{{"name":"b"}}]}},"profiles":[{{"name":"p","unit":"nanoseconds","startValue":0,"endValue":9,{profile}}}]}}"#
        )
    };
    let evented = |events: &[(&str, u32, u32)]| {
        let event = |(kind, frame, at): &(&str, u32, u32)| format!(r#"{{"type":"{kind}","frame":{frame},"at":{at}}}"#);
        let events: Vec<String> = events.iter().map(event).collect();
        file(&format!(r#""type":"evented","events":[{}]"#, events.join(",")))
    };
    let whole = evented(&[("O", 0, 1), ("O", 1, 3), ("C", 1, 7), ("C", 0, 8)]);
    let set = speedscope::decode(whole.as_bytes(), &DecodeOptions::default()).unwrap();
    let sums = crate::support::sums(&set, &set.profiles[0]);
    assert_eq!(sums, [("a:0".to_owned(), 3), ("a:0;b:0".to_owned(), 4)].into_iter().collect());

    let tolerant = DecodeOptions { tolerant: true, ..DecodeOptions::default() };
    let cases = [
        (evented(&[("O", 0, 1), ("O", 1, 3), ("C", 1, 7)]), "]}]}", "close every frame, found 1 open", true),
        (evented(&[("O", 0, 5), ("C", 0, 4)]), r#"{"type":"C""#, "at 5 or later, found 4", true),
        (evented(&[("O", 0, 1), ("C", 1, 2)]), r#"{"type":"C""#, "closes the frame opened last", false),
        (evented(&[("X", 0, 1)]), r#"{"type":"X""#, "with type O or C", false),
        (evented(&[("O", 2, 1)]), r#"2,"at""#, "a frame index below 2", false),
        (file(r#""type":"sampled","samples":[[0],[0,1]],"weights":[1]"#), "]}]}", "2 weights of profile 0", true),
        (file(r#""type":"sampled","samples":[[0],[0,7]],"weights":[1,1]"#), "7]]", "a frame index below 2", false),
        (file(r#""type":"sampled","samples":[[0],3],"weights":[1,1]"#), "3],\"w", "a list of frames", false),
        (file(r#""type":"flat","samples":[]"#), r#""flat""#, "type sampled or evented", false),
    ];
    for (text, place, expected, clients_may) in cases {
        let error = speedscope::decode(text.as_bytes(), &DecodeOptions::default()).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        let at = text.rfind(place).unwrap() as u64;
        assert!((at..at + 2).contains(&error.offset), "{error}, and {place} is at {at}");
        assert_eq!(speedscope::decode(text.as_bytes(), &tolerant).is_ok(), clients_may, "{text}");
    }
}
