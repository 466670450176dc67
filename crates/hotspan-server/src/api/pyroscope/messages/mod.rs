//! The messages of `querier.v1` and its neighbours, for protobuf and for protobuf JSON.
//!
//! Field numbers are the wire's. In JSON, 64-bit numbers are texts, names are in camel case, and both spellings of
//! a name are understood.

mod adhoc;
mod analysis;
mod labels;
mod schema;
mod series;
mod settings;
mod stacktraces;

pub(super) use adhoc::*;
pub(super) use analysis::*;
pub(super) use labels::*;
pub(super) use series::*;
pub(super) use settings::*;
pub(super) use stacktraces::*;
