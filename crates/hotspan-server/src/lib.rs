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

mod accept;
mod adhoc;
mod api;
mod app;
pub mod config;
mod connection;
mod decoding;
mod head_limit;
mod listeners;
mod metrics;
mod metrics_text;
mod page;
mod policy;
mod process_metrics;
mod query_counts;
mod receive;
mod request_stream;
mod rpc;
mod scrape;
mod self_tracing;
mod settings;
mod stopping;
mod time_text;
mod typed_address;
mod under_way;
mod warm_up;

pub use app::App;
pub use listeners::{Address, BoundListener, Listeners};
pub use scrape::{ProfileKind, ScrapeJob};
pub use self_tracing::{SelfTracing, SelfTracingSettings};
pub use settings::{LogFilter, LogFormat, LogSettings, LogTextError, Settings};
pub use time_text::{TimeTextError, parse_duration, parse_time, time_as_text};

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use hotspan_lake::StoreClaim;
use self_tracing::{Feed, feed};
use stopping::in_time;
use tokio_util::sync::CancellationToken;
use tracing::info;

/// Runs a server until `stop`: claims the store, binds, opens the store, serves, and finishes what was received.
///
/// `announce` is told the addresses in use as soon as they are bound.
pub fn serve(
    settings: Settings,
    stop: CancellationToken,
    announce: impl FnOnce(&[BoundListener]) + Send + 'static,
) -> BoxFuture<'static, anyhow::Result<()>> {
    serve_traced(settings, stop, announce, None)
}

/// The same for a server that stores what it sees of itself, if `own` is there.
pub fn serve_traced(
    settings: Settings,
    stop: CancellationToken,
    announce: impl FnOnce(&[BoundListener]) + Send + 'static,
    own: Option<SelfTracing>,
) -> BoxFuture<'static, anyhow::Result<()>> {
    run_boxed(settings, stop, Box::new(announce), own)
}

type Announce = Box<dyn FnOnce(&[BoundListener]) + Send>;

/// Futures are compiled where they are awaited: this keeps a whole server out of every crate that runs one.
fn run_boxed(
    settings: Settings,
    stop: CancellationToken,
    announce: Announce,
    own: Option<SelfTracing>,
) -> BoxFuture<'static, anyhow::Result<()>> {
    run(settings, stop, announce, own).boxed()
}

async fn run(
    settings: Settings,
    stop: CancellationToken,
    announce: Announce,
    own: Option<SelfTracing>,
) -> anyhow::Result<()> {
    let app = Arc::new(App::new(settings.clone())?);
    let own = own.map(Feed::new);
    if let Some(own) = &own {
        // The app is new: nobody has set it.
        let _ = app.request_gate.set(own.gate());
    }
    // Before anybody is told an address: a second server on the store has nothing to serve.
    let claim = StoreClaim::new(&settings.store)?;
    let listeners = Listeners::bind(&settings).await?;
    for listener in listeners.bound() {
        info!(role = listener.role.name(), address = %listener.address, "listening");
    }
    announce(listeners.bound());
    app.set_listeners(listeners.bound().to_vec());
    let serving = listeners.serve(&app);
    let warm_up = match app.open(claim).await {
        Ok(warm_up) => warm_up,
        Err(error) => {
            serving.close().await?;
            return Err(error);
        }
    };
    let milliseconds = app.started.elapsed().as_millis() as u64;
    info!(store = %settings.store.display(), version = env!("CARGO_PKG_VERSION"), milliseconds, "ready");
    let scraping = match scrape::start(&app, &stop) {
        Ok(scraping) => scraping,
        Err(error) => {
            stop.cancel();
            serving.close().await?;
            return Err(error);
        }
    };
    let fed = CancellationToken::new();
    let feeding = own.map(|own| tokio::spawn(feed(own, Arc::clone(&app), fed.clone())));
    let warming = tokio::spawn(warm_up::read_ahead(warm_up, Arc::clone(&app), stop.clone()));
    stop.cancelled().await;
    app.begin_stop();
    let grace = settings.shutdown_grace;
    // Requests under way are answered first; then nothing can submit any more, and the lake can close.
    tokio::join!(
        in_time("reading ahead", grace, warming),
        in_time("scraping", grace, tokio::spawn(scraping.join_all())),
        serving.finish_requests(grace),
    );
    fed.cancel();
    if let Some(feeding) = feeding {
        in_time("self-tracing", grace, feeding).await;
    }
    app.close().await;
    // Whoever came until now was told to come back.
    serving.close().await?;
    info!("stopped");
    Ok(())
}
