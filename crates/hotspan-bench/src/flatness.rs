//! The same lookups as the store grows: what was stored first must be found as fast when a hundred times as much is there.
//!
//! A copy of the store is put aside at each size, and all are asked in the end, one after another: growth is a ratio, and
//! the machine must not have changed between its two sides.

use std::path::Path;
use std::{fs, io};

use anyhow::Context as _;
use hotspan_generator::Workload;

use crate::arguments::Arguments;
use crate::expected::Expected;
use crate::ingest::send;
use crate::measure::{Timing, measure};
use crate::prepare::prepare;
use crate::questions::{span_lookups, trace_lookups};
use crate::run::{Outcome, Place, discard, progress, wait};
use crate::server::Launch;
use crate::table::{Unit, millis};

/// How much slower a lookup may become.
const FLAT: f64 = 2.0;
/// What the names of files end in that are written once.
const SEGMENTS: [&str; 3] = ["seg", "parquet", "ids"];

pub(crate) fn run(arguments: &Arguments, place: &Place, outcome: &mut Outcome) -> anyhow::Result<()> {
    let (stored_kind, stored_per_hour) = if arguments.has_spans_only() { ("spans", 1e6) } else { ("samples", 5e6) };
    let (Some(smallest), Some(largest)) = (arguments.sizes.first(), arguments.sizes.last()) else {
        return Ok(());
    };
    let hours = |millions: f64| millions * 1e6 / stored_per_hour;
    let workload = Workload::new(arguments.settings(hours(*largest)))?;
    let windows = workload.window_count();
    let launch = place.launch(arguments, "flat-store")?;
    // Knows the first step only: all lookups are about what is oldest.
    let mut first = Expected::new(&workload);
    let mut copies: Vec<(f64, Launch)> = Vec::new();
    let mut stored = 0;
    for size in &arguments.sizes {
        let until = ((f64::from(windows) * size / largest).round() as u32).clamp(stored + 1, windows.max(stored + 1));
        progress(&format!("making {size} million {stored_kind}"));
        let mut later = Expected::new(&workload);
        let expected = if size == smallest { &mut first } else { &mut later };
        let prepared = prepare(&workload, stored..until, arguments, &place.folder, expected)?;
        stored = until;
        let server = launch.start()?;
        send(&server, &prepared.traces, "/v1/traces", arguments.connections)?;
        send(&server, &prepared.profiles, "/v1development/profiles", arguments.connections)?;
        wait(arguments, &server, &launch.store, true)?;
        server.stop()?;
        let copy = place.launch(arguments, &format!("flat-store-{size}"))?;
        copy_store(&launch.store, &copy.store).context("cannot put a copy of the store aside")?;
        copies.push((*size, copy));
    }
    let mut lookups = trace_lookups(&first);
    if !arguments.has_spans_only() {
        lookups.extend(span_lookups(&workload, &first));
    }
    for question in &lookups {
        let mut warm: Vec<f64> = Vec::new();
        for (size, copy) in &copies {
            let name = format!("{}, {size} M {stored_kind} stored", question.name);
            progress(&name);
            let (timing, _) = measure(copy, arguments.repeats, &question.calls)?;
            outcome.wrong_answers += usize::from(outcome.table.question(&name, &timing, &question.budget));
            if let Timing::Right(times) = timing {
                warm.push(millis(times.warm));
            }
        }
        if let [first, .., last] = warm.as_slice() {
            let row = format!("{}: growth from {smallest} to {largest} M", question.name);
            outcome.table.figure(&row, Unit::Times, last / first.max(1e-3), Some(FLAT), None);
        }
    }
    for (_, copy) in &copies {
        discard(arguments, copy)?;
    }
    discard(arguments, &launch)
}

/// Copies a store that no server has open. Its segments are never changed, so that both may share them.
fn copy_store(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            copy_store(&source, &target)?;
        } else if source.extension().is_some_and(|extension| SEGMENTS.iter().any(|known| extension == *known)) {
            fs::hard_link(&source, &target)?;
        } else {
            fs::copy(&source, &target)?;
        }
    }
    Ok(())
}
