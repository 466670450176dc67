//! An order service whose slow requests lead to a line of code.
//!
//! ```text
//! POST /api/checkout?items=N   adds up an order; the tax on it is the slow part
//! GET  /api/search?words=N     ranks the catalogue; other code, to tell requests apart by
//! ```
//!
//! Requests go through OpenTelemetry as usual. Which profiler runs beside it is the first argument: see README.md.

mod checkout;
mod head_sampling;
mod profiling;
mod search;
mod tracing;

use std::collections::HashMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Query, State};
use axum::http::HeaderMap;
use axum::routing::{get, post};
use profiling::{Profiling, Tags};

/// A demonstration needs no more than 100,000 of anything.
fn number(query: &HashMap<String, usize>, name: &str) -> usize {
    query.get(name).copied().filter(|number| *number <= 100_000).unwrap_or(20)
}

async fn checkout(
    State(tags): State<Arc<Tags>>,
    headers: HeaderMap,
    Query(query): Query<HashMap<String, usize>>,
) -> String {
    let is_chosen = head_sampling::is_chosen(&headers);
    tracing::in_request("POST /api/checkout", &headers, || {
        let total = checkout::checkout(number(&query, "items"), &|work| tags.around(is_chosen, work));
        format!("{{\"total\": {total}}}\n")
    })
}

async fn search(
    State(tags): State<Arc<Tags>>,
    headers: HeaderMap,
    Query(query): Query<HashMap<String, usize>>,
) -> String {
    let is_chosen = head_sampling::is_chosen(&headers);
    tracing::in_request("GET /api/search", &headers, || {
        let best = search::search(number(&query, "words"), &|work| tags.around(is_chosen, work));
        format!("{{\"best\": \"{best}\"}}\n")
    })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mode = std::env::args().nth(1).unwrap_or_else(|| "hotspan".to_owned());
    let (profiling, tags) = Profiling::start(&mode)?;
    let tracing = tracing::start(&mode)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build()?;
    runtime.block_on(serve(&mode, Arc::new(tags)))?;
    // What is still in memory goes out before the process ends.
    tracing.shutdown()?;
    profiling.stop()
}

async fn serve(mode: &str, tags: Arc<Tags>) -> Result<(), Box<dyn std::error::Error>> {
    let routes = Router::new()
        .route("/api/checkout", post(checkout))
        .route("/api/search", get(search))
        .with_state(tags);
    let port = std::env::var("PORT").unwrap_or_else(|_| "8080".to_owned());
    let listener = tokio::net::TcpListener::bind(format!("127.0.0.1:{port}")).await?;
    println!("order-service listens on http://{}, profiler: {mode}", listener.local_addr()?);
    axum::serve(listener, routes).with_graceful_shutdown(stop_signal()).await?;
    Ok(())
}

async fn stop_signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
