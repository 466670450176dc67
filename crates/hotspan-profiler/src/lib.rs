//! A profiler for Rust services whose every sample knows its span.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let _profiler = hotspan_profiler::Profiler::builder("order-service").endpoint("http://localhost:4318").start()?;
//! # Ok(())
//! # }
//! ```
//!
//! That is all: every thread of the process is sampled by its own CPU timer, without frame pointers, build flags or
//! per-thread code. To link samples to spans, add one of:
//!
//! - feature `opentelemetry`: `observe_opentelemetry()` before the first span starts;
//! - feature `tracing`: `SpanLayer` in the subscriber;
//! - neither: [`Ctx`] by hand.
//!
//! # How it works
//!
//! ```text
//! sampler/    timers, signal handler, unwinding     one ring per thread, no locks, no allocation in the handler
//! context/    which span a thread works on          one pointer per thread, readable from outside too (OTEP 4947)
//! aggregate/  sums by stack, span and thread        requests decided when they end, totals always exact
//! symbols/    names and lines                       from the program's own file, in the background
//! export/     OTLP profiles v1.10, Pyroscope push   bounded queue, never blocks the service
//! control/    rate by load, policy, HTTP            changes are recorded, weights keep totals unbiased
//! ```
//!
//! # What it never does
//!
//! Allocate, lock, call the loader or libgcc, or read unmapped memory inside the signal handler; block the service for
//! an upload; drop a sample without counting it.

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
compile_error!("hotspan-profiler runs on Linux on x86_64 and aarch64");

mod aggregate;
mod config;
mod context;
mod control;
mod doorbell;
mod export;
mod heap;
mod mailbox;
mod monitor;
mod profiler;
mod random;
mod redact;
mod runtime_statistics;
mod sampler;
mod status;
mod symbols;
pub mod sync;
mod thread_word;
mod timed_stream;

pub use aggregate::Conditions;
pub use config::{Adaptive, Config, ConfigError, ControlEndpoint, PolicySource, from_environment};
pub use context::{Attached, Ctx, CtxGuard, RequestOutcome, request_ended, thread_context_is_exported};
#[cfg(feature = "opentelemetry")]
pub use context::{ObserveError, RequestSpanProcessor, observe_opentelemetry};
#[cfg(feature = "tracing")]
pub use context::{SpanIds, SpanLayer, span_ids};
pub use control::rate::{RateChange, RateReason};
pub use export::{Compression, Destination, UploadReceiver};
pub use heap::HeapProfiler;
pub use profiler::{Profiler, ProfilerBuilder, StartError};
pub use redact::Redaction;
#[cfg(feature = "opentelemetry")]
pub use runtime_statistics::RuntimeStatisticsProcessor;
pub use runtime_statistics::{RuntimeStatistics, TaskStatistics};
pub use sampler::SamplingMode;
pub use status::Status;
pub use symbols::{ElfSymbols, SourceFrame, Symbols};
pub use timed_stream::TimedStream;

/// The README's examples, compiled as tests.
#[cfg(all(doctest, feature = "opentelemetry"))]
#[doc = include_str!("../README.md")]
struct Readme;
