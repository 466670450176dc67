//! One run: data, ingest, questions, and the table of it all.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use hotspan_generator::{SampleKind, Workload};

use crate::arguments::{Arguments, Part};
use crate::disk::{bytes_below, bytes_by_table, bytes_in_use};
use crate::expected::Expected;
use crate::flatness;
use crate::ingest::{Sent, send};
use crate::measure::measure;
use crate::peer_questions;
use crate::peers;
use crate::pprof_files;
use crate::prepare::{Prepared, prepare};
use crate::questions::{Question, explain_questions, join_questions, profile_questions, trace_questions};
use crate::recordings;
use crate::server::{Launch, Server};
use crate::settle::settle;
use crate::stages;
use crate::table::{Table, Unit, micros_each, millis};

/// What a run found.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) table: Table,
    /// What the data was.
    pub(crate) data: String,
    pub(crate) wrong_answers: usize,
}

impl Outcome {
    pub(crate) fn markdown(&self) -> String {
        format!("{}\n\n{}", self.data, self.table.markdown())
    }
}

/// Where things are during a run.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) folder: PathBuf,
    // Deletes the folder at the end.
    _temporary: Option<tempfile::TempDir>,
}

impl Place {
    fn new(arguments: &Arguments) -> anyhow::Result<Self> {
        match &arguments.folder {
            Some(folder) => {
                fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
                Ok(Self { folder: folder.clone(), _temporary: None })
            }
            None => {
                let temporary = tempfile::Builder::new().prefix("hotspan-bench-").tempdir()?;
                Ok(Self { folder: temporary.path().to_owned(), _temporary: Some(temporary) })
            }
        }
    }

    /// A server on a store of its own, which must not be there yet.
    pub(crate) fn launch(&self, arguments: &Arguments, store: &str) -> anyhow::Result<Launch> {
        let path = self.folder.join(store);
        anyhow::ensure!(!path.exists(), "{} is there already; give another --folder", path.display());
        Ok(Launch {
            binary: arguments.server.clone(),
            store: path,
            log: self.folder.join(format!("{store}.log")),
            further_arguments: arguments.serve_arguments.split_whitespace().map(str::to_owned).collect(),
        })
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let place = Place::new(arguments)?;
    let mut outcome = Outcome::default();
    if [Part::Ingest, Part::Profiles, Part::Traces, Part::Explain].into_iter().any(|part| arguments.measures(part)) {
        main_run(arguments, &place, &mut outcome)?;
    }
    if arguments.measures(Part::Pprof) {
        pprof_files::run(arguments, &place, &mut outcome)?;
    }
    if arguments.measures(Part::Jfr) {
        recordings::run(arguments, &place, &mut outcome)?;
    }
    if arguments.measures(Part::Join) {
        join_run(arguments, &place, &mut outcome)?;
    }
    if arguments.measures(Part::Flat) {
        flatness::run(arguments, &place, &mut outcome)?;
    }
    if arguments.measures(Part::Stages) {
        stages::run(arguments, &place, &mut outcome)?;
    }
    if arguments.measures(Part::Peers) {
        peers::run(arguments, &place, &mut outcome)?;
    }
    if arguments.measures(Part::PeerQuestions) {
        peer_questions::run(arguments, &place, &mut outcome)?;
    }
    Ok(outcome)
}

fn main_run(arguments: &Arguments, place: &Place, outcome: &mut Outcome) -> anyhow::Result<()> {
    let workload = Workload::new(arguments.settings(arguments.scale))?;
    let mut expected = Expected::new(&workload);
    progress("making the data");
    let prepared = prepare(&workload, 0..workload.window_count(), arguments, &place.folder, &mut expected)?;
    outcome.data = describe(&workload, &expected, &prepared, arguments);
    let launch = place.launch(arguments, "store")?;
    let server = launch.start()?;
    ingest(arguments, &server, &launch.store, &prepared, outcome)?;
    server.stop()?;
    let mut ready = Duration::ZERO;
    if arguments.measures(Part::Profiles) {
        ready = ask_all(arguments, &launch, &profile_questions(&workload, &expected), outcome)?.max(ready);
    }
    if arguments.measures(Part::Traces) {
        ready = ask_all(arguments, &launch, &trace_questions(&workload, &expected), outcome)?.max(ready);
    }
    if arguments.measures(Part::Explain) {
        ready = ask_all(arguments, &launch, &explain_questions(&workload, &expected), outcome)?.max(ready);
    }
    if arguments.measures(Part::Ingest) {
        merge_for_good(&launch, &prepared, outcome)?;
    }
    if ready > Duration::ZERO {
        // Tempo's figure; Pyroscope took 47 s.
        outcome.table.figure(
            "start to ready, existing store",
            Unit::Milliseconds,
            millis(ready),
            Some(300.0),
            Some(200.0),
        );
    }
    discard(arguments, &launch)
}

/// What a store takes once its hours are over, and what merging it so far costs.
fn merge_for_good(launch: &Launch, prepared: &Prepared, outcome: &mut Outcome) -> anyhow::Result<()> {
    progress("merging for good");
    let (tables, cpu) = launch.compact()?;
    let (spans, samples) = (prepared.traces.items, prepared.profiles.items);
    let is_of_spans = |table: &str| matches!(table, "spans" | "traces");
    let sum = |of_spans: bool| -> u64 {
        tables.iter().filter(|(table, _)| is_of_spans(table) == of_spans).map(|(_, bytes)| bytes).sum()
    };
    let each = |bytes: u64, count: u64| bytes as f64 / count.max(1) as f64;
    let table = &mut outcome.table;
    let (of_spans, of_samples) = (each(sum(true), spans), each(sum(false), samples));
    table.figure("bytes a span on disk, merged for good", Unit::Bytes, of_spans, Some(45.0), Some(93.0));
    if samples > 0 {
        table.figure("bytes a sample on disk, merged for good", Unit::Bytes, of_samples, Some(15.0), Some(20.0));
    }
    let items = spans + samples;
    table.figure("merging for good, CPU a span or sample", Unit::Microseconds, micros_each(cpu, items), None, None);
    Ok(())
}

/// The join in the large, on a store of its own: twice the samples in the same time.
fn join_run(arguments: &Arguments, place: &Place, outcome: &mut Outcome) -> anyhow::Result<()> {
    let mut settings = arguments.settings(arguments.scale.min(1.0));
    settings.samples *= 2;
    let workload = Workload::new(settings)?;
    let mut expected = Expected::new(&workload);
    progress("making the data of the join");
    let prepared = prepare(&workload, 0..workload.window_count(), arguments, &place.folder, &mut expected)?;
    let launch = place.launch(arguments, "join-store")?;
    let server = launch.start()?;
    send(&server, &prepared.traces, "/v1/traces", arguments.connections)?;
    send(&server, &prepared.profiles, "/v1development/profiles", arguments.connections)?;
    wait(arguments, &server, &launch.store, true)?;
    server.stop()?;
    ask_all(arguments, &launch, &join_questions(&workload, &expected), outcome)?;
    discard(arguments, &launch)
}

/// Asks each question of a fresh server. Returns the longest that one of them took to be ready.
fn ask_all(
    arguments: &Arguments,
    launch: &Launch,
    questions: &[Question<'_>],
    outcome: &mut Outcome,
) -> anyhow::Result<Duration> {
    let mut longest = Duration::ZERO;
    for question in questions.iter().filter(|question| !question.calls.is_empty()) {
        progress(&question.name);
        let (timing, ready) = measure(launch, arguments.repeats, &question.calls)?;
        longest = longest.max(ready);
        outcome.wrong_answers += usize::from(outcome.table.question(&question.name, &timing, &question.budget));
    }
    Ok(longest)
}

/// Spans first, then samples, each on its own, so that what the server used can be told apart.
fn ingest(
    arguments: &Arguments,
    server: &Server,
    store: &Path,
    prepared: &Prepared,
    outcome: &mut Outcome,
) -> anyhow::Result<()> {
    let connections = arguments.connections;
    let table = &mut outcome.table;
    let mut shown = Table::default();
    let shows = arguments.measures(Part::Ingest);
    let table = if shows { table } else { &mut shown };
    let idle = bytes_below(store)?;
    progress("sending spans");
    let spans = prepared.traces.items;
    let used_before = server.usage()?;
    let sent = send(server, &prepared.traces, "/v1/traces", connections)?;
    let at_once = bytes_below(store)?.saturating_sub(idle);
    let done = wait(arguments, server, store, shows)?;
    let used = server.usage()?.cpu.saturating_sub(used_before.cpu);
    let settled = bytes_in_use(server, store)?;
    let on_disk = bytes_below(store)?;
    table.figure(
        "span ingest, CPU a span, acknowledged",
        Unit::Microseconds,
        micros_each(sent.cpu, spans),
        Some(18.0 / 8.0),
        Some(18.0),
    );
    let compaction = micros_each(sent.compaction_cpu, spans);
    table.figure("... of which compaction that ran meanwhile", Unit::Microseconds, compaction, None, None);
    table.figure(
        "span ingest, CPU a span, compacted",
        Unit::Microseconds,
        micros_each(used, spans),
        Some(38.5 / 8.0),
        Some(38.5),
    );
    acknowledgements(table, "spans", &sent, spans, (60.0, 350.0));
    let each = |bytes: u64, count: u64| bytes as f64 / count.max(1) as f64;
    table.figure("bytes a span on disk, at once", Unit::Bytes, each(at_once, spans), None, None);
    table.figure("bytes a span on disk, compacted", Unit::Bytes, each(settled, spans), Some(45.0), Some(93.0));

    let samples = prepared.profiles.items;
    if samples == 0 {
        return Ok(());
    }
    progress("sending samples");
    let used_before = server.usage()?;
    let sent = send(server, &prepared.profiles, "/v1development/profiles", connections)?;
    let at_once = bytes_below(store)?.saturating_sub(on_disk);
    let done = wait(arguments, server, store, shows)? && done;
    let used_after = server.usage()?;
    let used = used_after.cpu.saturating_sub(used_before.cpu);
    let all_settled = bytes_in_use(server, store)?;
    table.figure(
        "profile ingest, CPU a sample, acknowledged",
        Unit::Microseconds,
        micros_each(sent.cpu, samples),
        Some(22.5 / 12.0),
        Some(22.5),
    );
    let compaction = micros_each(sent.compaction_cpu, samples);
    table.figure("... of which compaction that ran meanwhile", Unit::Microseconds, compaction, None, None);
    table.figure(
        "profile ingest, CPU a sample, compacted",
        Unit::Microseconds,
        micros_each(used, samples),
        Some(22.5 / 8.0),
        Some(22.5),
    );
    acknowledgements(table, "samples", &sent, samples, (500.0, 1000.0));
    table.figure("bytes a sample on disk, at once", Unit::Bytes, each(at_once, samples), Some(40.0), Some(160.0));
    let kept = all_settled.saturating_sub(settled);
    table.figure("bytes a sample on disk, compacted", Unit::Bytes, each(kept, samples), Some(15.0), Some(20.0));
    let written = used_after.written as f64 / all_settled.max(1) as f64;
    table.figure("bytes written for each byte kept", Unit::Times, written, None, None);
    let peak = server.peak_memory()? as f64 / 1e6;
    table.figure("peak memory while ingesting", Unit::Megabytes, peak, Some(800.0), Some(4800.0));
    for (name, bytes) in bytes_by_table(server) {
        table.figure(&format!("table {name}, compacted"), Unit::Megabytes, bytes as f64 / 1e6, None, None);
    }
    if !done {
        table.note("compaction", &format!("was not done after {} s", arguments.settle), "");
    }
    Ok(())
}

fn acknowledgements(table: &mut Table, what: &str, sent: &Sent, items: u64, peers: (f64, f64)) {
    let unit = Unit::Milliseconds;
    table.figure(
        &format!("acknowledgement of {what}, p50"),
        unit,
        millis(sent.latency(0.5)),
        Some(300.0),
        Some(peers.0),
    );
    table.figure(
        &format!("acknowledgement of {what}, p99"),
        unit,
        millis(sent.latency(0.99)),
        Some(600.0),
        Some(peers.1),
    );
    let rate = items as f64 / sent.wall.as_secs_f64().max(1e-9);
    table.figure(&format!("{what} acknowledged a second"), Unit::PerSecond, rate, None, None);
    let per_core = items as f64 / sent.cpu.as_secs_f64().max(1e-9);
    table.figure(&format!("{what} a second of one core"), Unit::PerSecond, per_core, None, None);
    if sent.retried > 0 {
        table.note(&format!("requests with {what} sent again"), &sent.retried.to_string(), "");
    }
}

/// Deletes a store that was measured, unless it is wanted.
pub(crate) fn discard(arguments: &Arguments, launch: &Launch) -> anyhow::Result<()> {
    if arguments.keep {
        return Ok(());
    }
    fs::remove_dir_all(&launch.store).context("cannot delete the store")
}

/// Waits for compaction; where only queries are measured, a shorter wait will do.
pub(crate) fn wait(arguments: &Arguments, server: &Server, store: &Path, patient: bool) -> anyhow::Result<bool> {
    progress("waiting for compaction");
    let quiet = Duration::from_secs(if patient { arguments.quiet } else { arguments.quiet.min(5) });
    settle(server, store, quiet, Duration::from_secs(arguments.settle))
}

fn describe(workload: &Workload, expected: &Expected, prepared: &Prepared, arguments: &Arguments) -> String {
    let oracle = &expected.oracle;
    let each = |bytes: u64, count: u64| bytes as f64 / count.max(1) as f64;
    format!(
        "{} h of data, seed {}: {} services, {} spans in {} traces ({:.0} B each as OTLP), {} samples ({:.0} B each as \
         OTLP, {:.0} % linked), sent over {} connections, gzip.",
        arguments.scale,
        arguments.seed,
        workload.settings().services,
        oracle.spans,
        oracle.traces,
        each(prepared.traces.raw_bytes, oracle.spans),
        oracle.sample_count(SampleKind::Cpu),
        each(prepared.profiles.raw_bytes, oracle.samples),
        100.0 * oracle.linked_samples as f64 / oracle.samples.max(1) as f64,
        arguments.connections,
    )
}

/// Says what is going on, with the time since the start, to whoever waits.
pub(crate) fn progress(what: &str) {
    use std::io::Write as _;
    static STARTED: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    let started = STARTED.get_or_init(Instant::now);
    // Progress that nobody can read is no reason to stop.
    let _ = writeln!(std::io::stderr(), "[{:6.1} s] {what}", started.elapsed().as_secs_f64());
}
