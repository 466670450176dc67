//! A small service with axum, tracing and OpenTelemetry, whose samples know their spans.
//!
//! `cargo run -p hotspan-profiler --features opentelemetry --example axum_service`, then
//! `curl localhost:3000/orders/30`. Profiles go to `OTEL_EXPORTER_OTLP_ENDPOINT`, or to localhost:4318.

use axum::{Router, extract::Path, routing::get};
use hotspan_profiler::{Profiler, RequestSpanProcessor, observe_opentelemetry};
use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;
use std::error::Error;
use tracing::instrument;
use tracing_subscriber::prelude::*;

#[instrument]
async fn order(Path(number): Path<u32>) -> String {
    let total = calculate_totals(number.min(35));
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    format!("{total}\n")
}

#[instrument]
fn calculate_totals(number: u32) -> u64 {
    fn fibonacci(n: u32) -> u64 {
        if n < 2 { u64::from(n) } else { fibonacci(n - 1) + fibonacci(n - 2) }
    }
    fibonacci(number)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // 1. Before the first span: let the profiler see OpenTelemetry's contexts.
    observe_opentelemetry()?;
    // 2. Tracing as usual. A span exporter (such as opentelemetry-otlp's) goes where the processor is.
    let provider = SdkTracerProvider::builder().with_span_processor(RequestSpanProcessor).build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("order-service"));
    tracing_subscriber::registry().with(layer).init();
    // 3. The profiler, for as long as it is held.
    let _profiler = Profiler::builder("order-service").endpoint("http://localhost:4318").start()?;

    let service = Router::new().route("/orders/{number}", get(order));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    axum::serve(listener, service).await?;
    Ok(())
}
