//! The server: listeners, receivers, APIs and the web page over one lake.
//!
//! ```text
//! socket -> listeners -> rpc / receive -> Ingest -> lake
//!              scrape  ------------------> Ingest
//!                     -> api           -> Engine -> lake
//!                     -> page
//! ```
//!
//! A request that comes before the store is open, or while it closes, gets an answer that senders retry.

mod api;
mod app;
pub mod config;
mod listeners;
mod metrics;
mod page;
mod query_counts;
mod receive;
mod rpc;
mod scrape;
mod settings;
mod time_text;

pub use app::App;
pub use listeners::{Address, BoundListener, Listeners};
pub use scrape::{ProfileKind, ScrapeJob};
pub use settings::{LogFilter, LogFormat, LogSettings, LogTextError, Settings};
pub use time_text::{TimeTextError, parse_duration, parse_time, time_as_text};

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tracing::info;

/// Runs a server until `stop`: binds, opens the store, serves, and finishes what was received.
///
/// `announce` is told the addresses in use as soon as they are bound.
pub async fn serve(
    settings: Settings,
    stop: CancellationToken,
    announce: impl FnOnce(&[BoundListener]),
) -> anyhow::Result<()> {
    let app = Arc::new(App::new(settings.clone()));
    let listeners = Listeners::bind(&settings).await?;
    for listener in listeners.bound() {
        info!(role = listener.role.name(), address = %listener.address, "listening");
    }
    announce(listeners.bound());
    app.set_listeners(listeners.bound().to_vec());
    let serving = tokio::spawn(listeners.serve(Arc::clone(&app), stop.clone()));
    let opened = app.open().await;
    if let Err(error) = opened {
        stop.cancel();
        serving.await??;
        return Err(error);
    }
    let milliseconds = app.started.elapsed().as_millis() as u64;
    info!(store = %settings.store.display(), version = env!("CARGO_PKG_VERSION"), milliseconds, "ready");
    let scraping = match scrape::start(&app, &stop) {
        Ok(scraping) => scraping,
        Err(error) => {
            stop.cancel();
            serving.await??;
            return Err(error);
        }
    };
    stop.cancelled().await;
    app.begin_stop();
    scraping.join_all().await;
    // Requests under way are answered first; then nothing can submit any more, and the lake can close.
    serving.await??;
    app.close().await;
    info!("stopped");
    Ok(())
}
