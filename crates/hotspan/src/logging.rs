//! The log: structured lines on standard error, at the level and in the format that the configuration says.

use std::io::IsTerminal;

use hotspan_server::{LogFormat, LogSettings};
use tracing_subscriber::layer::Identity;
use tracing_subscriber::prelude::*;
use tracing_subscriber::{EnvFilter, Layer, Registry, fmt};

/// Starts the log. Called once, before anything is logged.
pub(crate) fn start(settings: &LogSettings) {
    start_with(settings, None::<Identity>);
}

/// Starts the log, and what else listens to the process's spans.
pub(crate) fn start_with(settings: &LogSettings, own: Option<impl Layer<Registry> + Send + Sync + 'static>) {
    let filter = EnvFilter::new(settings.level.to_string());
    let on_terminal = std::io::stderr().is_terminal();
    let as_text = match settings.format {
        LogFormat::Auto => on_terminal,
        LogFormat::Text => true,
        LogFormat::Json => false,
    };
    let log = fmt::layer().with_writer(std::io::stderr);
    let log = if as_text {
        log.compact().with_ansi(on_terminal).with_filter(filter).boxed()
    } else {
        // A line names the request that it belongs to once, not the whole way to it as well.
        log.json().flatten_event(true).with_span_list(false).with_filter(filter).boxed()
    };
    tracing_subscriber::registry().with(own).with(log).init();
}
