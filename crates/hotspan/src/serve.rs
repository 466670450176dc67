//! `hotspan serve`.

use std::io::IsTerminal;
use std::path::PathBuf;

use clap::Args;
use hotspan_server::{Address, BoundListener, Settings};
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
}

/// Runs the server until it is told to stop.
pub(crate) fn run(arguments: ServeArguments) -> anyhow::Result<()> {
    start_logging();
    let settings = Settings {
        store: arguments.store,
        http: arguments.http,
        otlp_grpc: arguments.otlp_grpc,
        otlp_http: arguments.otlp_http,
        tempo: arguments.tempo,
        ..Settings::default()
    };
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
