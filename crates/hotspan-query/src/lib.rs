//! Questions asked of the lake.
//!
//! ```text
//! question -> pinned Snapshot -> segments that can matter -> Arrow batches -> answer with its Exactness
//! ```
//!
//! An [`Engine`] answers point look-ups (a trace, the samples of a span) through the id indexes, flame graphs
//! through rollups, and everything else by scanning; each answer says what it rests on (R4, R9).

mod by_text;
mod call_paths;
pub mod cohort;
pub mod endpoint_costs;
mod engine;
mod error;
pub mod flame;
pub mod function_spans;
mod function_tree;
mod groups;
pub mod heatmap;
pub mod individuals;
mod inferred;
mod inherited;
mod link_policy;
mod linked;
mod linked_rows;
mod log;
mod measure;
mod merged;
pub mod outline;
mod owners;
mod path_sums;
mod process;
pub mod request_statistics;
mod sample_times;
mod sampled_time;
mod samples;
mod scan;
mod scan_plan;
pub mod search;
mod series;
pub mod service_graph;
pub mod services;
mod side_by_side;
mod span_attributes;
pub mod span_facts;
pub mod span_metrics;
mod stack_filter;
mod stacks;
mod step_grid;
mod symbols;
mod taken_profiles;
mod timeline;
mod told;
pub mod trace;
mod upload_names;
mod uploads;
mod warm_up;
mod waterfall;
mod window_counts;

pub use call_paths::{Call, CallPaths, PathFrame};
pub use cohort::{Cohort, CohortScope, CohortSpan, MAX_COHORT_SPANS};
pub use engine::Engine;
pub use error::{QueryError, Result};
pub use flame::{FlameAnswer, FlameQuery};
pub use heatmap::{HEATMAP_BANDS, Heatmap, HeatmapGroup};
pub use hotspan_model::selector::{Matcher, Selector, plain_name};
pub use individuals::{Individual, IndividualKind, Individuals};
pub use inferred::ThreadTimes;
pub use inherited::Inheritance;
pub use link_policy::LinkPolicy;
pub use linked::{EachSample, LinkedQuery, LinkedSample, LinkedSamples, LinkedTables, SampleThread};
pub use log::{Outcome, QueryLog, QueryRecord, QueryTicket};
pub use measure::Units;
pub use merged::{LeafTrim, MergedPaths};
pub use outline::SpanOutline;
pub use owners::{SampleOwners, SpanKey};
pub use process::{Process, ProcessTime};
pub use samples::{FARTHEST_SAMPLE, SampleFrame, SamplePage, SampleRow};
pub use series::SeriesEntry;
pub use stack_filter::{FunctionTests, StackFilter};
pub use timeline::{Exemplars, StepValue, Timeline, TimelineQuery, Timelines};
pub use told::Told;
pub use trace::{StoredSpan, StoredTrace, TraceRun};
pub use warm_up::WarmUp;
pub use waterfall::{PlacedSpan, Waterfall};
