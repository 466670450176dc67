//! Prints what a sample costs to read: pprof and JFR, besides decompression.
//!
//! `cargo run --release -p hotspan-formats --example profile_throughput`

#![allow(clippy::print_stdout, reason = "it is what an example is for")]

mod large_recording;

use std::time::Instant;

use hotspan_formats::pprof::{self, Header, PprofLabel, PprofWriter};
use hotspan_formats::{DecodeOptions, Limits, expanded, gzip, jfr};
use hotspan_model::{Frame, PathTable};
use large_recording::inflated_chunk;

const SAMPLES: usize = 50_000;
const FUNCTIONS: usize = 2_500;
const RECORDING: &[u8] = include_bytes!("../tests/fixtures/async-cpu-alloc-lock.jfr");

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = DecodeOptions::default();
    let plain = pprof_profile();
    let zipped = gzip(&plain);
    println!("pprof: {SAMPLES} samples, {} B each, {} B gzipped", plain.len() / SAMPLES, zipped.len() / SAMPLES);
    report("  gunzip", SAMPLES, || expanded(&zipped, &Limits::default()).map_or(0, |plain| plain.len()));
    report("  decode", SAMPLES, || pprof::decode(&plain, &options).map_or(0, |set| set.sample_count()));
    let set = pprof::decode(&plain, &options)?;
    report("  encode and gzip", SAMPLES, || pprof::encode(&set).len());

    let chunk = inflated_chunk(RECORDING, 4 << 20);
    let samples = jfr::decode(&chunk, None, &options)?.sample_count();
    println!("jfr: {samples} samples, {} B each", chunk.len() / samples);
    report("  decode", samples, || jfr::decode(&chunk, None, &options).map_or(0, |set| set.sample_count()));
    Ok(())
}

/// Runs some work for a second and prints what a sample cost, of the fastest run.
fn report(name: &str, samples: usize, mut work: impl FnMut() -> usize) {
    let started = Instant::now();
    let mut best = u64::MAX;
    while started.elapsed().as_secs_f64() < 1.0 {
        let before = cpu_time(started);
        std::hint::black_box(work());
        best = best.min(cpu_time(started) - before);
    }
    println!("{name}: {} ns a sample", best / samples as u64);
}

/// Nanoseconds that this thread has run; the clock on the wall where the system does not say.
fn cpu_time(started: Instant) -> u64 {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let ran = told.as_deref().and_then(|text| text.split(' ').next()).and_then(|number| number.parse().ok());
    ran.unwrap_or_else(|| started.elapsed().as_nanos() as u64)
}

/// A profile like that of a busy service: skewed stacks up to 60 deep, half of the samples inside spans.
fn pprof_profile() -> Vec<u8> {
    let mut state = 88_172_645_463_325_252u64;
    let mut random = move |bound: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % bound as u64) as usize
    };
    let names: Vec<String> =
        (0..FUNCTIONS).map(|index| format!("service/package{}.Function{index}", index % 40)).collect();
    let mut paths = PathTable::default();
    let frames: Vec<u32> = names
        .iter()
        .enumerate()
        .map(|(index, name)| {
            let file = format!("package{}/file.go", index % 40);
            paths.frame(Frame { file: file.into(), line: index as u32 % 500 + 1, ..Frame::named(name) })
        })
        .collect();
    let stacks: Vec<u32> = (0..SAMPLES / 10)
        .map(|_| {
            let depth = 5 + random(56);
            let stack: Vec<u32> = (0..depth)
                .map(|at| frames[(random(FUNCTIONS) * random(FUNCTIONS) / FUNCTIONS + at) % FUNCTIONS])
                .collect();
            paths.path(&stack)
        })
        .collect();
    let header = Header {
        sample_types: vec![("samples".into(), "count".into()), ("cpu".into(), "nanoseconds".into())],
        period_type: ("cpu".into(), "nanoseconds".into()),
        period: 10_000_000,
        time: 1_700_000_000_000_000_000,
        ..Header::default()
    };
    let mut writer = PprofWriter::new(&header, &paths);
    for index in 0..SAMPLES {
        let stack = stacks[random(stacks.len())];
        let span = format!("{:016x}", random(SAMPLES / 20) + 1);
        let labels = [PprofLabel::Text("span_id", span.as_str()), PprofLabel::Text("span_name", "GET /cart")];
        writer.sample(stack, &[1, 10_000_000], labels.into_iter().take(if index % 2 == 0 { 2 } else { 0 }));
    }
    writer.finish()
}
