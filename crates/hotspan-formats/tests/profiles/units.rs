//! What values measure where somebody says so beside the file: `type` and `sample_rate`.

use hotspan_formats::{DecodeOptions, TextType, decode_file};

/// Types and sums of a file, read as `POST /api/v1/profiles` does with a type and a rate.
fn totals(bytes: &[u8], kind: &str, sample_rate: Option<u32>) -> Vec<(String, i64)> {
    let scaled = |profile_type: hotspan_model::ProfileType| {
        let rate = sample_rate.filter(|_| profile_type.is_time()).unwrap_or(1_000_000_000);
        TextType { profile_type, scale: 1_000_000_000 / i64::from(rate) }
    };
    let text_type = kind.parse().ok().map(scaled);
    let options = DecodeOptions { text_type, sample_rate, ..DecodeOptions::default() };
    let set = decode_file(bytes, &options).unwrap();
    let total = |profile: &hotspan_model::Profile<'_>| profile.samples.iter().map(|sample| sample.value).sum();
    set.profiles.iter().map(|profile| (profile.profile_type.measured(), total(profile))).collect()
}

fn of<const N: usize>(expected: [(&str, i64); N]) -> Vec<(String, i64)> {
    expected.map(|(measured, total)| (measured.to_owned(), total)).to_vec()
}

const CPU: &str = "process_cpu:cpu:nanoseconds:";
const WALL: &str = "wall:wall:nanoseconds:";
const SPACE: &str = "memory:space:bytes:";
const COUNTED: &str = "process_cpu:samples:count:";

/// A speedscope file with a profile of 8 for each unit.
fn speedscope(units: &[&str]) -> Vec<u8> {
    let profile = |unit: &&str| {
        let weights = r#""samples":[[0],[0]],"weights":[5,3]"#;
        format!(r#"{{"type":"sampled","name":"{unit}","unit":"{unit}","startValue":0,"endValue":10,{weights}}}"#)
    };
    let profiles: Vec<String> = units.iter().map(profile).collect();
    let schema = r#""$schema":"https://www.speedscope.app/file-format-schema.json""#;
    let shared = r#""shared":{"frames":[{"name":"main"}]}"#;
    format!(r#"{{{schema},{shared},"profiles":[{}]}}"#, profiles.join(",")).into_bytes()
}

/// Scenario: samples that are only counted, in speedscope without a unit and in collapsed stacks, with a rate, a type or both.
/// Guarantee: the same of both: time by the rate, of the type or else of the CPU.
#[test]
fn counts_become_time_by_their_rate() {
    for counted in [speedscope(&["none"]), b"main 5\nmain 3\n".to_vec()] {
        let totals = |kind: &str, rate| totals(&counted, kind, rate);
        assert_eq!(totals("", None), of([(COUNTED, 8)]));
        assert_eq!(totals("", Some(100)), of([(CPU, 80_000_000)]));
        assert_eq!(totals("wall", Some(100)), of([(WALL, 80_000_000)]));
        assert_eq!(totals("wall", None), of([(WALL, 8)]));
        assert_eq!(totals("alloc_space", Some(100)), of([("memory:alloc_space:bytes:", 8)]));
    }
}

/// Scenario: files that state their units, time and bytes among them, with types of either unit and with a rate.
/// Guarantee: a type is that of the values in its unit; all others keep their own, and a rate changes none of them.
#[test]
fn a_stated_unit_stays() {
    let both = speedscope(&["milliseconds", "bytes"]);
    for rate in [None, Some(100)] {
        assert_eq!(totals(&both, "wall", rate), of([(WALL, 8_000_000), (SPACE, 8)]));
        let allocated = ("memory:alloc_space:bytes:", 8);
        assert_eq!(totals(&both, "alloc_space", rate), of([(CPU, 8_000_000), allocated]));
        assert_eq!(totals(&both, "goroutine", rate), of([(CPU, 8_000_000), (SPACE, 8)]));
    }
    let mixed = b"p 1 1.5:  1703  page-faults: \n\t 1 f (/p)\n\np 1 1.6:  7 cpu-clock: \n\t 1 f (/p)\n\n";
    let faults = ("perf:page-faults:count:", 1703);
    assert_eq!(totals(mixed, "cpu", Some(100)), of([faults, (CPU, 7)]));
    assert_eq!(totals(mixed, "wall", None), of([faults, (WALL, 7)]));
    let graph = |units: &str| {
        let levels = r#"{"names":["total","main"],"levels":[[0,3,0,0],[0,3,3,1]],"numTicks":3,"maxSelf":3}"#;
        format!(
            r#"{{"metadata":{{"format":"single","name":"x","units":"{units}","sampleRate":100}},"flamebearer":{levels}}}"#
        )
    };
    assert_eq!(totals(graph("bytes").as_bytes(), "wall", None), of([("x:x:bytes:", 3)]));
    assert_eq!(totals(graph("bytes").as_bytes(), "alloc_space", None), of([("memory:alloc_space:bytes:", 3)]));
    assert_eq!(totals(graph("samples").as_bytes(), "wall", None), of([(WALL, 30_000_000)]));
    assert_eq!(totals(graph("samples").as_bytes(), "exceptions", None), of([("exceptions:exceptions:count:", 3)]));
}

/// Scenario: more samples a second than there are nanoseconds. Guarantee: none of them is gone: each counts for one.
#[test]
fn no_sample_is_worth_nothing() {
    let perf = b"p 1 1.5: cpu-clock: \n\t 1 f (/p)\n\np 1 1.6: cpu-clock: \n\t 1 f (/p)\n\n".to_vec();
    for (file, count) in [(b"main 8\n".to_vec(), 8), (speedscope(&["none"]), 8), (perf, 2)] {
        assert_eq!(totals(&file, "", Some(4_000_000_000)), of([(CPU, count)]));
    }
    assert_eq!(TextType::from_app_name("shop.cpu", u32::MAX).unwrap().scale, 1);
}
