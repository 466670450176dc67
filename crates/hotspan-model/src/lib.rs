//! The words that every other crate speaks: ids, attributes, spans, profiles, call paths, flame trees.
//!
//! Nothing here does I/O or knows a wire format. Formats translate bytes into these types, the lake
//! stores them, queries give them back:
//!
//! ```text
//!  bytes --formats--> Span, ProfileSet --lake--> tables --query--> FlameTree, Exactness
//! ```
//!
//! Rule R8: time is nanoseconds in an `i64`, ids are fixed-size types, never strings.

pub mod attribute;
mod attribute_json;
mod build_ids;
pub mod call_path;
pub mod entity_ref;
pub mod exactness;
pub mod flame;
pub mod frame;
pub mod ids;
pub mod labels;
pub mod profile;
pub mod profile_type;
pub mod selector;
pub mod span;

pub use attribute::{Attribute, Value};
pub use attribute_json::attributes_from_json;
pub use build_ids::BuildIds;
pub use call_path::{FrameId, NodeId, PathTable};
pub use entity_ref::EntityRef;
pub use exactness::{Coverage, CoverageOf, Exactness, LinkStrength};
pub use flame::FlameTree;
pub use frame::{Frame, FrameKind};
pub use ids::{ProfileId, SeriesId, SpanId, TenantId, TraceId};
pub use labels::Labels;
pub use profile::{Link, Profile, ProfileSet, Sample};
pub use profile_type::ProfileType;
pub use selector::{Matcher, Selector, SelectorError};
pub use span::{Event, Resource, Scope, Span, SpanKind, SpanLink, StatusCode, TraceSink, Unlisted};
