//! The state of the process at a moment, to put on a span.

use crate::heap;
use crate::sampler::clock::process_cpu_ns;
use std::time::Duration;

/// Memory, threads, tasks and CPU time of this process now. Reading it takes about ten microseconds: do it for requests
/// that deserve it, not for every span.
///
/// ```
/// let statistics = hotspan_profiler::RuntimeStatistics::now();
/// for (key, value) in statistics.attributes() {
///     // span.set_attribute(KeyValue::new(key, value));
///     assert!(value >= 0, "{key}");
/// }
/// ```
///
/// With the feature `opentelemetry`, `RuntimeStatisticsProcessor` does that for the first span of each request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RuntimeStatistics {
    /// Memory that is resident.
    pub resident_bytes: u64,
    /// Memory that the heap holds, as heap profiling estimates it; none while that is off.
    pub heap_bytes: Option<u64>,
    /// Threads that exist.
    pub threads: u64,
    /// Tasks of the Tokio runtime that asks; none outside of one, or without the feature `tokio`.
    pub tasks: Option<TaskStatistics>,
    /// CPU time that the process has used.
    pub cpu: Duration,
    /// Page faults that had to read from disk.
    pub major_faults: u64,
    /// Times that the kernel took the processor away.
    pub involuntary_switches: u64,
}

/// The state of a Tokio runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TaskStatistics {
    /// Tasks that have not ended.
    pub alive: u64,
    /// Tasks that wait in the queue of all workers.
    pub queued: u64,
    /// Threads that run them.
    pub workers: u64,
}

#[cfg(feature = "tokio")]
impl TaskStatistics {
    fn of_this_runtime() -> Option<TaskStatistics> {
        let metrics = tokio::runtime::Handle::try_current().ok()?.metrics();
        Some(TaskStatistics {
            alive: metrics.num_alive_tasks() as u64,
            queued: metrics.global_queue_depth() as u64,
            workers: metrics.num_workers() as u64,
        })
    }
}

#[cfg(not(feature = "tokio"))]
impl TaskStatistics {
    fn of_this_runtime() -> Option<TaskStatistics> {
        None
    }
}

impl RuntimeStatistics {
    /// Looks at the process.
    pub fn now() -> RuntimeStatistics {
        // SAFETY: a zeroed rusage is valid and is filled by the call.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(libc::RUSAGE_SELF, &mut usage);
            usage
        };
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim().trim_end_matches(" kB").parse::<u64>().ok()
        };
        RuntimeStatistics {
            resident_bytes: field("VmRSS:").unwrap_or(0) * 1024,
            heap_bytes: heap::in_use(),
            threads: field("Threads:").unwrap_or(0),
            tasks: TaskStatistics::of_this_runtime(),
            cpu: Duration::from_nanos(process_cpu_ns()),
            major_faults: u64::try_from(usage.ru_majflt).unwrap_or(0),
            involuntary_switches: u64::try_from(usage.ru_nivcsw).unwrap_or(0),
        }
    }

    /// What is known, as attributes, named as OpenTelemetry names the metrics of a process.
    pub fn attributes(&self) -> Vec<(&'static str, i64)> {
        let known = [
            ("process.memory.usage", Some(self.resident_bytes)),
            ("process.heap.usage", self.heap_bytes),
            ("process.thread.count", Some(self.threads)),
            ("process.cpu.time_ns", u64::try_from(self.cpu.as_nanos()).ok()),
            ("process.paging.major_faults", Some(self.major_faults)),
            ("process.context_switches.involuntary", Some(self.involuntary_switches)),
            ("tokio.tasks.alive", self.tasks.map(|tasks| tasks.alive)),
            ("tokio.tasks.queued", self.tasks.map(|tasks| tasks.queued)),
            ("tokio.workers", self.tasks.map(|tasks| tasks.workers)),
        ];
        known.into_iter().filter_map(|(key, value)| Some((key, i64::try_from(value?).unwrap_or(i64::MAX)))).collect()
    }
}

#[cfg(feature = "opentelemetry")]
mod processor {
    use super::RuntimeStatistics;
    use opentelemetry::trace::{Span as _, TraceContextExt};
    use opentelemetry::{Context, KeyValue};
    use opentelemetry_sdk::error::OTelSdkResult;
    use opentelemetry_sdk::trace::{Span, SpanData, SpanProcessor};
    use std::time::Duration;

    /// Puts [`RuntimeStatistics`] on the first span of each request, as it starts: add it to the tracer provider.
    #[derive(Debug, Default, Clone, Copy)]
    pub struct RuntimeStatisticsProcessor;

    impl SpanProcessor for RuntimeStatisticsProcessor {
        fn on_start(&self, span: &mut Span, parent: &Context) {
            let is_inner = parent.has_active_span() && !parent.span().span_context().is_remote();
            if !is_inner && span.is_recording() {
                let attributes = RuntimeStatistics::now().attributes();
                span.set_attributes(attributes.into_iter().map(|(key, value)| KeyValue::new(key, value)));
            }
        }

        fn on_end(&self, _span: SpanData) {}

        fn force_flush(&self) -> OTelSdkResult {
            Ok(())
        }

        fn shutdown_with_timeout(&self, _timeout: Duration) -> OTelSdkResult {
            Ok(())
        }
    }
}

#[cfg(feature = "opentelemetry")]
pub use processor::RuntimeStatisticsProcessor;

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: this test program looks at itself.
    /// Guarantee: it has memory, at least one thread, and used some CPU.
    #[test]
    fn a_process_sees_itself() {
        let statistics = RuntimeStatistics::now();
        assert!(statistics.resident_bytes > 100_000 && statistics.threads >= 1 && !statistics.cpu.is_zero());
    }

    /// Scenario: a Tokio runtime with tasks that wait, seen from inside and from outside.
    /// Guarantee: inside, they are counted; outside, there are none.
    #[cfg(feature = "tokio")]
    #[test]
    fn tasks_are_counted_inside_a_runtime() {
        assert_eq!(RuntimeStatistics::now().tasks, None);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
        let tasks: Vec<_> = (0..5).map(|_| runtime.spawn(std::future::pending::<()>())).collect();
        let seen = runtime.block_on(async { RuntimeStatistics::now() });
        assert_eq!(seen.tasks.map(|tasks| (tasks.alive, tasks.workers)), Some((5, 2)));
        assert!(seen.attributes().contains(&("tokio.tasks.alive", 5)));
        drop(tasks);
    }

    /// Scenario: a request with a span inside it, under the processor.
    /// Guarantee: the first span has the statistics, the inner one has not.
    #[cfg(feature = "opentelemetry")]
    #[test]
    fn the_first_span_of_a_request_has_them() {
        use opentelemetry::Context;
        use opentelemetry::trace::{TraceContextExt, Tracer, TracerProvider};
        use opentelemetry_sdk::trace::{Span, SpanData, SpanProcessor};
        use std::sync::{Arc, Mutex};

        #[derive(Debug, Clone, Default)]
        struct Ended(Arc<Mutex<Vec<(String, bool)>>>);
        impl SpanProcessor for Ended {
            fn on_start(&self, _span: &mut Span, _parent: &Context) {}
            fn on_end(&self, span: SpanData) {
                let has = span.attributes.iter().any(|pair| pair.key.as_str() == "process.memory.usage");
                self.0.lock().unwrap().push((span.name.into_owned(), has));
            }
            fn force_flush(&self) -> opentelemetry_sdk::error::OTelSdkResult {
                Ok(())
            }
            fn shutdown_with_timeout(&self, _timeout: Duration) -> opentelemetry_sdk::error::OTelSdkResult {
                Ok(())
            }
        }
        let ended = Ended::default();
        let provider = opentelemetry_sdk::trace::SdkTracerProvider::builder()
            .with_span_processor(RuntimeStatisticsProcessor)
            .with_span_processor(ended.clone())
            .build();
        let tracer = provider.tracer("test");
        let request = Context::new().with_span(tracer.start_with_context("request", &Context::new()));
        drop(tracer.start_with_context("inner", &request));
        drop(request);
        assert_eq!(*ended.0.lock().unwrap(), [("inner".to_owned(), false), ("request".to_owned(), true)]);
    }
}
