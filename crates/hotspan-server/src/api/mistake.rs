//! Errors of questions that hold TraceQL: besides the message, where the mistake is, for editors that mark it.

use axum::Json;
use axum::response::{IntoResponse, Response};
use hotspan_query::QueryError;
use hotspan_traceql::TraceqlError;
use http::StatusCode;
use serde_json::{Value, json};

use super::ApiError;
use crate::app::NotServing;
use crate::receive::Refusal;

/// What a question that holds TraceQL is answered with instead of a result.
#[derive(Debug)]
pub(crate) enum QuestionError {
    /// The query has a mistake at a place that is known.
    Mistake(Box<Value>),
    /// Something else.
    Other(ApiError),
}

impl QuestionError {
    /// The request can't be understood.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::Other(ApiError::invalid(message))
    }

    /// The query in a field of the request can't be understood.
    pub(crate) fn traceql(field: &str, error: &TraceqlError, query: &str) -> Self {
        // Editors count as JavaScript does.
        let position = |byte: usize| -> usize {
            let before = query.char_indices().take_while(|(at, _)| *at < byte);
            before.map(|(_, c)| c.len_utf16()).sum()
        };
        Self::Mistake(Box::new(json!({
            "error": error.render(query),
            "field": field,
            "position": position(error.range.start),
            "end": position(error.range.end),
            "line": error.line,
            "column": error.column,
            "expected": error.expected,
            "suggestion": error.suggestion,
        })))
    }
}

impl From<ApiError> for QuestionError {
    fn from(error: ApiError) -> Self {
        Self::Other(error)
    }
}

impl From<QueryError> for QuestionError {
    fn from(error: QueryError) -> Self {
        Self::Other(error.into())
    }
}

impl From<NotServing> for QuestionError {
    fn from(error: NotServing) -> Self {
        Self::Other(error.into())
    }
}

impl From<Refusal> for QuestionError {
    fn from(error: Refusal) -> Self {
        Self::Other(error.into())
    }
}

impl IntoResponse for QuestionError {
    fn into_response(self) -> Response {
        match self {
            Self::Mistake(body) => (StatusCode::BAD_REQUEST, Json(*body)).into_response(),
            Self::Other(error) => error.into_response(),
        }
    }
}
