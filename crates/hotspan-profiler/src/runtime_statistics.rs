//! The state of the process at a moment, to put on a span.

use crate::sampler::clock::process_cpu_ns;
use std::time::Duration;

/// Memory, threads and CPU time of this process now. Reading it takes about ten microseconds: do it for requests that
/// deserve it, not for every span.
///
/// ```
/// let statistics = hotspan_profiler::RuntimeStatistics::now();
/// for (key, value) in statistics.attributes() {
///     // span.set_attribute(KeyValue::new(key, value));
///     assert!(value >= 0, "{key}");
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RuntimeStatistics {
    /// Memory that is resident.
    pub resident_bytes: u64,
    /// Threads that exist.
    pub threads: u64,
    /// CPU time that the process has used.
    pub cpu: Duration,
    /// Page faults that had to read from disk.
    pub major_faults: u64,
    /// Times that the kernel took the processor away.
    pub involuntary_switches: u64,
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
            threads: field("Threads:").unwrap_or(0),
            cpu: Duration::from_nanos(process_cpu_ns()),
            major_faults: u64::try_from(usage.ru_majflt).unwrap_or(0),
            involuntary_switches: u64::try_from(usage.ru_nivcsw).unwrap_or(0),
        }
    }

    /// The same as attributes, named as OpenTelemetry names the metrics of a process.
    pub fn attributes(&self) -> [(&'static str, i64); 5] {
        let whole = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        [
            ("process.memory.usage", whole(self.resident_bytes)),
            ("process.thread.count", whole(self.threads)),
            ("process.cpu.time_ns", i64::try_from(self.cpu.as_nanos()).unwrap_or(i64::MAX)),
            ("process.paging.major_faults", whole(self.major_faults)),
            ("process.context_switches.involuntary", whole(self.involuntary_switches)),
        ]
    }
}

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
}
