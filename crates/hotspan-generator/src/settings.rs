//! How much is generated, and of what kind.

use crate::planted::PlantedCause;

/// Length of a profile, and of the window that data is made in.
pub const WINDOW_NANOS: i64 = 15_000_000_000;

/// What a workload is made of. The default is the hour that the budgets are for.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Everything follows from it.
    pub seed: u64,
    /// Start of the first window, in nanoseconds since 1970; moved back to a multiple of [`WINDOW_NANOS`].
    pub start: i64,
    /// How many windows of 15 s there are.
    pub windows: u32,
    /// How many services there are.
    pub services: u16,
    /// How many traces start in all windows together.
    pub traces: u64,
    /// Mean number of spans in a trace; most have fewer, some have many more.
    pub spans_per_trace: f64,
    /// How many samples of CPU time there are in all windows together, planted ones not counted.
    pub samples: u64,
    /// Functions in the code of a service; few of them take most of the time.
    pub functions_per_service: u32,
    /// Distinct call paths that samples of a service end in.
    pub stacks_per_service: u32,
    /// Deepest stack.
    pub max_stack_depth: u32,
    /// Share of samples that name the span they were taken in.
    pub linked_share: f64,
    /// Causes of slowness to hide in the data, for tests that must find them.
    pub planted: Vec<PlantedCause>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            seed: 42,
            start: 1_760_000_400_000_000_000,
            windows: 240,
            services: 40,
            traces: 50_000,
            spans_per_trace: 20.0,
            samples: 5_000_000,
            functions_per_service: 2_500,
            stacks_per_service: 2_500,
            max_stack_depth: 60,
            linked_share: 0.5,
            planted: Vec::new(),
        }
    }
}

/// Settings that make no workload.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SettingsError {
    /// A number is outside what it may be.
    #[error("{name} is {found}; it must be from {least} to {most}")]
    OutOfRange {
        /// Name of the setting.
        name: &'static str,
        /// What it is.
        found: f64,
        /// The least it may be.
        least: f64,
        /// The most it may be.
        most: f64,
    },
    /// A planted cause names a service that is not there.
    #[error("the planted cause in {function:?} names service {service:?}; there are: {known}")]
    UnknownService {
        /// The planted function.
        function: String,
        /// The name as given.
        service: String,
        /// The services that there are.
        known: String,
    },
    /// A planted cause names an operation that its service does not have.
    #[error("the planted cause in {function:?} names operation {operation:?}; {service} has: {known}")]
    UnknownOperation {
        /// The planted function.
        function: String,
        /// The service.
        service: String,
        /// The name as given.
        operation: String,
        /// The operations that it has.
        known: String,
    },
}

impl Settings {
    /// The default rates for another length of time: an hour has 1 M spans and 5 M samples.
    pub fn of_hours(hours: f64) -> Self {
        let hour = Self::default();
        let scaled = |count: f64| (count * hours).max(1.0);
        Self {
            windows: scaled(f64::from(hour.windows)).round() as u32,
            traces: scaled(hour.traces as f64).round() as u64,
            samples: scaled(hour.samples as f64).round() as u64,
            ..hour
        }
    }

    /// A minute of a small fleet, for tests.
    pub fn small() -> Self {
        Self {
            windows: 4,
            services: 6,
            traces: 200,
            samples: 6_000,
            functions_per_service: 300,
            stacks_per_service: 400,
            ..Self::default()
        }
    }

    /// Start of the first window.
    pub fn first_instant(&self) -> i64 {
        self.start - self.start.rem_euclid(WINDOW_NANOS)
    }

    /// End of the last window: no sample is taken and no trace starts at it or later, though spans may end later.
    pub fn end_instant(&self) -> i64 {
        self.first_instant() + i64::from(self.windows) * WINDOW_NANOS
    }

    pub(crate) fn check(&self) -> Result<(), SettingsError> {
        let ranges = [
            ("start", self.start as f64, 0.0, 8e18),
            ("windows", f64::from(self.windows), 1.0, 1e7),
            ("services", f64::from(self.services), 1.0, 1000.0),
            ("traces", self.traces as f64, 0.0, 1e12),
            ("spans_per_trace", self.spans_per_trace, 1.0, 10_000.0),
            ("samples", self.samples as f64, 0.0, 1e13),
            ("functions_per_service", f64::from(self.functions_per_service), 10.0, 1e6),
            ("stacks_per_service", f64::from(self.stacks_per_service), 1.0, 1e6),
            ("max_stack_depth", f64::from(self.max_stack_depth), 12.0, 500.0),
            ("linked_share", self.linked_share, 0.0, 1.0),
        ];
        for (name, found, least, most) in ranges {
            // Not `<` or `>`, so that NaN is refused as well.
            if !(least..=most).contains(&found) {
                return Err(SettingsError::OutOfRange { name, found, least, most });
            }
        }
        for planted in &self.planted {
            if !(0.0..=1.0).contains(&planted.slow_share) {
                let found = planted.slow_share;
                return Err(SettingsError::OutOfRange { name: "slow_share", found, least: 0.0, most: 1.0 });
            }
            for (name, nanos) in [("slow_nanos", planted.slow_nanos), ("fast_nanos", planted.fast_nanos)] {
                if !(0..=60_000_000_000).contains(&nanos) {
                    return Err(SettingsError::OutOfRange { name, found: nanos as f64, least: 0.0, most: 6e10 });
                }
            }
        }
        Ok(())
    }
}
