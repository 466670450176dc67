//! Damaged files: never a panic, never a loop, never more memory than allowed.

use hotspan_formats::{DecodeOptions, Limits, decode_file, expanded, pyroscope_tree};

use crate::detection::FILES;
use crate::support::{fixture, flamebearer_of};

/// A small generator, so that a failure can be repeated from its seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound.max(1) as u64) as usize
    }

    /// Damages a file the way disks, networks and attackers do.
    fn damage(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..1 + self.below(4) {
            let at = self.below(bytes.len());
            match self.below(6) {
                0 if !bytes.is_empty() => bytes[at] ^= 1 << self.below(8),
                1 if !bytes.is_empty() => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][self.below(5)],
                2 => bytes.truncate(at),
                3 => {
                    let end = (at + self.below(64)).min(bytes.len());
                    let copied = bytes[at..end].to_vec();
                    let to = self.below(bytes.len());
                    bytes.splice(to..to, copied);
                }
                4 => {
                    let end = (at + self.below(16)).min(bytes.len());
                    bytes.drain(at..end);
                }
                _ => {
                    // A huge number where a length or a count may stand.
                    bytes.splice(at..at, [0xff, 0xff, 0xff, 0xff, 0x0f]);
                }
            }
        }
    }
}

/// Scenario: every fixture with a few bytes changed, dropped, doubled or cut, many times over.
/// Guarantee: a set or an error that names a place, each within its time. `HOTSPAN_MUTATIONS` sets how many.
#[test]
fn mutations_never_panic() {
    let rounds: u64 = std::env::var("HOTSPAN_MUTATIONS").ok().and_then(|count| count.parse().ok()).unwrap_or(150);
    let limits = Limits { max_bytes: 8 << 20, max_decoded_bytes: 32 << 20, ..Limits::default() };
    let options = DecodeOptions { limits, from: 1_700_000_000_000_000_000, ..DecodeOptions::default() };
    let written_here = [("flamebearer", flamebearer_of("py-spy.collapsed"))];
    for (name, bytes) in FILES.iter().map(|(name, _)| (*name, fixture(name))).chain(written_here) {
        let plain = expanded(&bytes, &options.limits).unwrap();
        for seed in 1..=rounds {
            let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
            let mut damaged = plain.to_vec();
            random.damage(&mut damaged);
            let started = std::time::Instant::now();
            if let Err(error) = decode_file(&damaged, &options) {
                assert!(error.offset <= damaged.len() as u64 + (8 << 20), "{name} seed {seed}: {error}");
            }
            assert!(started.elapsed().as_secs() < 10, "{name} seed {seed}");
        }
    }
}

/// Scenario: values below zero, and numbers that no value has room for, in every format that can write them.
/// Guarantee: refused at their place. From clients, pprof samples of negative value are passed over.
#[test]
fn values_that_are_none() {
    let speedscope = |unit: &str, weight: &str| {
        format!(
            r#"{{"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{{"frames":[{{"name":"a"}}]}},"profiles":[{{"type":"sampled","name":"p","unit":"{unit}","startValue":0,"endValue":1,"samples":[[0]],"weights":[{weight}]}}]}}"#
        )
    };
    let v8 = |hits: &str, delta: &str| {
        format!(
            r#"{{"nodes":[{{"id":1,"hitCount":{hits},"callFrame":{{"functionName":"f"}}}}],"startTime":0,"endTime":9,"samples":[1],"timeDeltas":[{delta}]}}"#
        )
    };
    let heap = |size: &str| {
        format!(
            r#"{{"head":{{"id":1,"callFrame":{{"functionName":"(root)"}},"selfSize":0,"children":[]}},"samples":[{{"size":{size},"nodeId":1,"ordinal":1}}]}}"#
        )
    };
    let fits = "fits into 63 bits";
    let perf =
        |period: &str| format!("app 1 1.0: 1 cpu-clock:\napp 1 1.5: 1 cpu-clock:\napp 1 2.0: {period} cpu-clock:\n");
    for (file, marked, reason) in [
        (speedscope("none", "-7"), "-7]", fits),
        (speedscope("none", "1e30"), "1e30]", fits),
        (speedscope("none", "1e400"), "1e400]", "a number"),
        (speedscope("seconds", "1e10"), "\"seconds", "as nanoseconds, found 10000000000 seconds"),
        (v8("-1", "5"), "-1,", fits),
        (v8("1e300", "5"), "1e300,", fits),
        (v8("1", "1e300"), "1e300]", "fit into 63 bits as nanoseconds"),
        (heap("-12"), "-12,", fits),
        (perf("-12"), "app 1 2.0", "a line such as"),
        ("a;b 5\na;b -12\n".to_owned(), "-12", "a whole number at the end of the line"),
        ("a;b 5\na;b 9223372036854775808\n".to_owned(), "a;b 92", fits),
    ] {
        let error = decode_file(file.as_bytes(), &DecodeOptions::default()).unwrap_err();
        assert!(error.to_string().contains(reason), "{file}: {error}");
        assert_eq!(error.offset, file.find(marked).unwrap() as u64, "{file}: {error}");
    }
    // The stackless samples -4 and 5 of one type.
    let mut pprof = vec![0x0a, 4, 0x08, 1, 0x10, 2, 0x12, 11, 0x10];
    pprof.extend([0xfc, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]);
    pprof.extend(b"\x12\x02\x10\x05\x32\x00\x32\x03cpu\x32\x0bnanoseconds");
    let error = decode_file(&pprof, &DecodeOptions::default()).unwrap_err().to_string();
    let expected =
        "pprof: at byte 8: expected values of 0 or more, since a difference of two profiles can't be stored, found -4";
    assert_eq!(error, expected);
    let of_client = DecodeOptions { tolerant: true, ..DecodeOptions::default() };
    let set = decode_file(&pprof, &of_client).unwrap();
    assert_eq!(set.profiles[0].samples.iter().map(|sample| sample.value).collect::<Vec<_>>(), [5]);
}

/// Scenario: files made to blow up: lists longer than the file, types that nest in themselves, deep trees.
/// Guarantee: refused quickly.
#[test]
fn bombs_are_refused() {
    let options = DecodeOptions::default();
    // A pprof sample that repeats a location of many inlined lines: 64 MiB of frames from a few kilobytes.
    let mut location = vec![0x08, 1];
    location.extend([0x22, 2, 0x08, 1].repeat(2000));
    let mut sample = vec![0x0a, 0x80, 0x40];
    sample.extend([1].repeat(8192));
    sample.extend([0x10, 1]);
    let mut pprof = vec![0x0a, 2, 0x08, 1];
    for (field, message) in [(0x12, sample), (0x22, location), (0x2a, vec![0x08, 1, 0x10, 1])] {
        pprof.push(field);
        let length = message.len();
        pprof.extend([(length & 0x7f) as u8 | 0x80, (length >> 7) as u8]);
        pprof.extend(message);
    }
    pprof.extend([0x32, 0, 0x32, 3, b'c', b'p', b'u']);
    let set = decode_file(&pprof, &options).unwrap();
    assert_eq!(set.cut_frames, 2000 * 8192 - options.limits.max_stack_depth as u64);

    let deep_tree: Vec<u8> = [1, b'a', 1, 1].repeat(1_000_000);
    let limits = Limits { max_decoded_bytes: 8 << 20, ..Limits::default() };
    let error = pyroscope_tree::decode_tree(&deep_tree, &DecodeOptions { limits, ..DecodeOptions::default() });
    assert_eq!(error.unwrap_err().fault, hotspan_formats::Fault::TooLarge);
    // A name of a megabyte that every bar of a wide graph has.
    let bars = "0,1,1,1,".repeat(100_000);
    let name = "x".repeat(1 << 20);
    let wide = format!(
        r#"{{"flamebearer":{{"names":["total","{name}"],"levels":[[0,100000,0,0],[{}]]}}}}"#,
        bars.trim_end_matches(',')
    );
    let started = std::time::Instant::now();
    assert_eq!(decode_file(wide.as_bytes(), &options).unwrap().profiles[0].samples.len(), 100_000);
    assert!(started.elapsed().as_secs() < 10, "the name is read for every bar");
    let deep_json = format!("{{\"head\":{}", "{\"children\":[".repeat(1_000_000));
    assert!(decode_file(deep_json.as_bytes(), &options).is_err());
}
