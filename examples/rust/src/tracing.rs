//! OpenTelemetry. OTEL_EXPORTER_OTLP_ENDPOINT says where spans go, http://localhost:4318 by default.

use axum::http::HeaderMap;
use hotspan_profiler::RequestSpanProcessor;
use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::{SpanKind, TraceContextExt, Tracer};
use opentelemetry::{Context, global};
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};

use crate::head_sampling::profile_share;

pub fn service_name() -> String {
    std::env::var("OTEL_SERVICE_NAME").unwrap_or_else(|_| "order-service".to_owned())
}

pub fn start(mode: &str) -> Result<SdkTracerProvider, Box<dyn std::error::Error>> {
    let exporter = SpanExporter::builder().with_http().build()?;
    let resource = Resource::builder().with_service_name(service_name()).build();
    let mut provider = SdkTracerProvider::builder().with_resource(resource).with_batch_exporter(exporter);
    if mode == "hotspan" {
        // The profiler keeps the samples of sampled traces: here is decided which these are.
        let sampler = Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(profile_share())));
        provider = provider.with_sampler(sampler).with_span_processor(RequestSpanProcessor);
    }
    let provider = provider.build();
    global::set_tracer_provider(provider.clone());
    Ok(provider)
}

/// Runs `work` in the server span of a request, child of whoever sent it.
pub fn in_request<T>(name: &'static str, headers: &HeaderMap, work: impl FnOnce() -> T) -> T {
    let parent = TraceContextPropagator::new().extract(&Headers(headers));
    let tracer = global::tracer("order-service");
    let builder = tracer.span_builder(name).with_kind(SpanKind::Server);
    within(parent.with_span(tracer.build_with_context(builder, &parent)), work)
}

pub fn in_span<T>(name: &'static str, work: impl FnOnce() -> T) -> T {
    let span = global::tracer("order-service").start(name);
    within(Context::current_with_span(span), work)
}

fn within<T>(context: Context, work: impl FnOnce() -> T) -> T {
    let attached = context.clone().attach();
    let result = work();
    drop(attached);
    context.span().end();
    result
}

struct Headers<'a>(&'a HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(|name| name.as_str()).collect()
    }
}
