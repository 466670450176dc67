//! What an engine needs to know of a query before it reads anything.

mod fields;

pub use fields::{FieldId, FieldTable};
