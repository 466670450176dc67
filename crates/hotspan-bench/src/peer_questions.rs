//! The same questions to Hotspan and to a Tempo and a Pyroscope that run beside it and hold the same data.
//!
//! Each question goes to one and then to the other, so that both answer on the same machine in the same minute; the budget
//! is the share of what the peer took that the design allows.

use std::time::Duration;

use anyhow::Context as _;
use hotspan_generator::Workload;

use crate::arguments::{Arguments, Peer};
use crate::expected::Expected;
use crate::ingest::{Target, send, send_to};
use crate::measure::{Answering, Times, Timing, ask};
use crate::prepare::prepare;
use crate::questions::{Question, pyroscope_questions, trace_questions};
use crate::run::{Outcome, Place, discard, progress, wait};
use crate::settle::wait_until_idle;
use crate::spool::Spool;
use crate::table::{Unit, millis};

pub(crate) fn run(arguments: &Arguments, place: &Place, outcome: &mut Outcome) -> anyhow::Result<()> {
    let workload = Workload::new(arguments.settings(arguments.scale))?;
    let mut expected = Expected::new(&workload);
    progress("making the data");
    let prepared = prepare(&workload, 0..workload.window_count(), arguments, &place.folder, &mut expected)?;
    let feed = |name: &str, peer: Peer, spool: &Spool, path: &str| {
        progress(&format!("sending to {name}"));
        let target = Target { process: peer.process, address: peer.address, path: &|_| path.to_owned() };
        send_to(&target, spool, arguments.connections).with_context(|| format!("{name} does not take it"))
    };
    let mut asked = Vec::new();
    if let (Some(tempo), Some(address)) = (arguments.tempo, arguments.tempo_api) {
        feed("Tempo", tempo, &prepared.traces, "/v1/traces")?;
        asked.push(("Tempo", Answering { process: tempo.process, address }, trace_questions(&workload, &expected)));
    }
    if let Some(pyroscope) = arguments.pyroscope.filter(|_| !arguments.has_spans_only()) {
        feed("Pyroscope", pyroscope, &prepared.profiles, "/v1development/profiles")?;
        let Peer { process, address } = pyroscope;
        asked.push(("Pyroscope", Answering { process, address }, pyroscope_questions(&workload, &expected)));
    }
    let launch = place.launch(arguments, "peer-questions-store")?;
    let server = launch.start()?;
    progress("sending to Hotspan");
    send(&server, &prepared.traces, "/v1/traces", arguments.connections)?;
    send(&server, &prepared.profiles, "/v1development/profiles", arguments.connections)?;
    wait(arguments, &server, &launch.store, true)?;
    for (name, peer, questions) in asked {
        progress(&format!("waiting for {name}"));
        wait_until_idle(peer.process, Duration::from_secs(arguments.settle))?;
        for question in &questions {
            let ours = ask(server.answering(), arguments.repeats, &question.calls)?;
            let theirs = ask(peer, arguments.repeats, &question.calls)?;
            compare(question, &ours, (name, &theirs), outcome);
        }
    }
    server.stop()?;
    discard(arguments, &launch)
}

/// The rows of a question: what both took, in time and in CPU.
fn compare(question: &Question<'_>, ours: &Timing, (peer, theirs): (&str, &Timing), outcome: &mut Outcome) {
    progress(&question.name);
    let theirs = match theirs {
        Timing::Right(times) => Some(*times),
        Timing::NotAvailable(status) => {
            outcome.table.note(&format!("{}, {peer}", question.name), &format!("not available ({status})"), "");
            None
        }
        // Said, but no fault of ours.
        Timing::Wrong(why) => {
            outcome.table.note(&format!("{}, {peer}", question.name), why, "");
            None
        }
    };
    let Timing::Right(ours) = ours else {
        outcome.wrong_answers += usize::from(outcome.table.question(&question.name, ours, &question.budget));
        return;
    };
    let share = question.budget.peer.zip(question.budget.warm).map(|(peer, warm)| peer / warm);
    let mut row = |what: &str, time: fn(&Times) -> Duration, share: Option<f64>| {
        let theirs = theirs.as_ref().map(|times| millis(time(times)));
        let budget = theirs.zip(share).map(|(theirs, share)| theirs / share);
        let name = format!("{}: {what}, beside {peer}", question.name);
        outcome.table.figure(&name, Unit::Milliseconds, millis(time(ours)), budget, theirs);
    };
    row("warm", |times| times.warm, share);
    row("CPU", |times| times.warm_cpu, None);
}
