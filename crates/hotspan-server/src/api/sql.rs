//! `POST /api/v1/sql`: read-only SQL, answered row by row as it is computed.

use std::io;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::rejection::{FormRejection, JsonRejection};
use axum::extract::{FromRequest, Request};
use axum::response::Response;
use axum::{Form, Json};
use futures::{StreamExt, stream};
use hotspan_sql::output::{Encoder, Format};
use hotspan_sql::{SqlAnswer, SqlError};
use http::{StatusCode, header};
use serde::Deserialize;

use super::ApiError;
use super::asker::Asker;

const FORM: &str = "application/x-www-form-urlencoded";

/// So many bytes of an answer are computed before any of them is sent: whatever goes wrong until then has a status of its own.
const HELD_BYTES: usize = 128 << 10;

/// A connection is cut this long after the last line of an answer that failed: what the client has not taken until then is lost
/// with the connection, and the reason with it.
const TIME_TO_READ_WHY: Duration = Duration::from_secs(1);

/// What is asked, as JSON or as the form that `curl -d` sends.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SqlBody {
    query: String,
    format: Option<String>,
}

impl<S: Send + Sync> FromRequest<S> for SqlBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let content_type = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let is_form = content_type.is_some_and(|text| text.trim_start().to_ascii_lowercase().starts_with(FORM));
        if is_form {
            let form = Form::from_request(request, state).await;
            return form.map(|Form(body)| body).map_err(|wrong: FormRejection| {
                let message = format!("{}; a form has query=STATEMENT and maybe format=FORMAT", wrong.body_text());
                ApiError { status: wrong.status(), message }
            });
        }
        Json::from_request(request, state).await.map(|Json(body)| body).map_err(|wrong| {
            let message = match &wrong {
                JsonRejection::MissingJsonContentType(_) => {
                    format!("the body's Content-Type must be application/json or {FORM}")
                }
                wrong => wrong.body_text(),
            };
            ApiError { status: wrong.status(), message }
        })
    }
}

/// Answers `/api/v1/sql`. When the client goes away, the body is dropped, and the query with it.
pub(crate) async fn sql(Asker { core, tenant }: Asker, body: SqlBody) -> Result<Response, ApiError> {
    let format: Format = match &body.format {
        Some(text) => text.parse().map_err(|error: String| ApiError::invalid(format!("format: {error}")))?,
        None => Format::default(),
    };
    let mut answer = core.sql.query(&tenant, &body.query).await?;
    let mut encoder = Encoder::new(format, &answer.schema).map_err(|error| failed(&error))?;
    let mut held = encoder.begin();
    let body = loop {
        match answer.batches.next().await {
            Some(batch) => held.extend(encoder.rows(&batch?)?),
            None => {
                held.extend(encoder.end(None).map_err(|error| failed(&error))?);
                break Body::from(held);
            }
        }
        if held.len() > HELD_BYTES {
            break Body::from_stream(encoded(held, answer, encoder, format));
        }
    };
    let response = Response::builder().header(header::CONTENT_TYPE, format.content_type());
    response.body(body).map_err(|error| failed(&error))
}

/// What of an answer is still to be sent.
enum Rest {
    Rows(SqlAnswer, Encoder),
    /// The connection is cut for this reason.
    Cut(String),
}

/// The pieces of the body, the first of which is known already; each other is encoded when the client has taken the one before.
fn encoded(
    first: Vec<u8>,
    answer: SqlAnswer,
    encoder: Encoder,
    format: Format,
) -> impl futures::Stream<Item = io::Result<Bytes>> + Send {
    let rest = stream::unfold(Some(Rest::Rows(answer, encoder)), move |rest| async move {
        let (mut answer, mut encoder) = match rest? {
            Rest::Rows(answer, encoder) => (answer, encoder),
            Rest::Cut(why) => {
                tokio::time::sleep(TIME_TO_READ_WHY).await;
                return Some((Err(io::Error::other(why)), None));
            }
        };
        let why = match answer.batches.next().await {
            Some(Ok(batch)) => match encoder.rows(&batch) {
                Ok(bytes) => return Some((Ok(Bytes::from(bytes)), Some(Rest::Rows(answer, encoder)))),
                Err(error) => error.to_string(),
            },
            Some(Err(error)) => error.to_string(),
            None => return Some((end(encoder, None), None)),
        };
        let last = end(encoder, Some(&why));
        Some((last, (!format.holds_errors()).then_some(Rest::Cut(why))))
    });
    stream::iter([Ok(Bytes::from(first))]).chain(rest)
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
