//! `hotspan`: one binary for the server and everything that talks to it.

mod allocator;
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
mod saved_page;
mod screen;
mod serve;
mod spans_of;
mod sql;
mod store;
mod store_compact;
mod store_repair;
mod store_table;
mod table;
mod time_arguments;
mod traces;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

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
    /// Check a store, mend it, merge it for good, or show what is in it.
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
            for cause in error.chain().skip(1).map(ToString::to_string) {
                // Many an error says what caused it itself.
                if !message.ends_with(&cause) {
                    message.push_str(&format!(": {cause}"));
                }
            }
            screen::say_beside(&message);
            ExitCode::FAILURE
        }
    }
}
