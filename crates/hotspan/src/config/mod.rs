//! `hotspan config`: what is in force, whether a file is right, and the documentation of every key.

mod file;
mod flags;
mod scrape;
mod show;
mod sources;

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Subcommand;

use crate::screen::{say, say_beside};
pub(crate) use flags::{ConfigFlags, DEMO_STORE, DemoFlags, StoreFlags};
pub(crate) use sources::{Loaded, load};

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print every value in force and where it came from; takes the flags of `serve`
    Show {
        #[command(flatten)]
        flags: ConfigFlags,
        /// Print JSON instead of TOML
        #[arg(long)]
        json: bool,
    },
    /// Check a file, and point at what is wrong by line and column
    Check {
        /// The file
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Print the documentation of every key, as Markdown
    Docs,
}

/// Runs one of the commands.
pub(crate) fn run(command: ConfigCommand) -> anyhow::Result<()> {
    match command {
        ConfigCommand::Show { flags, json } => {
            let loaded = load(&flags.into())?;
            for warning in &loaded.warnings {
                say_beside(warning);
            }
            say(if json { show::as_json(&loaded) } else { show::as_toml(&loaded) }.trim_end());
        }
        ConfigCommand::Check { file } => check(&file)?,
        ConfigCommand::Docs => say(hotspan_server::config::markdown().trim_end()),
    }
    Ok(())
}

fn check(path: &Path) -> anyhow::Result<()> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let (count, jobs, problems) = sources::check_file(&path.display().to_string(), &bytes);
    if problems.is_empty() {
        let keys = hotspan_server::config::KEYS.len();
        let scrape = match jobs {
            0 => String::new(),
            1 => " and scrapes 1 service".to_owned(),
            jobs => format!(" and scrapes {jobs} services"),
        };
        say(&format!("{}: in order; sets {count} of {keys} keys{scrape}", path.display()));
        return Ok(());
    }
    let text = String::from_utf8_lossy(&bytes);
    let mut report = String::new();
    for problem in &problems {
        report.push_str(&format!("{problem}\n{}", file::excerpt(&text, &problem.origin)));
    }
    say(report.trim_end());
    let noun = if problems.len() == 1 { "problem" } else { "problems" };
    anyhow::bail!("{} has {} {noun}", path.display(), problems.len())
}
