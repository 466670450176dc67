//! What a recording says about itself: which event drove it, and how often it sampled.

use crate::naming::nanos_per_sample;

/// Settings that decide what a sample is worth.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Settings {
    /// async-profiler's event: `cpu`, `itimer`, `wall`, …; empty for the JDK's own recordings.
    pub(super) event: String,
    /// Nanoseconds between execution samples, or counts of a hardware event; 0 if not said.
    pub(super) interval: i64,
    /// Nanoseconds between wall-clock samples; 0 if not said.
    pub(super) wall_interval: i64,
    /// Nanoseconds between samples of threads in native code; 0 if not said.
    pub(super) native_interval: i64,
}

/// async-profiler's default, and close to the JDK's.
const USUAL_INTERVAL: i64 = 10_000_000;

impl Settings {
    /// Takes a setting of the event called `event`.
    pub(super) fn set(&mut self, event: &str, name: &str, value: &str) {
        match (event, name) {
            ("jdk.ActiveRecording", "event") => value.clone_into(&mut self.event),
            ("jdk.ExecutionSample", "interval") => self.interval = value.parse().unwrap_or(0),
            ("jdk.ExecutionSample", "wall") => self.wall_interval = value.parse().unwrap_or(0),
            ("jdk.ExecutionSample", "period") => self.interval = timespan(value).unwrap_or(self.interval),
            ("jdk.NativeMethodSample", "period") => self.native_interval = timespan(value).unwrap_or(0),
            _ => {}
        }
    }

    /// Whether execution samples are taken by the clock on the wall, asleep or not.
    pub(super) fn is_wall(&self) -> bool {
        self.event == "wall"
    }

    /// Whether async-profiler sampled by time; the JDK's recordings do not say whether they sampled at all.
    pub(super) fn samples_time(&self) -> bool {
        !self.event.is_empty() && !self.counts_events()
    }

    /// Whether execution samples count something else than time: cache misses, calls of a function, …
    pub(super) fn counts_events(&self) -> bool {
        !matches!(self.event.as_str(), "" | "cpu" | "itimer" | "ctimer" | "wall" | "cpu-clock" | "task-clock")
    }

    /// Nanoseconds that an execution sample stands for.
    pub(super) fn execution_interval(&self, sample_rate: Option<u32>) -> i64 {
        of_rate(sample_rate).unwrap_or(if self.interval > 0 { self.interval } else { USUAL_INTERVAL })
    }

    /// Nanoseconds that a wall-clock sample stands for.
    pub(super) fn wall_clock_interval(&self, sample_rate: Option<u32>) -> i64 {
        let own = if self.wall_interval > 0 { Some(self.wall_interval) } else { None };
        match (own, self.is_wall()) {
            (_, true) => self.execution_interval(sample_rate),
            (Some(own), false) => own,
            (None, false) => of_rate(sample_rate).unwrap_or(USUAL_INTERVAL),
        }
    }
}

fn of_rate(sample_rate: Option<u32>) -> Option<i64> {
    sample_rate.filter(|rate| *rate > 0).map(nanos_per_sample)
}

/// Reads `20 ms` and the like.
fn timespan(text: &str) -> Option<i64> {
    let text = text.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let number: i64 = text[..digits].parse().ok()?;
    let unit = match text[digits..].trim() {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        _ => return None,
    };
    number.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: intervals as async-profiler and the JDK write them, and a rate from the transport.
    /// Guarantee: the transport's word counts, then the recording's, then the usual one.
    #[test]
    fn what_a_sample_is_worth() {
        let mut settings = Settings::default();
        assert_eq!(settings.execution_interval(None), 10_000_000);
        settings.set("jdk.ExecutionSample", "period", "20 ms");
        assert_eq!(settings.execution_interval(None), 20_000_000);
        assert_eq!(settings.execution_interval(Some(100)), 10_000_000);
        settings.set("jdk.ExecutionSample", "period", "everyChunk");
        assert_eq!(settings.execution_interval(None), 20_000_000);
        assert!(!settings.samples_time());
        settings.set("jdk.ActiveRecording", "event", "itimer");
        assert!(settings.samples_time());
        settings.set("jdk.ActiveRecording", "event", "cache-misses");
        assert!(settings.counts_events() && !settings.samples_time());
    }
}
