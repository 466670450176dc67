//! Which span a thread works on: written on every enter and exit, read by the signal handler of the same thread.
//!
//! ```text
//! OpenTelemetry context --observer--+
//! tracing span ----------layer------+--> SpanRecord --pointer--> otel_thread_ctx_v1 --> signal handler, eBPF profiler
//! anything else --------Ctx::attach-+
//! ```
//!
//! One pointer swap publishes a span. The record behind it is laid out as OTEP 4947 asks, so that a profiler outside
//! the process reads the same memory as ours does inside.

mod ctx;
mod entered;
mod known_spans;
#[cfg(feature = "tracing")]
mod layer;
mod nest;
#[cfg(feature = "opentelemetry")]
mod observer;
mod process_context;
mod record;
mod requests;
mod span_time;
mod thread_slot;

pub use ctx::{Attached, Ctx, CtxGuard};
#[cfg(feature = "tracing")]
pub use layer::{SpanIds, SpanLayer, span_ids};
#[cfg(feature = "opentelemetry")]
pub use observer::{ObserveError, RequestSpanProcessor, observe_opentelemetry};
pub use process_context::thread_context_is_exported;

pub(crate) use process_context::ProcessContext;
pub(crate) use record::{SpanKey, current_span_key};
pub(crate) use requests::{EndedRequest, take_ended_requests, watch_requests};
pub use requests::{RequestOutcome, request_ended};
pub(crate) use span_time::{SpanTime, measure_span_times, take_span_times};
pub(crate) use thread_slot::published_at;
