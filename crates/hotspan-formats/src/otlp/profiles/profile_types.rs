//! What a profile measures: from OTLP's pair of value types to the five-part type.
//!
//! Well-known sample types get the names that Pyroscope's own SDKs give them, so that one query finds the CPU time
//! of a service however it was sent. Any other is named after its period type as in Pyroscope's OTLP endpoint, or
//! after itself, so that a type nobody has heard of is kept as well.

use hotspan_model::ProfileType;

/// A type and a unit, as the wire has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ValueType<'t> {
    pub(super) kind: &'t str,
    pub(super) unit: &'t str,
}

impl ValueType<'_> {
    fn is(&self, kind: &str, unit: &str) -> bool {
        self.kind == kind && spelled_out(self.unit) == unit
    }

    /// Whether this counts on-CPU time itself, not samples of it.
    pub(super) fn is_cpu_time(&self) -> bool {
        self.is("cpu", "nanoseconds")
    }

    /// Whether this counts samples, which a period turns into time.
    pub(super) fn is_sample_count(&self) -> bool {
        self.is("samples", "count")
    }
}

/// The profile type, and what each value is to be multiplied by.
///
/// `has_cpu_time` says that the same measurement comes as CPU time too, as from Go's profiler: then the samples
/// stay samples, or every second would count twice.
pub(super) fn resolve(
    sample: ValueType<'_>,
    period_type: ValueType<'_>,
    period: i64,
    has_cpu_time: bool,
) -> (ProfileType, i64) {
    if sample.is_sample_count() && period_type.is_cpu_time() {
        return if period > 0 && !has_cpu_time {
            (ProfileType::cpu(), period)
        } else {
            (ProfileType::from_parts(["process_cpu", "samples", "count", "cpu", "nanoseconds"]), 1)
        };
    }
    let unit = spelled_out(sample.unit);
    // async-profiler names samples and period after its timer, and where the kernel counts for it, after that: a period in time
    // is then one of a clock.
    if unit == "count" && period > 0 && period_type.is(sample.kind, "nanoseconds") {
        match sample.kind {
            "cpu" | "itimer" | "ctimer" | "perf_events" | "cpu-clock" => return (ProfileType::cpu(), period),
            "wall" => return (ProfileType::from_parts(["wall", "wall", "nanoseconds", "wall", "nanoseconds"]), period),
            _ => {}
        }
    }
    let parts = match (sample.kind, unit) {
        ("cpu" | "itimer" | "ctimer" | "perf_events" | "cpu-clock", "nanoseconds") => {
            ["process_cpu", "cpu", "nanoseconds", "cpu", "nanoseconds"]
        }
        ("off_cpu", "nanoseconds") => ["off_cpu", "off_cpu", "nanoseconds", "", ""],
        ("wall", "nanoseconds") => ["wall", "wall", "nanoseconds", "wall", "nanoseconds"],
        ("goroutine" | "goroutines", "count") => ["goroutine", "goroutine", "count", "goroutine", "count"],
        ("alloc_objects" | "inuse_objects", "count") | ("alloc_space" | "inuse_space", "bytes") => {
            ["memory", sample.kind, unit, "space", "bytes"]
        }
        _ => {
            let kind = first_of([sample.kind, period_type.kind, "unknown"]);
            let name = first_of([period_type.kind, sample.kind, "unknown"]);
            [name, kind, unit, period_type.kind, spelled_out(period_type.unit)]
        }
    };
    let mut profile_type = ProfileType::from_parts(parts);
    let ProfileType { name, sample_type, sample_unit, period_type, period_unit } = &mut profile_type;
    for part in [name, sample_type, sample_unit, period_type, period_unit] {
        // A colon inside a part would make the five-part text unreadable.
        if part.contains(':') {
            *part = part.replace(':', "_");
        }
    }
    (profile_type, 1)
}

fn first_of(texts: [&str; 3]) -> &str {
    texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default()
}

/// OpenTelemetry's units are abbreviated, those of pprof are not.
fn spelled_out(unit: &str) -> &str {
    match unit {
        "ns" => "nanoseconds",
        "By" | "B" => "bytes",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(sample: (&str, &str), period: (&str, &str), length: i64, has_cpu_time: bool) -> (String, i64) {
        let [sample, period] = [sample, period].map(|(kind, unit)| ValueType { kind, unit });
        let (profile_type, scale) = resolve(sample, period, length, has_cpu_time);
        (profile_type.to_string(), scale)
    }

    /// Scenario: types as the eBPF profiler, async-profiler with each of its engines, Go through a collector, SDKs and nobody in
    /// particular send them.
    /// Guarantee: each gets the name that queries use, and none an empty one.
    #[test]
    fn names() {
        let cpu = "process_cpu:cpu:nanoseconds:cpu:nanoseconds".to_owned();
        let period = ("cpu", "nanoseconds");
        assert_eq!(text(("samples", "count"), period, 50_000_000, false), (cpu.clone(), 50_000_000));
        let counted = ("process_cpu:samples:count:cpu:nanoseconds".to_owned(), 1);
        assert_eq!(text(("samples", "count"), period, 10_000_000, true), counted);
        assert_eq!(text(("samples", "count"), period, 0, false), counted);
        assert_eq!(text(("cpu", "ns"), ("", ""), 0, false), (cpu.clone(), 1));
        assert_eq!(text(("itimer", "count"), ("itimer", "ns"), 10_000_000, false), (cpu.clone(), 10_000_000));
        for clock in ["perf_events", "cpu-clock"] {
            assert_eq!(text((clock, "count"), (clock, "ns"), 10_000_000, false), (cpu.clone(), 10_000_000));
            assert_eq!(text((clock, "ns"), ("", ""), 0, false), (cpu.clone(), 1));
        }
        let misses = "perf_events:perf_events:count:perf_events:count".to_owned();
        assert_eq!(text(("perf_events", "count"), ("perf_events", "count"), 1000, false), (misses, 1));
        let wall = text(("wall", "count"), ("wall", "ns"), 7, false);
        assert_eq!(wall, ("wall:wall:nanoseconds:wall:nanoseconds".to_owned(), 7));
        assert_eq!(text(("off_cpu", "nanoseconds"), ("", ""), 0, false).0, "off_cpu:off_cpu:nanoseconds::");
        assert_eq!(
            text(("inuse_space", "By"), ("space", "bytes"), 512, false).0,
            "memory:inuse_space:bytes:space:bytes"
        );
        assert_eq!(
            text(("delay", "ms"), ("contentions", "count"), 1, false).0,
            "contentions:delay:ms:contentions:count"
        );
        assert_eq!(text(("cache:misses", "count"), ("", ""), 0, false).0, "cache_misses:cache_misses:count::");
        assert_eq!(text(("", ""), ("", ""), 0, false).0, "unknown:unknown:::");
    }
}
