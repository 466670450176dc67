//! Flamebearer, the flame graph JSON of Pyroscope's HTTP API and of files that Grafana exports.
//!
//! A level is a list of bars from left to right, four numbers each (seven for two trees); offsets count from the
//! end of the bar before. The names table is filled depth first with the rightmost child first: clients compare
//! whole answers, so the order is part of the format.

mod read;
mod write;

pub use read::decode;
pub use write::{Flamebearer, FlamebearerProfile, Metadata, Timeline};
