//! `hotspan`: one binary for the server and everything that talks to it.

mod client;
mod config;
mod demo;
mod diff;
mod explain;
mod flame;
mod logging;
mod policy;
mod push;
mod query;
mod record;
mod screen;
mod serve;
mod spans_of;
mod sql;
mod store;
mod store_compact;
mod store_table;
mod table;
mod traces;

use std::alloc::{GlobalAlloc, Layout};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::{Parser, Subcommand};
use hotspan_profiler::HeapProfiler;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// The allocator, and the same with heap profiling around it. Both forward to the same heap, so that memory may be
/// taken from the one and given back to the other.
struct Allocator;

static PLAIN: mimalloc::MiMalloc = mimalloc::MiMalloc;
static PROFILED: HeapProfiler<mimalloc::MiMalloc> = HeapProfiler::new(mimalloc::MiMalloc);
/// Whether this process profiles its heap. The server does not: it would pay for each allocation.
static PROFILES_HEAP: AtomicBool = AtomicBool::new(false);

/// From here on, allocations of this process pass through the heap profiler.
fn profile_the_heap() {
    PROFILES_HEAP.store(true, Ordering::Relaxed);
}

// SAFETY: every call is forwarded unchanged to an allocator that keeps the contract, and both are the same heap.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let profiles = PROFILES_HEAP.load(Ordering::Relaxed);
        // SAFETY: forwarded from the caller.
        unsafe { if profiles { PROFILED.alloc(layout) } else { PLAIN.alloc(layout) } }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let profiles = PROFILES_HEAP.load(Ordering::Relaxed);
        // SAFETY: forwarded from the caller.
        unsafe { if profiles { PROFILED.alloc_zeroed(layout) } else { PLAIN.alloc_zeroed(layout) } }
    }

    #[inline]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        let profiles = PROFILES_HEAP.load(Ordering::Relaxed);
        // SAFETY: forwarded from the caller.
        unsafe { if profiles { PROFILED.dealloc(pointer, layout) } else { PLAIN.dealloc(pointer, layout) } }
    }

    #[inline]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let profiles = PROFILES_HEAP.load(Ordering::Relaxed);
        // SAFETY: forwarded from the caller.
        unsafe { if profiles { PROFILED.realloc(pointer, layout, size) } else { PLAIN.realloc(pointer, layout, size) } }
    }
}

/// Traces and profiles in one store: from a slow request to a line of code.
#[derive(Debug, Parser)]
#[command(name = "hotspan", version, propagate_version = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start the server.
    #[command(alias = "server")]
    Serve(serve::ServeArguments),
    /// Send profiles in files to a server.
    Push(push::PushArguments),
    /// Draw the flame graph of a service, span or trace.
    Flame(flame::FlameArguments),
    /// List the functions that cost most themselves.
    Top(flame::TopArguments),
    /// Compare two versions, regions or times function by function.
    Diff(diff::DiffArguments),
    /// Show, check and document the configuration.
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Check a store, merge it for good, or show what is in it.
    #[command(subcommand)]
    Store(store::StoreCommand),
    /// Ask a server with TraceQL: traces, series, or the code of the spans.
    Query(query::QueryArguments),
    /// Ask a server with SQL, read-only.
    Sql(sql::SqlArguments),
    /// Show which operations and traces spend how much in a function.
    SpansOf(spans_of::SpansOfArguments),
    /// Set how the profilers of services behave, while they run.
    #[command(subcommand)]
    Policy(policy::PolicyCommand),
    /// Profile a program from outside: start it, or name a process.
    Record(record::RecordArguments),
    /// List the traces that match, with their durations.
    Traces(traces::TracesArguments),
    /// Draw a trace as a waterfall, with the share of each span that was on a CPU.
    Trace(traces::TraceArguments),
    /// Ask a server why a trace, a span or a cohort is slow, or whether a change helped.
    Explain(explain::ExplainArguments),
    /// Start the server and a small shop under load, with problems to find.
    Demo(demo::DemoArguments),
    /// The shop alone, as `demo` starts it.
    #[command(hide = true)]
    DemoShop(demo::ShopArguments),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match arguments.command {
        Command::Serve(arguments) => serve::run(arguments),
        Command::Push(arguments) => push::run(&arguments),
        Command::Flame(arguments) => flame::run(&arguments),
        Command::Top(arguments) => flame::run_top(&arguments),
        Command::Diff(arguments) => diff::run(&arguments),
        Command::Config(command) => config::run(command),
        Command::Store(command) => store::run(command),
        Command::Query(arguments) => query::run(&arguments),
        Command::Sql(arguments) => sql::run(&arguments),
        Command::SpansOf(arguments) => spans_of::run(&arguments),
        Command::Policy(command) => policy::run(command),
        Command::Record(arguments) => record::run(&arguments),
        Command::Traces(arguments) => traces::run_search(&arguments),
        Command::Trace(arguments) => traces::run_trace(&arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Demo(arguments) => demo::run(arguments),
        Command::DemoShop(arguments) => demo::run_shop(arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let mut message = error.to_string();
            for cause in error.chain().skip(1) {
                message.push_str(&format!(": {cause}"));
            }
            screen::say_beside(&message);
            ExitCode::FAILURE
        }
    }
}
