//! Instructions per span enter and exit, and per allocation and free, for counting under valgrind:
//!
//! `valgrind --tool=cachegrind --cache-sim=no --cachegrind-out-file=/dev/null target/release/examples/span_cost MODE N`
//!
//! Run each mode with N and 2 N; the difference divided by N is the cost of one pair. `benches/span_cost.sh` does that.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use hotspan_profiler::{Ctx, HeapProfiler};
use std::alloc::{GlobalAlloc, Layout};
use std::hint::black_box;

fn allocate_and_free(allocator: &impl GlobalAlloc, rounds: u64) {
    let layout = Layout::new::<[u64; 8]>();
    for _ in 0..rounds {
        // SAFETY: the layout is not empty, and what is allocated is freed with the same one.
        unsafe { allocator.dealloc(black_box(allocator.alloc(black_box(layout))), layout) };
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mode = arguments.next().unwrap_or_default();
    let rounds: u64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(100_000);
    match mode.as_str() {
        "empty" => (0..rounds).for_each(|round| {
            black_box(round);
        }),
        "ctx" => {
            let ctx = Ctx::for_request([1; 16], [2; 8]);
            for _ in 0..rounds {
                black_box(&ctx.attach());
            }
        }
        "alloc" => allocate_and_free(&std::alloc::System, rounds),
        "alloc-profiled" => allocate_and_free(&HeapProfiler::system(), rounds),
        #[cfg(feature = "opentelemetry")]
        "otel" | "otel-observed" => {
            use opentelemetry::Context;
            use opentelemetry::trace::{TraceContextExt, Tracer, TracerProvider};
            if mode == "otel-observed" {
                hotspan_profiler::observe_opentelemetry().unwrap();
            }
            let provider = opentelemetry_sdk::trace::SdkTracerProvider::builder().build();
            let context = Context::new().with_span(provider.tracer("cost").start("span"));
            for _ in 0..rounds {
                black_box(&context.clone().attach());
            }
        }
        #[cfg(feature = "tracing")]
        "tracing" | "tracing-empty-layer" | "tracing-layer" => {
            use tracing_subscriber::prelude::*;
            /// What any layer costs, whatever it does.
            struct Empty;
            impl<S: tracing::Subscriber> tracing_subscriber::Layer<S> for Empty {
                fn on_enter(&self, id: &tracing::Id, _context: tracing_subscriber::layer::Context<'_, S>) {
                    black_box(id);
                }
                fn on_exit(&self, id: &tracing::Id, _context: tracing_subscriber::layer::Context<'_, S>) {
                    black_box(id);
                }
            }
            match mode.as_str() {
                "tracing-layer" => tracing_subscriber::registry().with(hotspan_profiler::SpanLayer::new()).init(),
                "tracing-empty-layer" => tracing_subscriber::registry().with(Empty).init(),
                _ => tracing_subscriber::registry().init(),
            }
            let span = tracing::info_span!("span");
            for _ in 0..rounds {
                black_box(&span.enter());
            }
        }
        other => eprintln!(
            "no mode `{other}`: empty, ctx, alloc, alloc-profiled, otel, otel-observed, tracing, \
             tracing-empty-layer, tracing-layer"
        ),
    }
}
