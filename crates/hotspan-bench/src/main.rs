//! `hotspan-bench`: starts a server on a fresh store, sends it generated data, asks it questions, and sets what that
//! cost beside the budgets and the figures of the peers.
//!
//! ```text
//!  generator -> Spool (encoded before anything is measured) -> ingest -> settle -> questions -> Table
//!            -> Expected (the right answers) ----------------------------------------^
//! ```
//!
//! A fast wrong answer is no answer: every question is checked against sums that were kept while the data was made.

mod arguments;
mod disk;
mod expected;
mod flatness;
mod http;
mod ingest;
#[path = "../../hotspan-formats/examples/large_recording/mod.rs"]
mod large_recording;
mod measure;
mod peer_questions;
mod peers;
mod pprof_files;
mod prepare;
mod process;
mod questions;
mod recordings;
mod run;
mod server;
mod settle;
mod spool;
mod stages;
mod table;

use std::fs;
use std::io::{self, Write as _};

use anyhow::Context as _;
use clap::Parser as _;

use crate::arguments::Arguments;

/// The allocator of the server, since stages of it run here too.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    arguments.check()?;
    let outcome = run::run(&arguments)?;
    let mut out = io::stdout().lock();
    write!(out, "{}", outcome.table.text())?;
    if let Some(path) = &arguments.markdown {
        fs::write(path, outcome.markdown()).with_context(|| format!("cannot write {}", path.display()))?;
        writeln!(out, "written to {}", path.display())?;
    }
    drop(out);
    anyhow::ensure!(outcome.wrong_answers == 0, "{} answers were wrong; see WRONG above", outcome.wrong_answers);
    Ok(())
}
