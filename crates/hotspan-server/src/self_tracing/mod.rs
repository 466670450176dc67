//! The server looks at itself: its requests are traces and its CPU time is profiles of the service `hotspan`, in its
//! own store.
//!
//! ```text
//! request -> middleware -> tracing span -> SpanCollector --+
//!                                                           +--> feed (once a second) --> Ingest
//! CPU timers ------------> hotspan-profiler --> uploads ---+
//! ```
//!
//! No loop can form: only requests from outside make spans, and the feed is none. What it costs is bounded (R5): so many
//! requests a second are traced, buffers have limits, and what does not fit is counted (R4).

mod collector;
mod feed;
mod middleware;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hotspan_profiler::{Profiler, SpanLayer, Symbols};
use tokio::sync::mpsc;
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::registry::LookupSpan;

pub(crate) use feed::{Feed, feed};
pub(crate) use middleware::{RequestGate, trace_request};

use collector::{Finished, SpanCollector};

/// The service under which the server's own data stands.
pub(crate) const SERVICE: &str = "hotspan";
/// The target of the server's own spans: no other span of the process is collected.
pub(crate) const TARGET: &str = "hotspan_self";
/// Uploads of the profiler that may wait for the feed.
const WAITING_UPLOADS: usize = 4;

/// Whether, and how closely, the server looks at itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SelfTracingSettings {
    /// Whether it does at all.
    pub enabled: bool,
    /// Samples per second of CPU time.
    pub cpu_rate: usize,
    /// Requests that are traced in a second at most.
    pub max_requests: usize,
}

impl Default for SelfTracingSettings {
    fn default() -> Self {
        Self { enabled: true, cpu_rate: 20, max_requests: 50 }
    }
}

/// A span inside the request that is being traced; none if it is not.
macro_rules! child_span {
    ($name:literal) => {
        match tracing::Span::current().is_disabled() {
            true => tracing::Span::none(),
            false => tracing::info_span!(target: $crate::self_tracing::TARGET, $name),
        }
    };
}
pub(crate) use child_span;

/// What was not kept.
#[derive(Debug, Default)]
pub(crate) struct SelfTracingCounters {
    /// Requests beyond the limit, which were not traced.
    pub(crate) untraced_requests: AtomicU64,
    /// Spans and profiles for which there was no room.
    pub(crate) dropped: AtomicU64,
    /// Spans and profiles that were stored.
    pub(crate) stored: AtomicU64,
}

impl SelfTracingCounters {
    fn add(counter: &AtomicU64, count: u64) {
        counter.fetch_add(count, Ordering::Relaxed);
    }
}

/// The collecting half, made before the log starts; the server feeds itself from it.
#[derive(Debug)]
pub struct SelfTracing {
    finished: Arc<Finished>,
    uploads: mpsc::Receiver<Vec<u8>>,
    counters: Arc<SelfTracingCounters>,
    max_requests: usize,
    profiler: Option<Profiler>,
}

impl SelfTracing {
    /// Starts to look; `None` if the settings say not to.
    ///
    /// The layer belongs into the process's subscriber. A profiler that can't start is no reason not to serve: then
    /// there are traces only, and the reason is returned for the log.
    pub fn start<S>(
        settings: &SelfTracingSettings,
    ) -> Option<(Self, impl Layer<S> + Send + Sync + 'static, Option<String>)>
    where
        S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
    {
        if !settings.enabled {
            return None;
        }
        let counters = Arc::new(SelfTracingCounters::default());
        let finished = Arc::new(Finished::new(Arc::clone(&counters)));
        let (sender, uploads) = mpsc::channel::<Vec<u8>>(WAITING_UPLOADS);
        let dropped = Arc::clone(&counters);
        let profiler = Profiler::builder(SERVICE)
            // What is set there is for other services on this machine.
            .ignore_environment()
            .tag("service.version", env!("CARGO_PKG_VERSION"))
            .cpu_hertz(u32::try_from(settings.cpu_rate).unwrap_or(u32::MAX))
            // Lines would take the debug information of a large program into memory.
            .symbols(Symbols::Names)
            .on_upload(move |upload| {
                if sender.try_send(upload.to_vec()).is_err() {
                    SelfTracingCounters::add(&dropped.dropped, 1);
                }
            })
            .start();
        let (profiler, problem) = match profiler {
            Ok(profiler) => (Some(profiler), None),
            Err(error) => (None, Some(error.to_string())),
        };
        let only_own = Targets::new().with_target(TARGET, LevelFilter::INFO);
        let layer = SpanLayer::new().and_then(SpanCollector::new(Arc::clone(&finished))).with_filter(only_own);
        let max_requests = settings.max_requests;
        Some((Self { finished, uploads, counters, max_requests, profiler }, layer, problem))
    }
}
