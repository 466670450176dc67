//! Profile formats against files that real tools wrote (see `fixtures/README.md`), and against each other.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod algebra;
mod cuts;
mod deep;
mod detection;
mod hostile;
mod jfr;
mod jfr_events;
#[path = "../support/jfr_writer.rs"]
mod jfr_writer;
mod perf_script;
mod pprof;
mod scripts;
mod support;
mod units;
