//! What the profiler says about itself: what it saw, what it lost, what it cost.

use crate::control::rate::RateChange;
use crate::sampler::SamplingMode;
use std::time::{Duration, UNIX_EPOCH};

/// A look at the profiler. Counters grow from the start of the process's profiler; none is ever reset.
#[derive(Debug, Clone, PartialEq)]
pub struct Status {
    /// Whether samples are being taken.
    pub running: bool,
    /// How CPU samples are taken.
    pub mode: SamplingMode,
    /// CPU samples per second of CPU time and thread, now.
    pub hertz: u32,
    /// Threads with a timer of their own.
    pub threads: usize,
    /// Samples of all types.
    pub samples: u64,
    /// Samples that know their span.
    pub linked_samples: u64,
    /// CPU time that CPU samples stand for.
    pub sampled_cpu: Duration,
    /// CPU time that the process used while sampling: what `sampled_cpu` should come to.
    pub process_cpu: Duration,
    /// Samples lost because a ring was full.
    pub dropped_samples: u64,
    /// What those samples stood for, in the unit of their type.
    pub dropped_weight: u64,
    /// Stacks cut at the depth limit.
    pub truncated_stacks: u64,
    /// Samples of which only the leaf is known.
    pub leaf_only_stacks: u64,
    /// Profiling signals that were not ours and went to the previous handler.
    pub foreign_signals: u64,
    /// Another profiler has taken the signal since, and ours has withdrawn.
    pub displaced: bool,
    /// CPU time inside the signal handler.
    pub handler_cpu: Duration,
    /// CPU time of the monitor thread.
    pub monitor_cpu: Duration,
    /// CPU time of the export thread.
    pub export_cpu: Duration,
    /// Uploads that arrived.
    pub delivered_uploads: u64,
    /// Uploads given up, or pushed out of the full queue.
    pub dropped_uploads: u64,
    /// Attempts beyond the first.
    pub upload_retries: u64,
    /// Bytes delivered, before compression.
    pub uploaded_bytes: u64,
    /// What went wrong last, if anything did.
    pub last_error: Option<String>,
    /// What was asked for and cannot be had here, in words.
    pub remarks: Vec<String>,
    /// Requests whose samples were kept in full.
    pub kept_requests: u64,
    /// Requests whose samples were folded into the aggregate.
    pub folded_requests: u64,
    /// Requests folded because their end was not seen in time.
    pub undecided_requests: u64,
    /// Ends of requests and times of spans that had no room.
    pub dropped_span_events: u64,
    /// Sampled allocations that could not be followed.
    pub forgotten_allocations: u64,
    /// Times that a thread's rate was raised because it works on a request that runs long.
    pub slow_request_boosts: u64,
    /// Changes of the rate, the latest last.
    pub rate_changes: Vec<RateChange>,
}

impl Status {
    pub(crate) fn new(mode: SamplingMode) -> Status {
        Status {
            running: false,
            mode,
            hertz: 0,
            threads: 0,
            samples: 0,
            linked_samples: 0,
            sampled_cpu: Duration::ZERO,
            process_cpu: Duration::ZERO,
            dropped_samples: 0,
            dropped_weight: 0,
            truncated_stacks: 0,
            leaf_only_stacks: 0,
            foreign_signals: 0,
            displaced: false,
            handler_cpu: Duration::ZERO,
            monitor_cpu: Duration::ZERO,
            export_cpu: Duration::ZERO,
            delivered_uploads: 0,
            dropped_uploads: 0,
            upload_retries: 0,
            uploaded_bytes: 0,
            last_error: None,
            remarks: Vec::new(),
            kept_requests: 0,
            folded_requests: 0,
            undecided_requests: 0,
            dropped_span_events: 0,
            forgotten_allocations: 0,
            slow_request_boosts: 0,
            rate_changes: Vec::new(),
        }
    }

    /// The profiler's own CPU time as a percentage of the process's.
    pub fn overhead_percent(&self) -> f64 {
        let own = self.handler_cpu + self.monitor_cpu + self.export_cpu;
        if self.process_cpu.is_zero() { 0.0 } else { 100.0 * own.as_secs_f64() / self.process_cpu.as_secs_f64() }
    }

    /// The status as a JSON object.
    pub fn to_json(&self) -> String {
        let mut fields: Vec<String> = Vec::new();
        let mut number = |name: &str, value: u64| fields.push(format!("\"{name}\":{value}"));
        number("hertz", u64::from(self.hertz));
        number("threads", self.threads as u64);
        number("samples", self.samples);
        number("linked_samples", self.linked_samples);
        number("sampled_cpu_ns", nanos(self.sampled_cpu));
        number("process_cpu_ns", nanos(self.process_cpu));
        number("dropped_samples", self.dropped_samples);
        number("dropped_weight", self.dropped_weight);
        number("truncated_stacks", self.truncated_stacks);
        number("leaf_only_stacks", self.leaf_only_stacks);
        number("foreign_signals", self.foreign_signals);
        number("handler_cpu_ns", nanos(self.handler_cpu));
        number("monitor_cpu_ns", nanos(self.monitor_cpu));
        number("export_cpu_ns", nanos(self.export_cpu));
        number("delivered_uploads", self.delivered_uploads);
        number("dropped_uploads", self.dropped_uploads);
        number("upload_retries", self.upload_retries);
        number("uploaded_bytes", self.uploaded_bytes);
        number("kept_requests", self.kept_requests);
        number("folded_requests", self.folded_requests);
        number("undecided_requests", self.undecided_requests);
        number("dropped_span_events", self.dropped_span_events);
        number("forgotten_allocations", self.forgotten_allocations);
        number("slow_request_boosts", self.slow_request_boosts);
        fields.push(format!("\"running\":{}", self.running));
        fields.push(format!("\"displaced\":{}", self.displaced));
        fields.push(format!("\"mode\":\"{}\"", self.mode.as_str()));
        fields.push(format!("\"overhead_percent\":{:.4}", self.overhead_percent()));
        fields.push(format!("\"last_error\":{}", self.last_error.as_deref().map_or("null".into(), quoted)));
        let remarks: Vec<String> = self.remarks.iter().map(|remark| quoted(remark)).collect();
        fields.push(format!("\"remarks\":[{}]", remarks.join(",")));
        let changes: Vec<String> = self.rate_changes.iter().map(change_json).collect();
        fields.push(format!("\"rate_changes\":[{}]", changes.join(",")));
        format!("{{{}}}", fields.join(","))
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn change_json(change: &RateChange) -> String {
    let at = change.at.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    let (from, to, reason) = (change.from_hertz, change.to_hertz, change.reason.as_str());
    format!(r#"{{"at_unix_ms":{at},"from_hertz":{from},"to_hertz":{to},"reason":"{reason}"}}"#)
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: a status whose error holds quotes and a line break.
    /// Guarantee: the JSON stays well-formed, and our own reader understands it.
    #[test]
    fn the_status_is_json() {
        let status =
            Status { last_error: Some("a \"b\"\nc".into()), samples: 7, ..Status::new(SamplingMode::ClocksOnly) };
        let json = status.to_json();
        assert!(json.contains(r#""last_error":"a \"b\"\u000ac""#), "{json}");
        assert!(json.contains(r#""samples":7"#) && json.contains(r#""mode":"clocks_only""#));
    }
}
