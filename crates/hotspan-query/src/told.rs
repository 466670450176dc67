//! An answer that is a plain list or table, together with what it rests on.

use hotspan_model::Exactness;

/// What was found, and how far it can be trusted (R4, R9).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Told<T> {
    /// What was found.
    pub answer: T,
    /// What it rests on.
    pub exactness: Exactness,
}
