//! Running a query over spans. A query is lowered once into nodes with numbered fields; per span nothing is looked up
//! by name.

mod aggregate;
mod lower;
mod node;
mod pipeline;
mod shape;
mod structural;
mod view;

pub(crate) use lower::{Lowering, carrier_of, normalized};
pub(crate) use node::{FieldRef, Node, test_each};
pub(crate) use pipeline::PipelineOp;
pub use pipeline::Spanset;
pub use shape::TraceShape;
pub use view::{ROOT_NOT_YET_RECEIVED, TraceFacts, TraceView};
