//! What profiling costs: by this crate, by pprof 0.15 and by pyroscope 2.1.
//!
//! `crates/hotspan-profiler/overhead/run [PAIRS]` builds and runs all of it:
//!
//! 1. One sample by stack depth: signal, handler and return, beside a handler that does nothing ([`sample_cost`]).
//! 2. CPU time of a unit of work with each profiler on and off, in pairs, with controls ([`paired`]).
//! 3. The way of a context switch, which some ways of sampling make longer ([`switches`]).
//! 4. What the profiler says it used itself, after half a minute of work ([`own_account`]).
//! 5. What the monitor thread costs beside many threads, waiting ones and ones that come and go ([`many_threads`]).
//!
//! pprof and pyroscope give their handlers the same symbol, so no program can hold both: each has a program of its own, in
//! which it is compared with this crate and the controls, pair by pair. All of it is CPU time, never wall time, which a busy
//! machine distorts. Instructions per span enter and exit are counted by `benches/span_cost.sh`.
#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs)]

mod clocks;
pub mod many_threads;
pub mod own_account;
pub mod paired;
pub mod sample_cost;
pub mod switches;
pub mod toggled;
mod work;

/// Another profiler, by name.
pub struct Rival {
    /// As the tables call it.
    pub name: &'static str,
    /// One that is off.
    pub profiler: Box<dyn toggled::Toggled>,
}

/// How many pairs were asked for.
pub fn pairs() -> usize {
    std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(150)
}

/// Everything in which a rival takes part.
pub fn compare(mut rival: Rival) {
    sample_cost::print(&mut rival);
    paired::print(pairs(), rival);
}
