//! The peers in the same run: the same requests to Hotspan and to a Tempo and a Pyroscope that run beside it, in turn.
//!
//! What a CPU does in a second differs from one day to the next on a shared machine, but little from one minute to the
//! next: the ratio is what a budget that names a share of a peer's figure means.

use std::fs;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use hotspan_generator::Workload;

use crate::arguments::Arguments;
use crate::expected::Expected;
use crate::ingest::{Sent, Target, send_to};
use crate::pprof_files::PprofFiles;
use crate::prepare::prepare;
use crate::process::Process;
use crate::run::{Outcome, Place, progress};
use crate::server::Server;
use crate::settle::wait_until_idle;
use crate::spool::Spool;
use crate::table::{Unit, micros_each};

/// Shares of the peers' CPU that the budgets allow.
const SPAN_SHARE: f64 = 8.0;
const SAMPLE_SHARE: f64 = 12.0;

pub(crate) fn run(arguments: &Arguments, place: &Place, outcome: &mut Outcome) -> anyhow::Result<()> {
    let workload = Workload::new(arguments.settings(arguments.scale))?;
    let mut expected = Expected::new(&workload);
    progress("making the data");
    let prepared = prepare(&workload, 0..workload.window_count(), arguments, &place.folder, &mut expected)?;
    let connections = arguments.connections;
    let otlp = |spool: &Spool, path: &str, process: Process, address: SocketAddr| {
        send_to(&Target { process, address, path: &|_| path.to_owned() }, spool, connections)
    };
    if let Some(tempo) = arguments.tempo {
        let items = prepared.traces.items;
        let work = Work { name: "span", peer: "Tempo", process: tempo.process, share: SPAN_SHARE, items };
        let send = |process, address| otlp(&prepared.traces, "/v1/traces", process, address);
        let ours = |server: &Server| send(server.process(), server.otlp);
        work.measure(arguments, place, outcome, &ours, &|| send(tempo.process, tempo.address))?;
    }
    if let Some(pyroscope) = arguments.pyroscope.filter(|_| !arguments.has_spans_only()) {
        let (process, items) = (pyroscope.process, prepared.profiles.items);
        let work = Work { name: "sample", peer: "Pyroscope", process, share: SAMPLE_SHARE, items };
        let send = |process, address| otlp(&prepared.profiles, "/v1development/profiles", process, address);
        let ours = |server: &Server| send(server.process(), server.otlp);
        work.measure(arguments, place, outcome, &ours, &|| send(pyroscope.process, pyroscope.address))?;

        let files = PprofFiles::prepare(&workload, place)?;
        let work = Work { name: "sample of pprof", items: files.spool.items, ..work };
        let ours = |server: &Server| files.send(server.process(), server.http, connections);
        let theirs = || files.send(pyroscope.process, pyroscope.address, connections);
        work.measure(arguments, place, outcome, &ours, &theirs)?;
    }
    Ok(())
}

/// What is sent, and to whom beside Hotspan.
#[derive(Clone, Copy)]
struct Work {
    name: &'static str,
    peer: &'static str,
    process: Process,
    share: f64,
    items: u64,
}

impl Work {
    /// Sends everything to a fresh Hotspan and to the peer, in turn, and sets the sums of CPU time side by side.
    fn measure(
        self,
        arguments: &Arguments,
        place: &Place,
        outcome: &mut Outcome,
        to_hotspan: &dyn Fn(&Server) -> anyhow::Result<Sent>,
        to_peer: &dyn Fn() -> anyhow::Result<Sent>,
    ) -> anyhow::Result<()> {
        let (mut ours, mut theirs) = (Duration::ZERO, Duration::ZERO);
        for _ in 0..arguments.rounds {
            wait_until_idle(self.process, Duration::from_secs(arguments.settle))?;
            progress(&format!("sending every {} to Hotspan", self.name));
            let launch = place.launch(arguments, "peers-store")?;
            let server = launch.start()?;
            ours += to_hotspan(&server)?.cpu;
            server.stop()?;
            fs::remove_dir_all(&launch.store).context("cannot delete the store")?;
            progress(&format!("sending every {} to {}", self.name, self.peer));
            theirs += to_peer().with_context(|| format!("{} does not take it", self.peer))?.cpu;
        }
        let items = self.items * arguments.rounds as u64;
        let theirs = micros_each(theirs, items);
        outcome.table.figure(
            &format!("CPU a {}, acknowledged, beside {} in the same run", self.name, self.peer),
            Unit::Microseconds,
            micros_each(ours, items),
            Some(theirs / self.share),
            Some(theirs),
        );
        Ok(())
    }
}
