//! The log: structured lines on standard error, at the level and in the format that the configuration says.

use std::io::IsTerminal;

use hotspan_server::{LogFormat, LogSettings};
use tracing_subscriber::EnvFilter;

/// Starts the log. Called once, before anything is logged.
pub(crate) fn start(settings: &LogSettings) {
    let filter = EnvFilter::new(settings.level.to_string());
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let on_terminal = std::io::stderr().is_terminal();
    let as_text = match settings.format {
        LogFormat::Auto => on_terminal,
        LogFormat::Text => true,
        LogFormat::Json => false,
    };
    if as_text {
        log.compact().with_ansi(on_terminal).init();
    } else {
        log.json().flatten_event(true).init();
    }
}
