//! `hotspan store`: is a store sound, what is in it, and can it be smaller.

use std::io::{IsTerminal, Write};
use std::path::Path;

use clap::{Args, Subcommand};
use hotspan_formats::count_text;
use hotspan_lake::LakeError;
use hotspan_lake::check::{CheckReport, Progress, check};
use hotspan_lake::repair::repair;
use hotspan_lake::stats::StoreStats;
use serde_json::json;

use crate::config::{StoreFlags, load};
use crate::screen::say;
use crate::store_compact::{Compacted, compact};
use crate::store_repair::{places, repair_text};
use crate::store_table;

#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Read everything in a store that no server has open, and name what is damaged
    Check(StoreArguments),
    /// Merge a store that no server has open for good, which is as small as it gets; a server does so by itself, hour by hour
    Compact(StoreArguments),
    /// Mend a damaged store that no server has open: build id indexes again, take out what can't be read, and say what is lost
    Repair(StoreArguments),
    /// Print what a store holds by table and level; works beside a running server
    Stats(StoreArguments),
}

#[derive(Debug, Args)]
pub(crate) struct StoreArguments {
    #[command(flatten)]
    flags: StoreFlags,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// Runs one of the commands.
pub(crate) fn run(command: StoreCommand) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match command {
        StoreCommand::Check(arguments) => {
            let folder = load(&arguments.flags.into())?.config.settings.store;
            let report = runtime.block_on(check(&folder, show_progress())).map_err(|error| explain(&folder, error))?;
            say(if arguments.json { check_json(&report) } else { check_text(&report) }.trim_end());
            if !report.damage.is_empty() {
                let (folder, places) = (folder.display(), places(report.damage.len()));
                anyhow::bail!(
                    "{folder} is damaged in {places}; `hotspan store repair` mends what can be, and takes out the rest"
                );
            }
        }
        StoreCommand::Compact(arguments) => {
            let folder = load(&arguments.flags.into())?.config.settings.store;
            let done = runtime.block_on(compact(&folder, show_jobs())).map_err(|error| match error {
                LakeError::Damaged { .. } | LakeError::Storage { action: "reading", .. } => {
                    anyhow::anyhow!("{error}; `hotspan store repair` mends what can be, and takes out the rest")
                }
                other => explain(&folder, other),
            })?;
            say(if arguments.json { store_table::as_json(&done.after) } else { compact_text(&done) }.trim_end());
        }
        StoreCommand::Repair(arguments) => {
            let folder = load(&arguments.flags.into())?.config.settings.store;
            let report = runtime.block_on(repair(&folder, show_progress())).map_err(|error| explain(&folder, error))?;
            say(if arguments.json { format!("{:#}", json!(report)) } else { repair_text(&report) }.trim_end());
            if !report.left.is_empty() {
                anyhow::bail!("{} is still damaged in {}", folder.display(), places(report.left.len()));
            }
        }
        StoreCommand::Stats(arguments) => {
            let folder = load(&arguments.flags.into())?.config.settings.store;
            let stats = runtime.block_on(StoreStats::read(&folder)).map_err(|error| explain(&folder, error))?;
            say(if arguments.json { store_table::as_json(&stats) } else { store_table::as_text(&stats) }.trim_end());
        }
    }
    Ok(())
}

fn explain(folder: &Path, error: LakeError) -> anyhow::Error {
    match error {
        LakeError::InUse { holder, .. } => anyhow::anyhow!(
            "the store {} is in use by process {holder}; stop it first, or ask it for its state at /api/v1/status",
            folder.display()
        ),
        other => other.into(),
    }
}

/// Shows how far the check is, on one line that is written over; only where someone is watching.
fn show_progress() -> impl FnMut(Progress) {
    let watched = std::io::stderr().is_terminal();
    let mut shown = None;
    move |progress| {
        let percent = progress.objects * 100 / progress.of_objects.max(1);
        if !watched || shown == Some(percent) {
            return;
        }
        shown = Some(percent);
        let mut line = format!(
            "\r{percent:3} %  {} of {} objects, {}\x1b[K",
            progress.objects,
            progress.of_objects,
            store_table::size(progress.bytes)
        );
        if progress.objects == progress.of_objects {
            line.push_str("\r\x1b[K");
        }
        let mut terminal = std::io::stderr().lock();
        // If the terminal is gone, the result still counts.
        let _ = terminal.write_all(line.as_bytes()).and_then(|()| terminal.flush());
    }
}

/// Counts merges, on one line that is written over; only where someone is watching.
fn show_jobs() -> impl FnMut(u64) {
    let watched = std::io::stderr().is_terminal();
    move |jobs| {
        if watched {
            let mut terminal = std::io::stderr().lock();
            // If the terminal is gone, the result still counts.
            let _ = write!(terminal, "\r{jobs} merged\x1b[K\r").and_then(|()| terminal.flush());
        }
    }
}

fn compact_text(done: &Compacted) -> String {
    let size = |stats: &StoreStats| {
        let levels = stats.levels.iter();
        let (segments, bytes) = levels.fold((0, 0), |(segments, bytes), level| {
            (segments + level.segments, bytes + level.bytes + level.index_bytes)
        });
        format!("{} segments with {}", count_text(segments), store_table::size(bytes))
    };
    let merges = if done.jobs == 1 { "1 merge".to_owned() } else { format!("{} merges", count_text(done.jobs)) };
    let freed = store_table::size(done.before.removed_bytes);
    format!(
        "{} became {} in {merges}; {freed} that were replaced before are deleted\n\n{}",
        size(&done.before),
        size(&done.after),
        store_table::as_text(&done.after)
    )
}

fn check_text(report: &CheckReport) -> String {
    let mut text = format!(
        "{} segments in {} objects: {} rows, {} read\n",
        count_text(report.segments),
        count_text(report.objects),
        count_text(report.rows),
        store_table::size(report.bytes)
    );
    for path in &report.orphans {
        text.push_str(&format!(
            "orphan   {path}: no commit mentions it; a server that starts deletes it if a crash left it there\n"
        ));
    }
    for damage in &report.damage {
        text.push_str(&format!("damaged  {}: {}\n", damage.path, damage.reason));
    }
    if report.damage.is_empty() {
        text.push_str("sound\n");
    }
    text
}

fn check_json(report: &CheckReport) -> String {
    let mut value = json!(report);
    value["sound"] = report.damage.is_empty().into();
    format!("{value:#}\n")
}
