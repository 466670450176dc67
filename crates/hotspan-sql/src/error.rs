//! What can go wrong with a statement, told by who can mend it.

use datafusion::error::DataFusionError;
use hotspan_lake::LakeError;

/// An error of a statement.
#[derive(Debug, thiserror::Error)]
pub enum SqlError {
    /// The statement can't be understood, or asks for what is not there.
    #[error("{0}")]
    Invalid(String),
    /// The statement needs more than a limit allows.
    #[error("{0}")]
    Limit(String),
    /// The store failed.
    #[error("{0}")]
    Failed(String),
}

impl From<DataFusionError> for SqlError {
    fn from(error: DataFusionError) -> Self {
        let text = error.strip_backtrace();
        match error.find_root() {
            DataFusionError::ResourcesExhausted(_) => Self::Limit(format!(
                "the statement needs more memory than is left for SQL (sql.memory): {text}; narrow its time range or \
                 group by less"
            )),
            DataFusionError::External(source) if source.is::<LakeError>() => Self::Failed(text),
            DataFusionError::IoError(_) | DataFusionError::Internal(_) | DataFusionError::ExecutionJoin(_) => {
                Self::Failed(text)
            }
            _ => Self::Invalid(text),
        }
    }
}

/// An error of the lake, on its way through DataFusion.
pub(crate) fn lake_error(error: LakeError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}
