//! A trace by its id. A long one is sent part by part, so that its size does not matter.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use hashbrown::HashSet;
use hotspan_model::{SpanId, TenantId, TraceId};
use hotspan_query::{Engine, StoredSpan, TraceRun};
use http::{HeaderMap, StatusCode, header};
use prost::Message;

use super::answer::{Form, TextError, json_bytes};
use super::otlp_messages::ResourceSpans;
use super::stored_trace::resource_spans;
use crate::api::ApiError;
use crate::app::App;
use crate::receive::tenant_of;

/// Grafana's "save and test".
pub(super) async fn echo() -> &'static str {
    "echo\n"
}

/// `/api/traces/{id}`: 404 without a body if there is no such trace.
pub(super) async fn trace_v1(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, TextError> {
    answer(&app, &id, &headers, Envelope::V1).await
}

/// `/api/v2/traces/{id}`: an empty trace if there is none.
pub(super) async fn trace_v2(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, TextError> {
    answer(&app, &id, &headers, Envelope::V2).await
}

/// What stands around the spans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Envelope {
    V1,
    V2,
}

/// A trace in protobuf; OTLP's request for export has the same form.
#[derive(Clone, PartialEq, Message)]
struct Trace {
    #[prost(message, repeated, tag = "1")]
    resource_spans: Vec<ResourceSpans>,
}

/// The answer of the second version. Its decoders want a trace even where there is none.
#[derive(Clone, PartialEq, Message)]
struct TraceByIdResponse {
    #[prost(message, optional, tag = "1")]
    trace: Option<Trace>,
}

impl Envelope {
    fn json(self) -> (&'static str, &'static str) {
        match self {
            Self::V1 => (r#"{"batches":["#, "]}"),
            Self::V2 => (r#"{"trace":{"resourceSpans":["#, r#"]},"metrics":{}}"#),
        }
    }

    /// A part as bytes. Messages that are written one after another are read as one, and their lists joined.
    fn part(self, form: Form, groups: Vec<ResourceSpans>, is_first: bool) -> Result<Vec<u8>, ApiError> {
        let trace = Trace { resource_spans: groups };
        Ok(match (form, self) {
            (Form::Protobuf, Self::V1) => trace.encode_to_vec(),
            (Form::Protobuf, Self::V2) => TraceByIdResponse { trace: Some(trace) }.encode_to_vec(),
            (Form::Json, _) => {
                let list = json_bytes(&trace.resource_spans)?;
                let mut part = if is_first { self.json().0.as_bytes().to_vec() } else { b",".to_vec() };
                // Without the brackets: the list goes on in the next part.
                part.extend_from_slice(&list[1..list.len() - 1]);
                part
            }
        })
    }

    fn end(self, form: Form) -> &'static [u8] {
        match form {
            Form::Json => self.json().1.as_bytes(),
            Form::Protobuf => b"",
        }
    }
}

async fn answer(app: &App, id: &str, headers: &HeaderMap, envelope: Envelope) -> Result<Response, TextError> {
    let core = app.core()?;
    let tenant = tenant_of(app, headers)?;
    let form = Form::asked_for(headers);
    let trace_id: TraceId =
        id.parse().map_err(|error: hotspan_model::ids::IdError| ApiError::invalid(error.to_string()))?;
    let mut run = core.engine.start_trace(&tenant, trace_id);
    let content_type = [(header::CONTENT_TYPE, form.content_type())];
    let Some(first) = run.next_part().await? else {
        return Ok(match (envelope, form) {
            (Envelope::V1, _) => StatusCode::NOT_FOUND.into_response(),
            (Envelope::V2, Form::Json) => (content_type, r#"{"trace":{},"metrics":{}}"#).into_response(),
            (Envelope::V2, Form::Protobuf) => (content_type, envelope.part(form, Vec::new(), true)?).into_response(),
        });
    };
    let second = run.next_part().await?;
    let profiled = profiled_spans(&core.engine, &tenant, trace_id, &first, second.is_none()).await?;
    let mut body = envelope.part(form, resource_spans(&first, &profiled), true)?;
    drop(first);
    let Some(second) = second else {
        body.extend_from_slice(envelope.end(form));
        return Ok((content_type, body).into_response());
    };
    body.extend(envelope.part(form, resource_spans(&second, &profiled), false)?);
    let rest = stream::try_unfold(Some((run, profiled)), move |state| next_piece(state, envelope, form));
    let pieces = stream::once(std::future::ready(Ok(Bytes::from(body))));
    Ok((
        content_type,
        Body::from_stream(pieces.chain(rest).map_err(|error: ApiError| std::io::Error::other(error.message))),
    )
        .into_response())
}

type Remaining = (TraceRun, HashSet<SpanId>);

/// The next piece of a long trace, and the end after the last.
async fn next_piece(
    state: Option<Remaining>,
    envelope: Envelope,
    form: Form,
) -> Result<Option<(Bytes, Option<Remaining>)>, ApiError> {
    let Some((mut run, profiled)) = state else { return Ok(None) };
    match run.next_part().await? {
        Some(spans) => {
            let piece = envelope.part(form, resource_spans(&spans, &profiled), false)?;
            Ok(Some((Bytes::from(piece), Some((run, profiled)))))
        }
        None => Ok(Some((Bytes::from_static(envelope.end(form)), None))),
    }
}

const MINUTE: i64 = 60 * 1_000_000_000;

/// The spans that have samples. Those of long traces are looked for in the hours around.
async fn profiled_spans(
    engine: &Engine,
    tenant: &TenantId,
    trace_id: TraceId,
    spans: &[StoredSpan],
    is_whole: bool,
) -> Result<HashSet<SpanId>, ApiError> {
    let start = spans.iter().map(|span| span.start).min().unwrap_or(0);
    let end = spans.iter().map(|span| span.start.saturating_add(span.duration.max(0))).max().unwrap_or(0);
    let (before, after) = if is_whole { (MINUTE, MINUTE) } else { (60 * MINUTE, 6 * 60 * MINUTE) };
    Ok(engine.profiled_spans(tenant, trace_id, (start.saturating_sub(before), end.saturating_add(after))).await?)
}
