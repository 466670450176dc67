//! Where the CPU of ingest goes: the write path without a network, stage by stage, in this process.
//!
//! ```text
//! request -> decompress -> decode into rows -> commit (level 0, durable) -> level 1 -> higher levels
//! ```
//!
//! Commits and compactions come as often as under the load of the ingest part: as many requests a commit as there are
//! connections, and a first level every 20 seconds of such commits.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use hotspan_formats::otlp::{decode_profiles, decode_traces};
use hotspan_formats::{DecodeOptions, Encoding, Limits, decompress, pprof};
use hotspan_generator::Workload;
use hotspan_lake::catalog::now_nanos;
use hotspan_lake::compaction::{CompactionOptions, Compactor};
use hotspan_lake::rows::{Rows, SpanRows};
use hotspan_lake::table::HOUR;
use hotspan_lake::{Ingest, IngestOptions, Lake};
use hotspan_model::labels::SERVICE_NAME;
use hotspan_model::{Labels, TenantId};

use crate::arguments::Arguments;
use crate::expected::Expected;
use crate::pprof_files::{PprofFacts, PprofFiles};
use crate::prepare::prepare;
use crate::process::Process;
use crate::run::{Outcome, Place, progress};
use crate::spool::Spool;
use crate::table::{Unit, micros_each};

/// Commits between two compactions into level 1: as many as 20 seconds have at a quarter of a second each.
const COMMITS_PER_FIRST_LEVEL: usize = 80;

#[derive(Clone, Copy)]
enum Signal<'f> {
    Traces,
    Profiles,
    Pprof(&'f [PprofFacts]),
}

/// CPU time of each stage.
#[derive(Debug, Default)]
struct Stages {
    decompress: Duration,
    decode: Duration,
    commit: Duration,
    first_level: Duration,
    higher_levels: Duration,
}

pub(crate) fn run(arguments: &Arguments, place: &Place, outcome: &mut Outcome) -> anyhow::Result<()> {
    let workload = Workload::new(arguments.settings(arguments.scale))?;
    let mut expected = Expected::new(&workload);
    progress("making the data");
    let prepared = prepare(&workload, 0..workload.window_count(), arguments, &place.folder, &mut expected)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let mut signals = vec![("span", Signal::Traces, &prepared.traces)];
    let files = if arguments.has_spans_only() { None } else { Some(PprofFiles::prepare(&workload, place)?) };
    if let Some(files) = &files {
        signals.push(("sample", Signal::Profiles, &prepared.profiles));
        signals.push(("sample of pprof", Signal::Pprof(&files.facts), &files.spool));
    }
    for (name, signal, spool) in signals {
        progress(&format!("writing every {name}"));
        let store = tempfile::tempdir_in(&place.folder)?;
        let stages = runtime.block_on(write_all(spool, signal, arguments.connections, store.path()))?;
        for (stage, time) in [
            ("decompress", stages.decompress),
            ("decode into rows", stages.decode),
            ("commit", stages.commit),
            ("into level 1", stages.first_level),
            ("into higher levels", stages.higher_levels),
        ] {
            let work = format!("CPU a {name}: {stage}");
            outcome.table.figure(&work, Unit::Microseconds, micros_each(time, spool.items), None, None);
        }
    }
    Ok(())
}

async fn write_all(
    spool: &Spool,
    signal: Signal<'_>,
    connections: usize,
    folder: &std::path::Path,
) -> anyhow::Result<Stages> {
    let lake = Lake::open(folder).await?;
    let options = IngestOptions { flush_interval: Duration::from_millis(1), ..IngestOptions::default() };
    let (ingest, committer) = Ingest::start(Arc::clone(&lake), options);
    let at_once = CompactionOptions { first_level_age: Duration::ZERO, ..CompactionOptions::default() };
    let compactor = Compactor::new(Arc::clone(&lake), at_once);
    let mut stages = Stages::default();
    let started = process_cpu()?;
    let requests: Vec<usize> = (0..spool.len()).collect();
    for (commit, batch) in requests.chunks(connections).enumerate() {
        let mut submissions = Vec::with_capacity(batch.len());
        for number in batch {
            let packed = Bytes::from(spool.read(*number)?);
            let before = thread_cpu()?;
            let message = decompress(Encoding::Gzip, packed, Limits::default().max_bytes)?;
            let between = thread_cpu()?;
            let rows = decode(signal, *number, &message, &ingest)?;
            stages.decompress += between - before;
            stages.decode += thread_cpu()? - between;
            let room = ingest.reserve(message.len()).await.map_err(|error| anyhow::anyhow!("{error}"))?;
            submissions.push((rows, room));
        }
        let mut answers = tokio::task::JoinSet::new();
        for (rows, room) in submissions {
            let ingest = ingest.clone();
            answers.spawn(async move { ingest.submit(TenantId::anonymous(), rows, room).await });
        }
        while let Some(answer) = answers.join_next().await {
            answer?.map_err(|error| anyhow::anyhow!("{error}"))?;
        }
        if commit % COMMITS_PER_FIRST_LEVEL == COMMITS_PER_FIRST_LEVEL - 1 {
            compact(&compactor, now_nanos(), &mut stages).await?;
        }
    }
    // Once the hour is over, all of it is merged for good.
    compact(&compactor, now_nanos() + HOUR, &mut stages).await?;
    let others = stages.decompress + stages.decode + stages.first_level + stages.higher_levels;
    stages.commit = (process_cpu()? - started).saturating_sub(others);
    drop(ingest);
    committer.await?;
    Ok(stages)
}

async fn compact(compactor: &Compactor, now: i64, stages: &mut Stages) -> anyhow::Result<()> {
    while let Some(job) = compactor.next_job(now) {
        let before = process_cpu()?;
        compactor.run_job(&job).await?;
        let used = process_cpu()? - before;
        *(if job.level == 1 { &mut stages.first_level } else { &mut stages.higher_levels }) += used;
    }
    Ok(())
}

fn decode(signal: Signal<'_>, number: usize, message: &Bytes, ingest: &Ingest) -> anyhow::Result<Rows> {
    let limits = Limits::default();
    let mut rows = Rows::default();
    match signal {
        Signal::Traces => {
            rows.spans = SpanRows::with_room_for(message.len());
            decode_traces(message, &limits, &mut rows.spans)?;
        }
        Signal::Profiles => {
            let (set, ..) = decode_profiles(message, &limits, now_nanos())?;
            rows.profiles.push(&set, &ingest.known().of(&TenantId::anonymous()));
        }
        Signal::Pprof(facts) => {
            let PprofFacts { service, from, until } = &facts[number];
            let mut labels = Labels::default();
            labels.set(SERVICE_NAME, service.as_str());
            let options = DecodeOptions { labels, from: *from, until: *until, ..DecodeOptions::default() };
            let set = pprof::decode(message, &options)?;
            rows.profiles.push(&set, &ingest.known().of(&TenantId::anonymous()));
        }
    }
    Ok(rows)
}

/// CPU time of this thread so far.
fn thread_cpu() -> anyhow::Result<Duration> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").context("procfs tells no schedstat")?;
    let nanos = text.split_whitespace().next().and_then(|field| field.parse().ok()).context("schedstat is empty")?;
    Ok(Duration::from_nanos(nanos))
}

/// CPU time of all threads so far.
fn process_cpu() -> anyhow::Result<Duration> {
    Ok(Process { id: std::process::id() }.usage()?.cpu)
}
