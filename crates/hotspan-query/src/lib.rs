//! Questions asked of the lake.
//!
//! ```text
//! question -> pinned Snapshot -> segments that can matter -> Arrow batches -> answer with its Exactness
//! ```
//!
//! An [`Engine`] answers point look-ups (a trace, the samples of a span) through the id indexes, flame graphs
//! through rollups, and everything else by scanning; each answer says what it rests on (R4, R9).

pub mod cohort;
mod engine;
mod error;
pub mod flame;
mod merged;
mod samples;
mod scan;
pub mod search;
pub mod selector;
mod series;
pub mod service_graph;
pub mod services;
pub mod span_metrics;
mod symbols;
mod timeline;
pub mod trace;

pub use cohort::{Cohort, CohortScope};
pub use engine::Engine;
pub use error::{QueryError, Result};
pub use flame::{FlameAnswer, FlameQuery};
pub use merged::{LeafTrim, MergedPaths};
pub use samples::{SampleFrame, SamplePage, SampleRow};
pub use selector::{Matcher, Selector};
pub use series::SeriesEntry;
pub use timeline::{StepValue, Timeline, TimelineQuery};
pub use trace::{StoredSpan, StoredTrace, TraceRun};
