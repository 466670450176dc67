//! `hotspan serve`.

use std::time::{Duration, Instant};

use clap::Args;
use hotspan_server::{BoundListener, SelfTracing};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::config::{ConfigFlags, load};
use crate::logging;
use crate::screen::say;

/// How long threads may still work once the store is closed.
pub(crate) const LEFT_BEHIND: Duration = Duration::from_secs(2);

/// For how long a signal that comes again is the same one.
const SAME_SIGNAL: Duration = Duration::from_millis(300);

/// What a shell calls the end by an interrupt.
const ENDED_BY_SIGNAL: i32 = 130;

#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    #[command(flatten)]
    flags: ConfigFlags,
}

/// Runs the server until it is told to stop.
pub(crate) fn run(arguments: ServeArguments) -> anyhow::Result<()> {
    crate::allocator::keep_freed_memory_for_a_while();
    crate::allocator::take_memory_in_advance();
    let loaded = load(&arguments.flags.into())?;
    let settings = loaded.config.settings;
    let (own, layer, problem) = match SelfTracing::start(&settings.self_tracing) {
        Some((own, layer, problem)) => (Some(own), Some(layer), problem),
        None => (None, None, None),
    };
    logging::start_with(&settings.log, layer);
    if let Some(problem) = problem {
        warn!(problem, "the server does not profile itself");
    }
    if let Some(folder) = settings.source.as_ref().filter(|folder| !folder.is_dir()) {
        warn!(folder = %folder.display(), "there is no folder of source code where `source` says; no code is shown beside lines");
    }
    for warning in &loaded.warnings {
        warn!("{warning}");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let served = runtime.block_on(async {
        let stop = CancellationToken::new();
        tokio::spawn(stop_on_signal(stop.clone()));
        hotspan_server::serve_traced(settings, stop, announce, own).await
    });
    runtime.shutdown_timeout(LEFT_BEHIND);
    served
}

/// The addresses in use, one a line, on standard output: scripts read them.
fn announce(bound: &[BoundListener]) {
    for listener in bound {
        say(&format!("{} {}", listener.role.name(), listener.address));
    }
}

async fn stop_on_signal(stop: CancellationToken) {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return;
    };
    let mut next_signal = async || {
        tokio::select! {
            _ = interrupt.recv() => "SIGINT",
            _ = terminate.recv() => "SIGTERM",
        }
    };
    let signal = next_signal().await;
    info!(signal, "stopping; a second signal ends at once");
    stop.cancel();
    // Whoever passes a signal on to its children sends it beside the terminal, or twice: that is still the first.
    let told_at = Instant::now();
    let mut signal = next_signal().await;
    while told_at.elapsed() < SAME_SIGNAL {
        signal = next_signal().await;
    }
    // What was acknowledged is on disk: only senders that still wait have to send again.
    warn!(signal, "ended without waiting for requests under way");
    std::process::exit(ENDED_BY_SIGNAL);
}
