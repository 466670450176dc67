//! Errors of the JSON API: a status, and a message for a person.

use axum::Json;
use axum::response::{IntoResponse, Response};
use hotspan_formats::profile_query::ProfileQueryError;
use hotspan_model::SelectorError;
use hotspan_query::QueryError;
use http::{HeaderValue, StatusCode, header};
use serde_json::json;

use crate::app::NotServing;
use crate::receive::Refusal;

/// What an endpoint answers instead of a result.
#[derive(Debug)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) message: String,
}

/// Why a question has no answer, beside what its asker is told: for the log, and for `hotspan.queries`.
#[derive(Debug, Clone)]
pub(crate) struct WhyNot(pub(crate) String);

impl ApiError {
    /// The request can't be understood.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, message: message.into() }
    }

    /// The request asks for what later versions may have: clients then make do with what there is.
    pub(crate) fn unimplemented(message: impl Into<String>) -> Self {
        Self { status: StatusCode::NOT_IMPLEMENTED, message: message.into() }
    }
}

impl From<QueryError> for ApiError {
    fn from(error: QueryError) -> Self {
        let status = match &error {
            QueryError::Invalid(_) => StatusCode::BAD_REQUEST,
            QueryError::Limit(_) => StatusCode::UNPROCESSABLE_ENTITY,
            QueryError::Lake(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self { status, message: error.to_string() }
    }
}

impl From<SelectorError> for ApiError {
    fn from(error: SelectorError) -> Self {
        Self::invalid(error.to_string())
    }
}

impl From<ProfileQueryError> for ApiError {
    fn from(error: ProfileQueryError) -> Self {
        Self::invalid(error.to_string())
    }
}

impl From<NotServing> for ApiError {
    fn from(error: NotServing) -> Self {
        Self { status: StatusCode::SERVICE_UNAVAILABLE, message: error.to_string() }
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        Self { status: refusal.http_status(), message: refusal.to_string() }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let message = self.message;
        let body = Json(json!({ "error": message }));
        let mut response = (self.status, body).into_response();
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response.extensions_mut().insert(WhyNot(message));
        response
    }
}
