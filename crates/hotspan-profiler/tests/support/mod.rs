//! What the integration tests share: a profiler whose uploads are decoded, and work with a known CPU cost.
#![allow(dead_code)]

use hotspan_profiler::{Adaptive, Profiler, ProfilerBuilder};
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::profiles::v1development::ProfilesDictionary;
use prost::Message;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// On a loaded machine an unoptimised profiler may well exceed its ceiling; these tests count samples.
pub(crate) const FIXED_RATE: Adaptive =
    Adaptive { overhead_ceiling_percent: 100.0, floor_hertz: 10, slow_request_factor: 1 };

/// One value of one sample, with everything it points to resolved.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    pub(crate) profile: String,
    pub(crate) value: i64,
    pub(crate) time_unix_nano: Option<u64>,
    /// Function names, leaf first; inlined functions included.
    pub(crate) functions: Vec<String>,
    pub(crate) trace_id: Vec<u8>,
    pub(crate) span_id: Vec<u8>,
    pub(crate) thread_id: i64,
    pub(crate) thread_name: String,
}

impl Seen {
    pub(crate) fn mentions(&self, function: &str) -> bool {
        self.functions.iter().any(|name| name.contains(function))
    }
}

/// There is one profiler per process, and tests of one file share a process.
pub(crate) fn one_at_a_time() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A profiler whose uploads are kept.
pub(crate) struct Recording {
    pub(crate) profiler: Profiler,
    uploads: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Recording {
    pub(crate) fn start(settings: impl FnOnce(ProfilerBuilder) -> ProfilerBuilder) -> Recording {
        let uploads = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&uploads);
        let builder = Profiler::builder("test")
            .ignore_environment()
            .max_stack_depth(128)
            .adaptive(FIXED_RATE)
            .upload_interval(Duration::from_secs(60))
            .on_upload(move |bytes| kept.lock().unwrap().push(bytes.to_vec()));
        Recording { profiler: settings(builder).start().unwrap(), uploads }
    }

    /// What has been uploaded so far.
    pub(crate) fn seen_so_far(&self) -> Vec<Seen> {
        decode_all(&self.uploads)
    }

    /// Stops sampling and compares what all samples stand for with the clock of the process, on both sides.
    ///
    /// What they may differ by does not grow with time. Totals follow clocks; only a thread that lives when sampling ends
    /// has something open: less than a period since its last sample, which is on average what its first sample had in
    /// advance. Both are uniform, so that their difference has a standard deviation of a period over the square root of
    /// six; four of the sum of all threads are allowed. The process clock itself is exact to a tick for each processor, and
    /// what had no room in a ring is told as well.
    pub(crate) fn assert_totals_are_of_the_process(&self, hertz: u32) {
        self.profiler.pause();
        self.profiler.flush();
        let status = self.profiler.status();
        // Periods are varied by a tenth, and none is shorter than the kernel's tick.
        let period = 1.1 * (1e9 / f64::from(hertz)).max(tick_ns());
        let processors = std::thread::available_parallelism().unwrap().get() as f64;
        let open = 4.0 * period * (status.threads as f64 / 6.0).sqrt() + 2.0 * processors * tick_ns();
        let allowed = open + status.dropped_weight as f64;
        let (sampled, used) = (status.sampled_cpu.as_nanos() as f64, status.process_cpu.as_nanos() as f64);
        let error = sampled - used;
        assert!(error.abs() < allowed, "{error} ns apart, {allowed} allowed: {status:?}");
    }

    /// Stops and returns what was seen.
    pub(crate) fn finish(self) -> Vec<Seen> {
        drop(self.profiler);
        decode_all(&self.uploads)
    }
}

fn decode_all(uploads: &Mutex<Vec<Vec<u8>>>) -> Vec<Seen> {
    uploads.lock().unwrap().iter().flat_map(|bytes| decode(bytes)).collect()
}

pub(crate) fn decode(bytes: &[u8]) -> Vec<Seen> {
    let request = ExportProfilesServiceRequest::decode(bytes).unwrap();
    let dictionary = request.dictionary.unwrap();
    let text = |index: i32| dictionary.string_table[index as usize].clone();
    let mut seen = Vec::new();
    for profile in request.resource_profiles.iter().flat_map(|r| &r.scope_profiles).flat_map(|s| &s.profiles) {
        let name = text(profile.sample_type.unwrap().type_strindex);
        for sample in &profile.samples {
            let link = &dictionary.link_table[sample.link_index as usize];
            let is_linked = sample.link_index != 0;
            let mut common = Seen {
                profile: name.clone(),
                functions: functions_of(&dictionary, sample.stack_index),
                trace_id: if is_linked { link.trace_id.clone() } else { Vec::new() },
                span_id: if is_linked { link.span_id.clone() } else { Vec::new() },
                ..Seen::default()
            };
            for attribute in sample.attribute_indices.iter().map(|i| &dictionary.attribute_table[*i as usize]) {
                match (text(attribute.key_strindex).as_str(), attribute.value.as_ref().unwrap().value.as_ref().unwrap())
                {
                    ("thread.id", Value::IntValue(id)) => common.thread_id = *id,
                    ("thread.name", Value::StringValue(name)) => common.thread_name.clone_from(name),
                    other => panic!("unexpected attribute {other:?}"),
                }
            }
            for (index, value) in sample.values.iter().enumerate() {
                let time_unix_nano = sample.timestamps_unix_nano.get(index).copied();
                seen.push(Seen { value: *value, time_unix_nano, ..common.clone() });
            }
        }
    }
    seen
}

fn functions_of(dictionary: &ProfilesDictionary, stack: i32) -> Vec<String> {
    let locations = &dictionary.stack_table[stack as usize].location_indices;
    let lines = locations.iter().flat_map(|index| &dictionary.location_table[*index as usize].lines);
    lines
        .map(|line| {
            let function = dictionary.function_table[line.function_index as usize];
            dictionary.string_table[function.name_strindex as usize].clone()
        })
        .collect()
}

/// Sum of the values of one profile type.
pub(crate) fn total<'a>(seen: impl IntoIterator<Item = &'a Seen>, profile: &str) -> f64 {
    seen.into_iter().filter(|sample| sample.profile == profile).map(|sample| sample.value as f64).sum()
}

/// CPU time of the calling thread in nanoseconds.
pub(crate) fn thread_cpu_ns() -> u64 {
    clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

pub(crate) fn clock(id: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid and writable.
    unsafe { libc::clock_gettime(id, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// How often the kernel looks at CPU timers.
fn tick_ns() -> f64 {
    let mut resolution = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `resolution` is valid and writable.
    unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC_COARSE, &mut resolution) };
    resolution.tv_nsec as f64
}

/// Arithmetic that the compiler cannot shorten.
#[inline(always)]
pub(crate) fn crunch(rounds: u64) -> u64 {
    let mut value = 0x1234_5678u64;
    for round in 0..rounds {
        value = std::hint::black_box(value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(round));
    }
    value
}

/// Uses about this much CPU time on the calling thread.
#[inline(never)]
pub(crate) fn burn(milliseconds: u64) {
    let end = thread_cpu_ns() + milliseconds * 1_000_000;
    while thread_cpu_ns() < end {
        crunch(2_000);
    }
}

/// Small numbers that look random, the same in every run.
pub(crate) struct Scatter(pub(crate) u64);

impl Scatter {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}
