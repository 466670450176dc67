//! Profile formats against files that real tools wrote (see `fixtures/README.md`), and against each other.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod algebra;
mod detection;
mod hostile;
mod jfr;
mod pprof;
mod scripts;
mod support;
