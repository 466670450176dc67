//! JFR events that the recordings at hand lack, and what reaches from one chunk into another.

use std::collections::BTreeMap;

use hotspan_formats::DecodeOptions;
use hotspan_formats::jfr::{self, JfrReader};
use hotspan_model::ProfileSet;

use crate::jfr_writer::{CLASS, Field, JfrChunk, OLD_OBJECT, STACK_TRACE, THREAD};
use crate::support::{fixture, profile, sums};

const START: u64 = 1_700_000_000_000_000_000;

/// The fields of an event of stack 1 on the one thread, at a moment and with some more.
fn fields<'v>(at: u64, more: &[(&'static str, Field<'v>)]) -> Vec<(&'static str, Field<'v>)> {
    let mut fields = vec![
        ("startTime", Field::Long(at)),
        ("eventThread", Field::Constant(THREAD, 1)),
        ("stackTrace", Field::Constant(STACK_TRACE, 1)),
    ];
    fields.extend_from_slice(more);
    fields
}

fn setting<'v>(of: u64, name: &'v str, value: &'v str) -> Vec<(&'static str, Field<'v>)> {
    vec![("id", Field::Long(of)), ("name", Field::Text(name)), ("value", Field::Text(value))]
}

fn whole(bytes: &[u8]) -> ProfileSet<'static> {
    jfr::decode(bytes, None, &DecodeOptions::default()).unwrap()
}

/// Values by profile type and stack, with the span and the labels that each belongs to.
fn told(sets: &[ProfileSet<'_>]) -> BTreeMap<String, i64> {
    let mut told = BTreeMap::new();
    for set in sets {
        for profile in &set.profiles {
            for sample in &profile.samples {
                let frames: Vec<String> =
                    set.paths.walk_to_root(sample.path).map(|frame| frame.function.into_owned()).collect();
                let key = format!(
                    "{} {} {frames:?} {:?} {:?} {:?}",
                    profile.profile_type,
                    sample.time,
                    set.links[sample.link as usize],
                    set.label_sets[sample.labels as usize],
                    set.threads[sample.thread as usize],
                );
                *told.entry(key).or_insert(0) += sample.value;
            }
        }
    }
    told
}

/// Reads chunk by chunk, twice as a server does.
fn streamed(bytes: &[u8]) -> Vec<ProfileSet<'static>> {
    let mut reader = JfrReader::new(bytes, None, DecodeOptions::default()).unwrap();
    while reader.next_chunk().unwrap().is_some() {}
    let mut reader = JfrReader::again(bytes, None, DecodeOptions::default(), reader.far_spans()).unwrap();
    std::iter::from_fn(|| reader.next_chunk().unwrap()).collect()
}

/// Scenario: locks of native code, traced methods, CPU time by the JDK's newer sampler, native methods, live objects of the
/// JDK and of async-profiler.
/// Guarantee: each has its profiles, with the values that its events say.
#[test]
fn events_have_their_profiles() {
    let mut chunk = JfrChunk::new(START);
    chunk.event("profiler.NativeLock", &fields(10, &[("duration", Field::Long(70))]));
    chunk.event("jdk.MethodTrace", &fields(20, &[("duration", Field::Long(80))]));
    chunk.event("jdk.CPUTimeSample", &fields(30, &[("samplingPeriod", Field::Long(90))]));
    chunk.event("jdk.NativeMethodSample", &fields(40, &[]));
    let size = [("objectSize", Field::Long(24)), ("object", Field::Constant(OLD_OBJECT, 1))];
    chunk.event("jdk.OldObjectSample", &fields(50, &size));
    chunk.event(
        "profiler.LiveObject",
        &fields(60, &[("allocationSize", Field::Long(40)), ("objectClass", Field::Constant(CLASS, 1))]),
    );
    let of = chunk.class_of("jdk.NativeMethodSample");
    chunk.event("jdk.ActiveSetting", &setting(of, "period", "5 ms"));
    let set = whole(&chunk.finish());
    let expected = [
        ("native_lock:contentions:count:native_lock:count", 1),
        ("native_lock:delay:nanoseconds:native_lock:count", 70),
        ("method_trace:duration:nanoseconds:method_trace:count", 80),
        ("process_cpu:cpu:nanoseconds:cpu:nanoseconds", 90),
        ("native:native:nanoseconds:native:nanoseconds", 5_000_000),
        ("memory:live:count:objects:count", 2),
        ("memory:live_bytes:bytes:objects:count", 64),
    ];
    for (profile_type, value) in expected {
        let found = sums(&set, profile(&set, profile_type));
        assert_eq!(found, [("Work.main:10;Work.leaf:10".to_owned(), value)].into_iter().collect(), "{profile_type}");
    }
    assert_eq!(set.profiles.len(), expected.len());
    let live = &profile(&set, "memory:live:count:objects:count").samples;
    let classes: Vec<&str> =
        live.iter().map(|sample| set.attribute_sets[sample.attributes as usize].as_str()).collect();
    assert_eq!(classes, [r#"{"jfr.class":"Work"}"#; 2]);
    assert!(live.iter().all(|sample| sample.time >= START as i64));
}

/// Scenario: async-profiler counting a hardware event.
/// Guarantee: a profile of that event, each sample worth the interval; no CPU time.
#[test]
fn counted_events() {
    let mut chunk = JfrChunk::new(START);
    chunk.event("jdk.ExecutionSample", &fields(10, &[]));
    chunk.event("jdk.ActiveRecording", &[("startTime", Field::Long(0))]);
    let (recording, sample) = (chunk.class_of("jdk.ActiveRecording"), chunk.class_of("jdk.ExecutionSample"));
    chunk.event("jdk.ActiveSetting", &setting(recording, "event", "cache-misses"));
    chunk.event("jdk.ActiveSetting", &setting(sample, "interval", "1000"));
    let set = whole(&chunk.finish());
    assert_eq!(set.profiles.len(), 1);
    let counted = profile(&set, "perf:cache-misses:count:cache-misses:count");
    assert_eq!((counted.samples[0].value, counted.labels.get("jfr_event")), (1000, Some("cache-misses")));
}

/// Scenario: async-profiler sampling CPU time, or by the clock on the wall, while nothing runs.
/// Guarantee: the profile is there, as long as the recording and without samples; a recording that does not say that it
/// samples has none.
#[test]
fn idle_recordings() {
    let types_of = |settings: &[(&str, &str)]| {
        let mut chunk = JfrChunk::new(START);
        chunk.event("jdk.ActiveRecording", &[("startTime", Field::Long(0))]);
        let recording = chunk.class_of("jdk.ActiveRecording");
        for (name, value) in settings {
            chunk.event("jdk.ActiveSetting", &setting(recording, name, value));
        }
        let set = whole(&chunk.finish());
        assert!(set.profiles.iter().all(|profile| profile.samples.is_empty() && profile.duration > 0));
        set.profiles.iter().map(|profile| profile.profile_type.sample_type.clone()).collect::<Vec<_>>()
    };
    assert_eq!(types_of(&[("event", "itimer")]), ["cpu"]);
    assert_eq!(types_of(&[("event", "wall")]), ["cpu", "wall"]);
    assert!(types_of(&[]).is_empty());
}

/// Scenario: two chunks. Memory taken in the first is given back in the second, or kept; a span that started in the first,
/// as the second tells, with a sample and an allocation of the first inside.
/// Guarantee: read chunk by chunk, every sample has the value, stack, span and labels that it has in the file read whole.
#[test]
fn what_reaches_across_chunks() {
    const TAG: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let malloc = |chunk: &mut JfrChunk, at, address, size| {
        let more = [("address", Field::Long(address)), ("size", Field::Long(size))];
        chunk.event("profiler.Malloc", &fields(at, &more));
    };
    let mut first = JfrChunk::new(START);
    malloc(&mut first, 100, 1, 1000);
    malloc(&mut first, 200, 2, 2000);
    malloc(&mut first, 900, 3, 4000);
    first.event("jdk.ExecutionSample", &fields(850, &[]));
    let mut second = JfrChunk::new(START + 1_000_000_000);
    second.event("profiler.Free", &fields(100, &[("address", Field::Long(2))]));
    malloc(&mut second, 300, 4, 8000);
    second.event("jdk.ExecutionSample", &fields(400, &[]));
    // Ticks start anew with each chunk, so a start before it is a large number.
    let before = 0u64.wrapping_sub(1_000_000_000 - 800);
    second.event(
        "profiler.Span",
        &fields(before, &[("duration", Field::Long(1_000_000_000)), ("tag", Field::Text(TAG))]),
    );
    let bytes = [first.finish(), second.finish()].concat();
    let expected = whole(&bytes);
    let in_use = profile(&expected, "memory:malloc_inuse_bytes:bytes:space:bytes");
    let sizes: Vec<i64> = in_use.samples.iter().map(|sample| sample.value).collect();
    assert_eq!(sizes, [1000, 4000, 8000]);
    let linked = |set: &ProfileSet<'_>, profile_type: &str| -> Vec<bool> {
        let samples = &profile(set, profile_type).samples;
        samples.iter().map(|sample| !set.links[sample.link as usize].span_id.is_zero()).collect()
    };
    assert_eq!(linked(&expected, "memory:malloc_inuse_bytes:bytes:space:bytes"), [false, true, true]);
    assert_eq!(linked(&expected, "process_cpu:cpu:nanoseconds:cpu:nanoseconds"), [true, true]);
    assert_eq!(told(&streamed(&bytes)), told(&[expected]));
}

/// Scenario: every recording of one profiler, twice in a row, so that all have several chunks.
/// Guarantee: the same values of the same stacks, threads, spans and labels, read whole and chunk by chunk.
#[test]
fn recordings_chunk_by_chunk() {
    for name in ["async-chunks", "async-nativemem", "async-spans", "async-live", "async-cpu-alloc-lock", "async-wall"] {
        let bytes = fixture(&format!("{name}.jfr"));
        let twice = [bytes.clone(), bytes].concat();
        assert_eq!(told(&streamed(&twice)), told(&[whole(&twice)]), "{name}");
    }
}
