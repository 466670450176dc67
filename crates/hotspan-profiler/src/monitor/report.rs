//! What the profiler says of itself: what it has seen, what it costs, what it lacks.

use super::Monitor;
use crate::heap;
use crate::sampler::clock::{process_cpu_ns, thread_cpu_ns};
use crate::status::Status;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

impl Monitor<'_> {
    /// What was asked for and cannot be had.
    pub(super) fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.running && self.wants_memory() && !heap::is_installed() {
            let remark = "memory is not profiled: the program's #[global_allocator] is no HeapProfiler";
            remarks.push(remark.to_owned());
        }
        let threads = self.sampler.unsampled_threads();
        if threads > 0 {
            remarks.push(format!(
                "{threads} threads have the profiling signal blocked: their CPU time is told without stacks and spans"
            ));
        }
        remarks
    }

    pub(super) fn handler_cpu_ns(&self) -> u64 {
        (self.sampler.counts().handler_ticks as f64 * self.scale.nanos_per_tick()) as u64
    }

    /// What the profiler costs, but for the wall clock, whose rate is as it was asked for: to sample the CPU less often
    /// would not make that any cheaper.
    pub(super) fn cpu_sampling_ns(&self) -> u64 {
        let own = self.handler_cpu_ns() + thread_cpu_ns() + self.uploader.counters().cpu_ns.load(Ordering::Relaxed);
        let wall_handlers = (self.sampler.counts().wall_ticks as f64 * self.scale.nanos_per_tick()) as u64;
        own.saturating_sub(wall_handlers + self.wall_sending_ns)
    }

    pub(super) fn post_status(&self) {
        let counts = self.sampler.counts();
        let (samples, requests) = self.aggregator.counts();
        let uploads = self.uploader.counters();
        let running_cpu = if self.running { process_cpu_ns().saturating_sub(self.cpu_when_started) } else { 0 };
        let upload_error = uploads.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let status = Status {
            running: self.running,
            mode: self.sampler.mode(),
            hertz: if self.running && self.cpu_period() > 0 { self.rate.hertz() } else { 0 },
            threads: counts.threads,
            samples: samples.samples,
            linked_samples: samples.linked_samples,
            sampled_cpu: Duration::from_nanos(samples.cpu_ns),
            process_cpu: Duration::from_nanos(self.cpu_while_running + running_cpu),
            dropped_samples: counts.dropped_samples,
            dropped_weight: counts.dropped_weight,
            truncated_stacks: samples.truncated_stacks,
            leaf_only_stacks: samples.leaf_only_stacks,
            foreign_signals: counts.foreign_signals,
            displaced: self.displaced,
            handler_cpu: Duration::from_nanos(self.handler_cpu_ns()),
            monitor_cpu: Duration::from_nanos(thread_cpu_ns()),
            export_cpu: Duration::from_nanos(uploads.cpu_ns.load(Ordering::Relaxed)),
            delivered_uploads: uploads.delivered.load(Ordering::Relaxed),
            dropped_uploads: uploads.dropped.load(Ordering::Relaxed),
            upload_retries: uploads.retries.load(Ordering::Relaxed),
            uploaded_bytes: uploads.bytes.load(Ordering::Relaxed),
            remarks: self.remarks(),
            last_error: self.policy_error.clone().or(upload_error),
            kept_requests: requests.kept_requests,
            folded_requests: requests.folded_requests,
            undecided_requests: requests.undecided_requests,
            dropped_span_events: self.dropped_span_events,
            forgotten_allocations: heap::forgotten_allocations(),
            slow_request_boosts: self.slow_request_boosts,
            rate_changes: self.rate.changes().to_vec(),
        };
        self.mailbox.post(status);
    }
}
