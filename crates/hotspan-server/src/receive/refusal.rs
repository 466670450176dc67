//! Why a request is not taken, independent of the protocol that has to say so.

use std::sync::Arc;
use std::time::Duration;

use hotspan_formats::push::PushError;
use hotspan_formats::{DecodeError, Fault, FileError};
use hotspan_lake::LakeError;
use hotspan_lake::work_threads::BrokenOff;

use super::BodyError;
use crate::app::NotServing;
use crate::rpc::{CallError, Code};

/// Why a request is not taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    /// The store is not open.
    #[error(transparent)]
    NotServing(#[from] NotServing),
    /// Too much is under way.
    #[error("the queue is full; retry in {} s", RETRY_WHEN_FULL.as_secs())]
    Overloaded,
    /// The disk is full.
    #[error("no space left on the store's disk; nothing of this request is stored, retry when there is room")]
    OutOfSpace,
    /// The store failed in another way that may pass.
    #[error("the store could not take the data: {0}")]
    StoreFailed(Arc<LakeError>),
    /// More bytes than a request may have.
    #[error(
        "the request has more than {limit} bytes after decompression; send smaller batches, or raise limits.max_bytes"
    )]
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// Few bytes on the wire that are too much once decoded.
    #[error("{0}")]
    Expands(DecodeError),
    /// A file that is larger than an upload may be.
    #[error("the file has more than {limit} bytes; split it, or raise limits.max_upload_bytes")]
    FileTooLarge {
        /// The limit.
        limit: u64,
    },
    /// A file of a format without chunks that is larger than a request may be.
    #[error(
        "the file has more than {limit} bytes, which only JFR recordings may have; split it, or raise limits.max_bytes"
    )]
    NoChunks {
        /// The limit.
        limit: usize,
    },
    /// Bytes that can't be understood.
    #[error("{0}")]
    Invalid(String),
    /// A profile of a time that is not taken.
    #[error("{0}; nothing of it is stored")]
    Untimely(String),
    /// A path, method or signal that is not served.
    #[error("{message}")]
    NotHere {
        /// The HTTP status that says so.
        status: http::StatusCode,
        /// The label under which it is counted.
        reason: &'static str,
        /// What is not here, and what is.
        message: String,
    },
    /// A profile that can't be read.
    #[error("{0}")]
    Profile(FileError),
    /// A profile that can't be read, of several in a form.
    #[error("the part {part:?} of the form: {error}")]
    Part {
        /// Its name.
        part: String,
        /// What is wrong with it.
        error: FileError,
    },
    /// The sender went away, or fell silent, before its request was whole.
    #[error("{0}")]
    Interrupted(String),
    /// A content type or encoding that is not spoken here.
    #[error("{0}")]
    Unsupported(String),
    /// Multi-tenancy is on and the request names no tenant.
    #[error("no tenant: send the header X-Scope-OrgID")]
    NoTenant,
}

const RETRY_WHEN_FULL: Duration = Duration::from_secs(1);
const RETRY_WHEN_FAILED: Duration = Duration::from_secs(5);

impl Refusal {
    /// The gRPC code, which also decides whether senders retry.
    pub(crate) fn code(&self) -> Code {
        match self {
            // Nothing is wrong with what a slow network cut off: sent again, it may come whole.
            Self::NotServing(_) | Self::OutOfSpace | Self::StoreFailed(_) | Self::Interrupted(_) => Code::Unavailable,
            Self::Overloaded
            | Self::TooLarge { .. }
            | Self::Expands(_)
            | Self::FileTooLarge { .. }
            | Self::NoChunks { .. } => Code::ResourceExhausted,
            Self::Invalid(_) | Self::Untimely(_) | Self::Profile(_) | Self::Part { .. } => Code::InvalidArgument,
            Self::Unsupported(_) | Self::NotHere { .. } => Code::Unimplemented,
            Self::NoTenant => Code::Unauthenticated,
        }
    }

    /// The HTTP status, which OTLP senders retry on 429 and 503 only.
    pub(crate) fn http_status(&self) -> http::StatusCode {
        match self {
            Self::TooLarge { .. } | Self::Expands(_) | Self::FileTooLarge { .. } | Self::NoChunks { .. } => {
                http::StatusCode::PAYLOAD_TOO_LARGE
            }
            Self::Profile(error) | Self::Part { error, .. } if error.fault == Fault::TooLarge => {
                http::StatusCode::PAYLOAD_TOO_LARGE
            }
            Self::Unsupported(_) => http::StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::NotHere { status, .. } => *status,
            other => other.code().http_status(),
        }
    }

    /// When to try again; none if trying again can't help.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::NotServing(_) | Self::Overloaded | Self::Interrupted(_) => Some(RETRY_WHEN_FULL),
            Self::OutOfSpace | Self::StoreFailed(_) => Some(RETRY_WHEN_FAILED),
            _ => None,
        }
    }

    /// The label under which it is counted.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::NotServing(NotServing::Starting) => "starting",
            Self::NotServing(NotServing::Stopping) => "stopping",
            Self::Overloaded => "overloaded",
            Self::OutOfSpace => "out_of_space",
            Self::StoreFailed(_) => "store_failed",
            Self::TooLarge { .. } | Self::Expands(_) | Self::FileTooLarge { .. } | Self::NoChunks { .. } => "too_large",
            Self::Profile(error) | Self::Part { error, .. } if error.fault == Fault::TooLarge => "too_large",
            Self::Invalid(_) | Self::Profile(_) | Self::Part { .. } => "invalid",
            Self::Untimely(_) => "untimely",
            Self::NotHere { reason, .. } => reason,
            Self::Interrupted(_) => "interrupted",
            Self::Unsupported(_) => "unsupported",
            Self::NoTenant => "no_tenant",
        }
    }
}

impl From<CallError> for Refusal {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Body(error) => error.into(),
            CallError::ContentType(_) | CallError::Encoding(_) => Self::Unsupported(error.to_string()),
            CallError::Broken(message) => Self::Invalid(message),
        }
    }
}

impl From<BodyError> for Refusal {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::NotServing(reason) => Self::NotServing(reason),
            BodyError::TooLarge { limit } => Self::TooLarge { limit },
            BodyError::NoRoom => Self::Overloaded,
            BodyError::Interrupted(message) => Self::Interrupted(message),
        }
    }
}

impl From<BrokenOff> for Refusal {
    fn from(error: BrokenOff) -> Self {
        Self::Invalid(format!("decoding failed: {error}"))
    }
}

impl From<DecodeError> for Refusal {
    fn from(error: DecodeError) -> Self {
        if error.is_too_large() { Self::Expands(error) } else { Self::Invalid(error.to_string()) }
    }
}

impl From<PushError> for Refusal {
    fn from(error: PushError) -> Self {
        Self::Invalid(error.to_string())
    }
}

impl From<FileError> for Refusal {
    fn from(error: FileError) -> Self {
        Self::Profile(error)
    }
}

impl From<Arc<LakeError>> for Refusal {
    fn from(error: Arc<LakeError>) -> Self {
        if error.is_out_of_space() { Self::OutOfSpace } else { Self::StoreFailed(error) }
    }
}
