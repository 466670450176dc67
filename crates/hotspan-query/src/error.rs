//! What can go wrong with a question, told by who is at fault.

use hotspan_lake::LakeError;
use hotspan_model::SelectorError;

/// An error of a query.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// The question can't be understood; the person who asked can mend it.
    #[error("{0}")]
    Invalid(String),
    /// The question asks for more than a limit allows.
    #[error("{0}")]
    Limit(String),
    /// The store failed.
    #[error(transparent)]
    Lake(#[from] LakeError),
}

/// A result of a query.
pub type Result<T> = std::result::Result<T, QueryError>;

impl From<SelectorError> for QueryError {
    fn from(error: SelectorError) -> Self {
        Self::Invalid(error.to_string())
    }
}
