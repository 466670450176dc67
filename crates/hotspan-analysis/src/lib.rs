//! Why requests are slow.
//!
//! ```text
//! gather (store)          requests of two sides: spans below the one in question, samples by call path
//!   -> local_roots        inner spans whose samples name their local root are folded into it
//!   -> clock_skew         clocks that differ are shifted
//!   -> critical_path      only time on it counts
//!   -> sources            which profiles count, so that nothing counts twice
//!   -> ledger             each request a vector over one tree; its parts sum to the duration
//!   -> matrix, statistics the two sides compared node by node
//!   -> blame, calls       down to the deepest nodes that explain the difference
//!   -> candidates         named by own code, or by the operation around it where samples are too few
//!   -> causes             with intervals, patterns and attributes, ranked
//!   -> explanation        the answer
//! ```
//!
//! Because each request's parts sum to its duration, so do the means of a cohort, and so does the difference of two:
//! every share that is shown comes from this identity. Everything but [`gather`] is pure, and everything random is
//! seeded: the same question gets the same answer.

pub mod blame;
pub mod calls;
mod candidates;
pub mod causes;
pub mod clock_skew;
pub mod comparison;
pub mod critical_path;
mod explain;
pub mod explanation;
mod folding;
pub mod gather;
pub mod ledger;
pub mod ledger_summary;
pub mod local_roots;
pub mod looks;
pub mod matrix;
pub mod merged_tree;
pub mod moved;
mod notes;
pub mod own_code;
pub mod part;
pub mod patterns;
pub mod render;
pub mod request;
pub mod separating;
pub mod signs;
pub mod sources;
pub mod statistics;
pub mod tree;
pub mod vocabulary;
mod widest;
mod words;

pub use explain::{Analysis, Question, Subject, analyse};
pub use explanation::{Cause, Explanation, Verdict};
pub use request::{AttributeValue, Measure, Request, RequestSample, RequestSpan};
pub use vocabulary::Vocabulary;
