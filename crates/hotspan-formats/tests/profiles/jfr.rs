//! JFR from async-profiler and from the JDK.

use hotspan_formats::jfr::{self, JfrReader};
use hotspan_formats::{DecodeOptions, Fault, Limits, expanded};
use hotspan_model::{Labels, ProfileSet};

use crate::support::{assert_same_through_pprof, fixture, profile, share_of, sums};

const CPU: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
const WALL: &str = "wall:wall:nanoseconds:wall:nanoseconds";

fn read(name: &str) -> ProfileSet<'static> {
    let bytes = fixture(name);
    let plain = expanded(&bytes, &Limits::default()).unwrap();
    jfr::decode(&plain, None, &DecodeOptions::default()).unwrap()
}

fn total(set: &ProfileSet<'_>, profile_type: &str) -> i64 {
    profile(set, profile_type).samples.iter().map(|sample| sample.value).sum()
}

/// Scenario: two seconds under async-profiler's itimer, three parts in one function and one in another.
/// Guarantee: shares, time in nanoseconds, moments inside the recording, threads by name, round trip.
#[test]
fn async_itimer() {
    let set = read("async-itimer.jfr");
    let cpu = profile(&set, CPU);
    assert!((share_of(&set, cpu, "Burn.burnHot") - 0.7).abs() < 0.15, "{}", share_of(&set, cpu, "Burn.burnHot"));
    assert!((share_of(&set, cpu, "Burn.burnCool") - 0.24).abs() < 0.12);
    assert!((1_200_000_000..3_000_000_000).contains(&total(&set, CPU)), "{}", total(&set, CPU));
    assert_eq!(cpu.labels, Labels::from_pairs([("jfr_event", "itimer")]));
    for sample in &cpu.samples {
        assert!(sample.timed && sample.time >= cpu.time && sample.time <= cpu.time + cpu.duration);
    }
    assert!(set.threads.iter().any(|thread| thread.name == "main" && thread.id == Some(1)));
    assert_same_through_pprof(&set);
}

/// Scenario: CPU, allocation and lock profiling in one recording.
/// Guarantee: each has its profiles under Pyroscope's types, charged to the function that caused them.
#[test]
fn async_cpu_alloc_lock() {
    let set = read("async-cpu-alloc-lock.jfr");
    assert!(share_of(&set, profile(&set, CPU), "Burn.burn") > 0.8);
    let bytes = profile(&set, "memory:alloc_in_new_tlab_bytes:bytes:space:bytes");
    assert!(share_of(&set, bytes, "Burn.allocateKept") > 0.8);
    assert!(set.attribute_sets.iter().any(|json| json == "{\"jfr.class\":\"[B\"}"), "{:?}", set.attribute_sets);
    let delay = profile(&set, "mutex:delay:nanoseconds:mutex:count");
    assert!(share_of(&set, delay, "Burn.contend") > 0.9);
    assert!(delay.samples.iter().all(|sample| sample.value > 0));
    assert_eq!(total(&set, "mutex:contentions:count:mutex:count"), delay.samples.len() as i64);
    assert_same_through_pprof(&set);
}

/// Scenario: wall-clock profiling of a thread that burns and one that mostly waits.
/// Guarantee: wall time covers both threads, CPU time only what ran.
#[test]
fn async_wall() {
    let set = read("async-wall.jfr");
    let (wall, cpu) = (total(&set, WALL), total(&set, CPU));
    assert!(wall > cpu + cpu / 2, "{wall} {cpu}");
    assert!(share_of(&set, profile(&set, CPU), "Burn.burnHot") > 0.3);
    assert_same_through_pprof(&set);
}

/// Scenario: CPU and wall-clock profiling in one recording. Guarantee: CPU time is not counted twice.
#[test]
fn async_cpu_and_wall() {
    let set = read("async-cpu-wall.jfr");
    let cpu = total(&set, CPU);
    assert!((500_000_000..1_600_000_000).contains(&cpu), "{cpu}");
    assert!(total(&set, WALL) > cpu);
}

/// Scenario: objects that stayed alive. Guarantee: charged to the function that keeps them.
#[test]
fn async_live() {
    let set = read("async-live.jfr");
    let live = profile(&set, "memory:live:count:objects:count");
    assert!(share_of(&set, live, "Burn.allocateKept") > 0.8);
    assert_same_through_pprof(&set);
}

/// Scenario: native memory with frees. Guarantee: what was given back is not in use.
#[test]
fn async_nativemem() {
    let set = read("async-nativemem.jfr");
    let allocated = total(&set, "memory:malloc_bytes:bytes:space:bytes");
    let in_use = total(&set, "memory:malloc_inuse_bytes:bytes:space:bytes");
    assert!(allocated > 0 && in_use > 0 && in_use <= allocated);
}

/// Scenario: spans of async-profiler's Span API, one tagged with a traceparent and one with a name.
/// Guarantee: the samples inside become linked or named, the others stay as they are.
#[test]
fn async_spans() {
    let set = read("async-spans.jfr");
    let cpu = profile(&set, CPU);
    let mut seen = [0; 3];
    for sample in &cpu.samples {
        let passes = |name: &str| set.paths.walk_to_root(sample.path).any(|frame| frame.function == name);
        let link = set.links[sample.link as usize];
        let name = set.label_sets[sample.labels as usize].get("span_name").map(str::to_owned);
        if passes("SpanBurn.burnTraced") {
            seen[0] += 1;
            assert_eq!(link.trace_id.to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
            assert_eq!(link.span_id.to_string(), "00f067aa0ba902b7");
        } else if passes("SpanBurn.burnNamed") {
            seen[1] += 1;
            assert_eq!(name.as_deref(), Some("GET /cart"));
        } else if passes("SpanBurn.burnBare") {
            seen[2] += 1;
            assert_eq!((sample.link, name), (0, None));
        }
    }
    assert!(seen.iter().all(|count| *count > 10), "{seen:?}");
    assert_same_through_pprof(&set);
}

/// Scenario: the JDK's own recorder, gzipped.
/// Guarantee: execution samples are worth the period that the recording names; allocations and locks are there.
#[test]
fn jdk_recording() {
    let set = read("jdk.jfr.gz");
    let cpu = profile(&set, CPU);
    assert!(share_of(&set, cpu, "Burn.burn") > 0.8);
    assert_eq!(cpu.samples[0].value, 10_000_000);
    let bytes = profile(&set, "memory:alloc_sample_bytes:bytes:space:bytes");
    assert!(share_of(&set, bytes, "Burn.allocateKept") > 0.5);
    assert!(total(&set, "mutex:delay:nanoseconds:mutex:count") > 0);
    assert!(share_of(&set, profile(&set, "block:delay:nanoseconds:block:count"), "LockSupport.parkNanos") > 0.5);
    for sample in &cpu.samples {
        assert!((sample.time - cpu.time).abs() < 60_000_000_000, "{} {}", sample.time, cpu.time);
    }
    let park = set.paths.frames.iter().find(|frame| frame.function.ends_with("Unsafe.park")).unwrap();
    assert_eq!((park.function.as_ref(), park.mapping.as_ref()), ("jdk/internal/misc/Unsafe.park", ""));
    assert_same_through_pprof(&set);
}

/// Scenario: JDK 25 with its sampler of CPU time beside the older one, a method that it traces, and stacks cut to two frames.
/// Guarantee: CPU time is counted once, by the one that measures it; the traced method is on top of what called it; what was cut
/// lies below a frame that says so.
#[test]
fn jdk_cpu_time() {
    let set = read("jdk-cpu-time.jfr.gz");
    assert!((1_200_000_000..2_200_000_000).contains(&total(&set, CPU)), "{}", total(&set, CPU));
    assert!(total(&set, "execution:execution:nanoseconds:execution:nanoseconds") > 1_000_000_000);
    let burning = sums(&set, profile(&set, CPU));
    assert!(burning.keys().any(|stack| stack.starts_with("[truncated]:0;Burn.burnHot:")), "{burning:?}");
    let traced = sums(&set, profile(&set, "method_trace:duration:nanoseconds:method_trace:count"));
    let traced: Vec<&str> = traced.keys().map(String::as_str).collect();
    assert_eq!(traced, ["Burn.main:38;Burn.burnHot:0"]);
    assert_eq!(set.cut_frames, 0, "cut by the profiler, not here");
    assert_same_through_pprof(&set);
}

/// Scenario: objects that the JDK's own recorder found alive at the end.
/// Guarantee: they are counted where they were allocated, by class; this version of the JDK does not say how large they are.
#[test]
fn jdk_live_objects() {
    let set = read("jdk-live.jfr.gz");
    assert_eq!(set.profiles.len(), 1);
    let live = profile(&set, "memory:live:count:objects:count");
    assert!(live.samples.len() > 5 && share_of(&set, live, "Burn.allocateKept") > 0.5);
    let class = |at: u32| set.attribute_sets[at as usize].as_str();
    assert!(live.samples.iter().any(|sample| class(sample.attributes) == r#"{"jfr.class":"[B"}"#));
    assert_same_through_pprof(&set);
}

/// Scenario: a recording of several chunks, read at once and as a stream, plain and gzipped.
/// Guarantee: the same sums of every stack either way.
#[test]
fn chunks_as_a_stream() {
    let bytes = fixture("async-chunks.jfr");
    let whole = read("async-chunks.jfr");
    let expected = sums(&whole, profile(&whole, CPU));
    for input in [bytes.clone(), hotspan_formats::gzip(&bytes)] {
        let mut reader = JfrReader::new(input.as_slice(), None, DecodeOptions::default()).unwrap();
        let mut chunks = 0;
        let mut found = std::collections::BTreeMap::new();
        while let Some(set) = reader.next_chunk().unwrap() {
            chunks += 1;
            for (stack, value) in set.profiles.iter().flat_map(|profile| sums(&set, profile)) {
                *found.entry(stack).or_insert(0) += value;
            }
        }
        assert!(chunks > 1, "{chunks}");
        assert_eq!(found, expected);
    }
}

/// A recording of one chunk with an event at its end that nobody knows, so that it has this many more bytes.
fn padded(mut chunk: Vec<u8>, more: usize) -> Vec<u8> {
    let varint =
        |number: usize| [number | 0x80, number >> 7 | 0x80, number >> 14 | 0x80, number >> 21].map(|byte| byte as u8);
    let end = chunk.len() + more;
    chunk.extend(varint(more));
    chunk.extend(varint(1 << 27));
    chunk.resize(end, 0);
    chunk[8..16].copy_from_slice(&(end as u64).to_be_bytes());
    chunk
}

/// Scenario: a chunk of 100 MB, at which async-profiler ends its own, and one that is larger than may be read.
/// Guarantee: the first is read, though a request may not be as large; the second is refused with both sizes and the setting.
#[test]
fn large_chunks() {
    let large = padded(fixture("async-itimer.jfr"), 100 << 20);
    let next = |limits: Limits| {
        let options = DecodeOptions { limits, ..DecodeOptions::default() };
        JfrReader::new(large.as_slice(), None, options).unwrap().next_chunk()
    };
    let set = next(Limits::default()).unwrap().unwrap();
    let whole = read("async-itimer.jfr");
    assert_eq!(sums(&set, profile(&set, CPU)), sums(&whole, profile(&whole, CPU)));
    let error = next(Limits { max_chunk_bytes: 80 << 20, ..Limits::default() }).unwrap_err();
    assert_eq!((error.fault, error.offset), (Fault::TooLarge, 8));
    let text = error.to_string();
    assert!(
        text.contains("at most 80.0 MiB (") && text.contains("limits.max_bytes") && text.ends_with("one of 100 MiB"),
        "{text}"
    );
    assert!(next(Limits { max_chunk_bytes: 0, max_bytes: 128 << 20, ..Limits::default() }).is_ok());
}

/// Scenario: a recording cut anywhere, and one that was never finished.
/// Guarantee: refused, with the byte and what should have been there.
#[test]
fn cut_recordings_are_refused() {
    let bytes = fixture("async-itimer.jfr");
    for length in (0..bytes.len()).step_by(97) {
        let error = jfr::decode(&bytes[..length], None, &DecodeOptions::default()).unwrap_err();
        assert!(error.offset <= length as u64, "{error}");
        let mut reader = JfrReader::new(&bytes[..length], None, DecodeOptions::default()).unwrap();
        assert!(reader.next_chunk().is_err());
    }
    let error = jfr::decode(&bytes[..1000], None, &DecodeOptions::default()).unwrap_err();
    assert_eq!(error.fault, Fault::Truncated);
    let expected = format!("jfr: at byte 1000: expected a chunk of {} bytes that starts at byte 0", bytes.len());
    assert!(error.to_string().starts_with(&expected), "{error}");
    let mut unfinished = bytes;
    unfinished[8..16].fill(0);
    let error = jfr::decode(&unfinished, None, &DecodeOptions::default()).unwrap_err();
    assert!(error.to_string().contains("not finished"), "{error}");
}

/// Scenario: what Pyroscope's Java agent sends: its own fork of async-profiler with context, span and trace in
/// each event, and the labels of contexts beside the recording.
/// Guarantee: labels where labels were set, links where a span was, and ids in no label.
#[test]
fn pyroscope_agent_correlation() {
    let (bytes, labels) = (fixture("pyroscope-agent.jfr"), fixture("pyroscope-agent.labels.pb"));
    let set = jfr::decode(&bytes, Some(&labels), &DecodeOptions::default()).unwrap();
    let cpu = profile(&set, CPU);
    let mut seen = [0; 2];
    for sample in &cpu.samples {
        let passes = |name: &str| set.paths.walk_to_root(sample.path).any(|frame| frame.function == name);
        let link = set.links[sample.link as usize];
        let labels = &set.label_sets[sample.labels as usize];
        if passes("AgentBurn.burnLabelled") {
            seen[0] += 1;
            assert_eq!(*labels, Labels::from_pairs([("region", "eu"), ("vehicle", "car")]));
            assert_eq!(sample.link, 0);
        } else if passes("AgentBurn.burnInSpan") {
            seen[1] += 1;
            assert_eq!(*labels, Labels::from_pairs([("span_name", "checkout")]));
            assert_eq!(link.span_id.to_string(), "00f067aa0ba902b7");
            assert_eq!(link.trace_id.to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
        }
    }
    assert!(seen.iter().all(|count| *count > 20), "{seen:?}");
    assert_same_through_pprof(&set);
}
