//! Reads a recording of 1 GB (or as many bytes as the first argument says) and prints the memory it took.
//!
//! `cargo run --release -p hotspan-formats --example jfr_large`

#![allow(clippy::print_stdout, reason = "it is what an example is for")]

mod large_recording;

use std::time::Instant;

use hotspan_formats::DecodeOptions;
use hotspan_formats::jfr::JfrReader;
use large_recording::{Repeated, inflated_chunk};

const RECORDING: &[u8] = include_bytes!("../tests/fixtures/async-itimer.jfr");

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let target: usize = std::env::args().nth(1).map_or(Ok(1 << 30), |argument| argument.parse())?;
    // The size at which the JDK starts a new chunk.
    let chunk = inflated_chunk(RECORDING, 12 << 20);
    let chunks = target.div_ceil(chunk.len());
    let before = peak_memory();
    let started = Instant::now();
    let input = Repeated { chunk: &chunk, at: 0, chunks_left: chunks - 1 };
    let mut reader = JfrReader::new(input, None, DecodeOptions::default())?;
    let (mut read, mut samples) = (0, 0);
    while let Some(set) = reader.next_chunk()? {
        read += 1;
        samples += set.sample_count();
    }
    let seconds = started.elapsed().as_secs_f64();
    let megabytes = (chunk.len() * read) as f64 / 1e6;
    println!("{megabytes:.0} MB in {read} chunks of {:.1} MB, {samples} samples", chunk.len() as f64 / 1e6);
    println!("{seconds:.2} s, {:.0} MB/s, {:.0} ns a sample", megabytes / seconds, seconds * 1e9 / samples as f64);
    println!("peak memory {:.0} MB, of which {:.0} MB before reading", peak_memory(), before);
    Ok(())
}

/// Megabytes of the largest resident set so far.
fn peak_memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok()).unwrap_or(f64::NAN) / 1e3
}
