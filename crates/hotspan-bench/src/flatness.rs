//! The same lookups as the store grows: what was stored first must be found as fast when a hundred times as much is there.

use hotspan_generator::Workload;

use crate::arguments::Arguments;
use crate::expected::Expected;
use crate::ingest::send;
use crate::measure::{Timing, measure};
use crate::prepare::prepare;
use crate::questions::{span_lookups, trace_lookups};
use crate::run::{Outcome, Place, discard, progress, wait};
use crate::table::{Unit, millis};

/// How much slower a lookup may become.
const FLAT: f64 = 2.0;

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
    let mut warm: Vec<(String, Vec<f64>)> = Vec::new();
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
        let mut lookups = trace_lookups(&first);
        if !arguments.has_spans_only() {
            lookups.extend(span_lookups(&workload, &first));
        }
        for question in &lookups {
            let name = format!("{}, {size} M {stored_kind} stored", question.name);
            progress(&name);
            let (timing, _) = measure(&launch, arguments.repeats, &question.calls)?;
            outcome.wrong_answers += usize::from(outcome.table.question(&name, &timing, &question.budget));
            let Timing::Right(times) = timing else { continue };
            match warm.iter_mut().find(|(known, _)| *known == question.name) {
                Some((_, times_of_sizes)) => times_of_sizes.push(millis(times.warm)),
                None => warm.push((question.name.clone(), vec![millis(times.warm)])),
            }
        }
    }
    for (name, times) in warm.iter().filter(|(_, times)| times.len() > 1) {
        let growth = times[times.len() - 1] / times[0].max(1e-3);
        let row = format!("{name}: growth from {smallest} to {largest} M");
        outcome.table.figure(&row, Unit::Times, growth, Some(FLAT), None);
    }
    discard(arguments, &launch)
}
