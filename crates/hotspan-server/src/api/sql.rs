//! `POST /api/v1/sql`: read-only SQL, answered row by row as it is computed.

use std::io;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::rejection::JsonRejection;
use axum::response::Response;
use futures::{StreamExt, stream};
use hotspan_sql::output::{Encoder, Format};
use hotspan_sql::{SqlAnswer, SqlError};
use http::{StatusCode, header};
use serde::Deserialize;

use super::ApiError;
use super::asker::Asker;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SqlBody {
    query: String,
    format: Option<String>,
}

/// Answers `/api/v1/sql`. When the client goes away, the body is dropped, and the query with it.
pub(crate) async fn sql(
    Asker { core, tenant }: Asker,
    body: Result<Json<SqlBody>, JsonRejection>,
) -> Result<Response, ApiError> {
    let Json(body) = body.map_err(|wrong| ApiError { status: wrong.status(), message: wrong.body_text() })?;
    let format: Format = match &body.format {
        Some(text) => text.parse().map_err(|error: String| ApiError::invalid(format!("format: {error}")))?,
        None => Format::default(),
    };
    let answer = core.sql.query(&tenant, &body.query).await?;
    let encoder = Encoder::new(format, &answer.schema).map_err(|error| failed(&error))?;
    let response = Response::builder().header(header::CONTENT_TYPE, format.content_type());
    response.body(Body::from_stream(encoded(answer, encoder, format))).map_err(|error| failed(&error))
}

/// The pieces of the body, each encoded when the client has taken the one before.
fn encoded(
    answer: SqlAnswer,
    mut encoder: Encoder,
    format: Format,
) -> impl futures::Stream<Item = io::Result<Bytes>> + Send {
    let begin = encoder.begin();
    let rest = stream::unfold(Some((answer.batches, encoder)), move |state| async move {
        let (mut batches, mut encoder) = state?;
        match batches.next().await {
            Some(Ok(batch)) => match encoder.rows(&batch) {
                Ok(bytes) => Some((Ok(Bytes::from(bytes)), Some((batches, encoder)))),
                Err(error) => Some((Err(io::Error::other(error)), None)),
            },
            // JSON says what went wrong; the others end short, which their readers notice.
            Some(Err(error)) if format != Format::Json => Some((Err(io::Error::other(error)), None)),
            Some(Err(error)) => Some((end(encoder, Some(&error.to_string())), None)),
            None => Some((end(encoder, None), None)),
        }
    });
    stream::iter([Ok(Bytes::from(begin))]).chain(rest)
}

fn end(encoder: Encoder, error: Option<&str>) -> io::Result<Bytes> {
    encoder.end(error).map(Bytes::from).map_err(io::Error::other)
}

fn failed(error: &impl std::fmt::Display) -> ApiError {
    ApiError { status: StatusCode::INTERNAL_SERVER_ERROR, message: error.to_string() }
}

impl From<SqlError> for ApiError {
    fn from(error: SqlError) -> Self {
        let status = match &error {
            SqlError::Invalid(_) => StatusCode::BAD_REQUEST,
            SqlError::Limit(_) => StatusCode::UNPROCESSABLE_ENTITY,
            SqlError::Failed(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self { status, message: error.to_string() }
    }
}
