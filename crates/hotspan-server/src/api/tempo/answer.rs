//! Answers in the form that was asked for, and errors as Tempo gives them: plain text.

use axum::Extension;
use axum::extract::FromRequestParts;
use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http::{HeaderMap, StatusCode, header};
use prost::Message;
use serde::Serialize;

use crate::accept::Accept;
use crate::api::{ApiError, WhyNot};

/// An error as plain text.
#[derive(Debug)]
pub(crate) struct TextError(pub(super) ApiError);

impl<E: Into<ApiError>> From<E> for TextError {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for TextError {
    fn into_response(self) -> Response {
        let text = format!("{}\n", self.0.message);
        let content_type = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
        (self.0.status, Extension(WhyNot(self.0.message)), content_type, text).into_response()
    }
}

/// Something that is taken from a request, and whose errors are plain text too.
#[derive(Debug)]
pub(super) struct Plain<T>(pub(super) T);

impl<S: Send + Sync, T: FromRequestParts<S, Rejection = ApiError>> FromRequestParts<S> for Plain<T> {
    type Rejection = TextError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, TextError> {
        Ok(Self(T::from_request_parts(parts, state).await?))
    }
}

/// How an answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Json,
    Protobuf,
}

impl Form {
    /// What the `Accept` header asks for; JSON unless it likes protobuf better.
    pub(super) fn asked_for(headers: &HeaderMap) -> Self {
        match Accept::of(headers).best(&["application/json", "application/protobuf", "application/x-protobuf"]) {
            Some("application/protobuf" | "application/x-protobuf") => Self::Protobuf,
            _ => Self::Json,
        }
    }

    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Protobuf => "application/protobuf",
        }
    }

    /// A whole message as answer.
    pub(super) fn answer<M: Message + Serialize>(self, message: &M) -> Result<Response, TextError> {
        let body = match self {
            Self::Protobuf => message.encode_to_vec(),
            Self::Json => json_bytes(message)?,
        };
        Ok((StatusCode::OK, [(header::CONTENT_TYPE, self.content_type())], body).into_response())
    }
}

pub(super) fn json_bytes<T: Serialize>(value: &T) -> Result<Vec<u8>, ApiError> {
    serde_json::to_vec(value).map_err(|error| ApiError {
        status: StatusCode::INTERNAL_SERVER_ERROR,
        message: format!("the answer can't be written: {error}"),
    })
}
