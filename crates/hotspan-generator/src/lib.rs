//! Traces and profiles of a fleet of services that does not exist, for benchmarks and tests.
//!
//! ```text
//!  Settings -> Fleet (services, operations, call trees)
//!           -> Workload -> Window (15 s of spans and samples) -> encode::{otlp traces, otlp profiles, pprof}
//!                                                             -> Oracle (the exact sums)
//! ```
//!
//! Everything follows from the seed: the same settings give the same bytes, on every machine, and a window can be
//! made without those before it. Only one window is in memory at a time, so that a day of data needs no more
//! memory than a minute of it.

pub mod encode;
pub mod fleet;
mod oracle;
mod planted;
mod random;
mod settings;
pub mod workload;

pub use oracle::{Oracle, OracleDetail};
pub use planted::{PlantedCause, PlantedTime};
pub use settings::{Settings, SettingsError, WINDOW_NANOS};
pub use workload::{SampleKind, Window, Workload};
