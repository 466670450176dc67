//! Help for a person who is typing a query: colours, completions, and what a half-typed query already says.

mod complete;
mod highlight;
mod lenient;

pub use complete::{Completion, Completions, complete};
pub use highlight::{Highlight, TokenClass, highlight};
pub use lenient::{MAX_GROUPS, lenient_condition};
