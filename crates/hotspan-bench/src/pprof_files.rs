//! pprof as agents send it: a gzipped file for each service and 15 seconds.

use std::fs;
use std::net::SocketAddr;

use anyhow::Context as _;
use hotspan_generator::Workload;
use hotspan_generator::encode::pprof_file;

use crate::arguments::Arguments;
use crate::ingest::{Sent, Target, send_to};
use crate::process::Process;
use crate::run::{Outcome, Place, progress, wait};
use crate::spool::{Spool, SpoolWriter};
use crate::table::{Unit, micros_each};

/// What Pyroscope takes for a sample of such a file, in microseconds.
const PEER: f64 = 19.3;

/// Such files, ready to be sent.
pub(crate) struct PprofFiles {
    pub(crate) spool: Spool,
    /// What the address of each says about it.
    pub(crate) facts: Vec<PprofFacts>,
}

/// What an agent says about a file beside its content.
pub(crate) struct PprofFacts {
    pub(crate) service: String,
    pub(crate) from: i64,
    pub(crate) until: i64,
}

impl PprofFiles {
    pub(crate) fn prepare(workload: &Workload, place: &Place) -> anyhow::Result<Self> {
        progress("making pprof files");
        let mut spool = SpoolWriter::create(&place.folder.join("pprof.spool"))?;
        let mut facts = Vec::new();
        for number in 0..workload.window_count() {
            let window = workload.window(number);
            for profile in &window.profiles {
                spool.add(&pprof_file(&window, profile), profile.samples.len())?;
                facts.push(PprofFacts {
                    service: workload.fleet().services[usize::from(profile.service)].name.clone(),
                    from: profile.start,
                    until: profile.start + 15_000_000_000,
                });
            }
        }
        Ok(Self { spool: spool.finish()?, facts })
    }

    pub(crate) fn send(&self, process: Process, address: SocketAddr, connections: usize) -> anyhow::Result<Sent> {
        let path = |number: usize| {
            let PprofFacts { service, from, until } = &self.facts[number];
            format!("/ingest?name={service}&format=pprof&from={from}&until={until}&sampleRate=100")
        };
        send_to(&Target { process, address, path: &path }, &self.spool, connections)
    }
}

pub(crate) fn run(arguments: &Arguments, place: &Place, outcome: &mut Outcome) -> anyhow::Result<()> {
    let workload = Workload::new(arguments.settings(arguments.scale))?;
    let files = PprofFiles::prepare(&workload, place)?;
    let launch = place.launch(arguments, "pprof-store")?;
    let server = launch.start()?;
    progress("sending pprof files");
    let (items, used_before, compacted_before) = (files.spool.items, server.usage()?, server.compaction_cpu());
    let sent = files.send(server.process(), server.http, arguments.connections)?;
    let meanwhile = server.compaction_cpu().saturating_sub(compacted_before);
    // A file has two types, and so two rows for each sample.
    outcome.wrong_answers += usize::from(server.stored_samples()? != 2 * items);
    wait(arguments, &server, &launch.store, true)?;
    let used = server.usage()?.cpu.saturating_sub(used_before.cpu);
    for (row, cpu, budget) in [
        ("pprof ingest, CPU a sample, acknowledged", sent.cpu, Some(PEER / 12.0)),
        ("... of which compaction that ran meanwhile", meanwhile, None),
        ("pprof ingest, CPU a sample, compacted", used, Some(PEER / 8.0)),
    ] {
        outcome.table.figure(row, Unit::Microseconds, micros_each(cpu, items), budget, budget.map(|_| PEER));
    }
    server.stop()?;
    fs::remove_dir_all(&launch.store).context("cannot delete the store")
}
