//! `hotspan serve`.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use hotspan_server::{Address, BoundListener, Settings, parse_duration};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// Folder of the store; made if it is not there
    #[arg(long, value_name = "DIR", env = "HOTSPAN_STORE", default_value = "hotspan-data")]
    store: PathBuf,
    /// Web page, API, Pyroscope and OTLP: host:port, port 0 for a free one, or off
    #[arg(long, value_name = "ADDR", env = "HOTSPAN_HTTP", default_value = "127.0.0.1:4040")]
    http: Address,
    /// OTLP over gRPC
    #[arg(long, value_name = "ADDR", env = "HOTSPAN_OTLP_GRPC", default_value = "127.0.0.1:4317")]
    otlp_grpc: Address,
    /// OTLP over HTTP
    #[arg(long, value_name = "ADDR", env = "HOTSPAN_OTLP_HTTP", default_value = "127.0.0.1:4318")]
    otlp_http: Address,
    /// Tempo's API
    #[arg(long, value_name = "ADDR", env = "HOTSPAN_TEMPO", default_value = "127.0.0.1:3200")]
    tempo: Address,
    /// Longest time that a request waits for others to share its segment
    #[arg(long, value_name = "TIME", env = "HOTSPAN_FLUSH_INTERVAL", default_value = "250ms", value_parser = duration)]
    flush_interval: Duration,
    /// Age at which young segments are compacted
    #[arg(long, value_name = "TIME", env = "HOTSPAN_COMPACT_AFTER", default_value = "20s", value_parser = duration)]
    compact_after: Duration,
}

fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| format!("{text:?} is not a time; use a number and a unit, such as 250ms or 20s"))
}

/// Runs the server until it is told to stop.
pub(crate) fn run(arguments: ServeArguments) -> anyhow::Result<()> {
    start_logging();
    let mut settings = Settings {
        store: arguments.store,
        http: arguments.http,
        otlp_grpc: arguments.otlp_grpc,
        otlp_http: arguments.otlp_http,
        tempo: arguments.tempo,
        ..Settings::default()
    };
    settings.ingest.flush_interval = arguments.flush_interval;
    settings.compaction.first_level_age = arguments.compact_after;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let stop = CancellationToken::new();
        tokio::spawn(stop_on_signal(stop.clone()));
        hotspan_server::serve(settings, stop, announce).await
    })
}

/// The addresses in use, one a line, on standard output: scripts read them.
#[expect(clippy::print_stdout, reason = "this is the command's output")]
fn announce(bound: &[BoundListener]) {
    for listener in bound {
        println!("{} {}", listener.role.name(), listener.address);
    }
}

async fn stop_on_signal(stop: CancellationToken) {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    stop.cancel();
}

fn start_logging() {
    let filter = EnvFilter::try_from_env("HOTSPAN_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    if std::io::stderr().is_terminal() {
        log.compact().init();
    } else {
        log.json().init();
    }
}
