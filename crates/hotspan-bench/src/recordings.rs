//! JFR as the JVM writes it, and a recording that no memory should hold.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::Value;

use crate::arguments::Arguments;
use crate::http::Client;
use crate::large_recording::{inflated_chunk, moved_by};
use crate::run::{Outcome, Place, progress};
use crate::server::Server;
use crate::settle::settle;
use crate::table::{Unit, micros_each, millis};

const RECORDING: &[u8] = include_bytes!("../../hotspan-formats/tests/fixtures/async-itimer.jfr");
/// The size at which the JDK starts a new chunk.
const CHUNK_BYTES: usize = 12 << 20;
/// Recordings that are sent one by one.
const RECORDINGS: u64 = 8;

/// Recordings of one chunk each, and one of a gigabyte, pushed as a person would.
pub(crate) fn run(arguments: &Arguments, place: &Place, outcome: &mut Outcome) -> anyhow::Result<()> {
    let chunk = inflated_chunk(RECORDING, CHUNK_BYTES);
    let launch = place.launch(arguments, "jfr-store")?;
    let server = launch.start()?;
    progress("sending recordings");
    let mut client = Client::new(server.http);
    let before = server.usage()?;
    let mut samples = 0;
    for number in 0..RECORDINGS {
        let headers = [("Content-Type", "application/octet-stream")];
        let answer = client.post("/api/v1/profiles?service=jvm", &headers, &moved_by(&chunk, number * 60))?;
        ensure!(answer.status == 200, "the server answered {}", String::from_utf8_lossy(&answer.body));
        let answer: Value = serde_json::from_slice(&answer.body)?;
        samples += answer["samples"].as_u64().unwrap_or(0);
    }
    let cpu = server.usage()?.cpu.saturating_sub(before.cpu);
    outcome.wrong_answers += usize::from(server.stored_samples()? != samples || samples == 0);
    outcome.table.figure(
        "JFR ingest, CPU a sample, acknowledged",
        Unit::Microseconds,
        micros_each(cpu, samples),
        None,
        None,
    );

    let file = place.folder.join("long.jfr");
    let chunks = (1u64 << 30).div_ceil(chunk.len() as u64);
    progress("writing a recording of 1 GB");
    let mut out = BufWriter::new(File::create(&file)?);
    for number in 0..chunks {
        out.write_all(&moved_by(&chunk, 86_400 + number * 60))?;
    }
    out.flush()?;
    drop(out);
    progress("pushing it");
    let (peak_before, before, stored) = (server.peak_memory()?, server.usage()?, server.stored_samples()?);
    let wall = push(arguments, &server, &file)?;
    let cpu = server.usage()?.cpu.saturating_sub(before.cpu);
    let long = server.stored_samples()? - stored;
    progress("waiting until it is compacted");
    let (quiet, longest) = (Duration::from_secs(arguments.quiet), Duration::from_secs(arguments.settle));
    settle(&server, &launch.store, quiet, longest)?;
    outcome.wrong_answers += usize::from(long != samples / RECORDINGS * chunks);
    let table = &mut outcome.table;
    table.figure("JFR of 1 GB, pushed and stored", Unit::Milliseconds, millis(wall), None, None);
    table.figure("JFR of 1 GB, CPU a sample, read twice", Unit::Microseconds, micros_each(cpu, long), None, None);
    table.figure("peak memory before it", Unit::Megabytes, peak_before as f64 / 1e6, None, None);
    table.figure("peak memory after it", Unit::Megabytes, server.peak_memory()? as f64 / 1e6, Some(800.0), None);
    server.stop()?;
    fs::remove_file(&file)?;
    fs::remove_dir_all(&launch.store).context("cannot delete the store")
}

fn push(arguments: &Arguments, server: &Server, file: &Path) -> anyhow::Result<Duration> {
    let started = Instant::now();
    let mut command = Command::new(&arguments.server);
    command.arg("push").arg(file).args(["--service", "jvm-long", "--server", &server.http.to_string()]);
    let output = command.output().context("cannot run hotspan push")?;
    ensure!(output.status.success(), "push failed: {}", String::from_utf8_lossy(&output.stderr));
    Ok(started.elapsed())
}
