//! `hotspan`: one binary for the server and everything that talks to it.

mod config;
mod logging;
mod serve;
mod store;
mod store_table;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

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
    /// Show, check and document the configuration.
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Check a store, or show what is in it.
    #[command(subcommand)]
    Store(store::StoreCommand),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match arguments.command {
        Command::Serve(arguments) => serve::run(arguments),
        Command::Config(command) => config::run(command),
        Command::Store(command) => store::run(command),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let mut message = error.to_string();
            for cause in error.chain().skip(1) {
                message.push_str(&format!(": {cause}"));
            }
            #[expect(clippy::print_stderr, reason = "the one place where a command says why it failed")]
            {
                eprintln!("hotspan: {message}");
            }
            ExitCode::FAILURE
        }
    }
}
