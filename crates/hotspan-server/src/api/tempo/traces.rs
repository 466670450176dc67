//! A trace by its id. A long one is sent part by part, so that its size does not matter.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use hashbrown::HashSet;
use hotspan_lake::catalog::now_nanos;
use hotspan_model::{Exactness, SpanId, TenantId, TraceId};
use hotspan_query::search::{KeptSpans, TraceFilter};
use hotspan_query::{Engine, StoredSpan, TraceRun};
use hotspan_traceql::Program;
use http::{HeaderMap, StatusCode, header};
use prost::Message;
use serde::Deserialize;

use super::answer::{Form, Plain, TextError, json_bytes};
use super::messages::PARTIAL;
use super::otlp_messages::ResourceSpans;
use super::rejected_note::rejected_note;
use super::stored_trace::resource_spans;
use crate::api::ApiError;
use crate::api::asker::{Asker, Given};
use crate::api::exactness::with_exactness;
use crate::time_text::parse_time;

/// Grafana's "save and test".
pub(super) async fn echo() -> &'static str {
    "echo\n"
}

/// `/api/traces/{id}`: 404 without a body if there is no such trace.
pub(super) async fn trace_v1(
    Plain(asker): Plain<Asker>,
    Path(id): Path<String>,
    Plain(Given(parameters)): Plain<Given<TraceParameters>>,
    headers: HeaderMap,
) -> Result<Response, TextError> {
    parameters.check_times()?;
    answer(asker, &id, &headers, Envelope::V1, None).await
}

/// `/api/v2/traces/{id}`: an empty trace if there is none; only some of its spans if there is a query.
pub(super) async fn trace_v2(
    Plain(asker): Plain<Asker>,
    Path(id): Path<String>,
    Plain(Given(parameters)): Plain<Given<TraceParameters>>,
    headers: HeaderMap,
) -> Result<Response, TextError> {
    parameters.check_times()?;
    answer(asker, &id, &headers, Envelope::V2, parameters.filter()?).await
}

/// What may be asked of a trace.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TraceParameters {
    start: Option<String>,
    end: Option<String>,
    q: Option<String>,
    keep_hierarchy: Option<bool>,
    match_depth: Option<i64>,
    ancestor_depth: Option<i64>,
}

impl TraceParameters {
    /// Tempo is told by times where to look. Here a trace is found wherever it is, and given whole; but a time that
    /// can't be read is a mistake that the asker should know of.
    fn check_times(&self) -> Result<(), ApiError> {
        let now = now_nanos();
        for (name, text) in [("start", &self.start), ("end", &self.end)] {
            if let Some(text) = text.as_deref().filter(|text| !text.is_empty()) {
                parse_time(text, now).map_err(|error| ApiError::invalid(format!("{name}: {error}")))?;
            }
        }
        Ok(())
    }

    fn filter(&self) -> Result<Option<TraceFilter>, ApiError> {
        let Some(text) = self.q.as_deref().filter(|text| !text.trim().is_empty()) else { return Ok(None) };
        let program = Program::new(text).map_err(|error| ApiError::invalid(error.render(text)))?;
        let generations = |name: &str, depth: Option<i64>, default: i64| match depth.unwrap_or(default) {
            -1 => Ok(None),
            depth => usize::try_from(depth).map(Some).map_err(|_| {
                ApiError::invalid(format!("{name}: {depth} is not a number of generations; -1 stands for all"))
            }),
        };
        let ancestors = match self.keep_hierarchy.unwrap_or(false) {
            true => generations("ancestor_depth", self.ancestor_depth, -1)?,
            false => Some(0),
        };
        let descendants = generations("match_depth", self.match_depth, 0)?;
        Ok(Some(TraceFilter { program: Arc::new(program), ancestors, descendants }))
    }
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
    #[prost(int32, tag = "3")]
    status: i32,
    #[prost(string, tag = "4")]
    message: String,
}

impl Envelope {
    /// What stands before the first span.
    fn start(self, form: Form) -> &'static [u8] {
        match (form, self) {
            (Form::Json, Self::V1) => br#"{"batches":["#,
            (Form::Json, Self::V2) => br#"{"trace":{"resourceSpans":["#,
            (Form::Protobuf, _) => b"",
        }
    }

    /// A part as bytes. Messages that are written one after another are read as one, and their lists joined.
    fn part(self, form: Form, groups: Vec<ResourceSpans>, follows_another: bool) -> Result<Vec<u8>, ApiError> {
        let trace = Trace { resource_spans: groups };
        Ok(match (form, self) {
            (Form::Protobuf, Self::V1) => trace.encode_to_vec(),
            (Form::Protobuf, Self::V2) => {
                TraceByIdResponse { trace: Some(trace), ..TraceByIdResponse::default() }.encode_to_vec()
            }
            (Form::Json, _) if trace.resource_spans.is_empty() => Vec::new(),
            (Form::Json, _) => {
                let list = json_bytes(&trace.resource_spans)?;
                let mut part = if follows_another { b",".to_vec() } else { Vec::new() };
                // Without the brackets: the list goes on in the next part.
                part.extend_from_slice(&list[1..list.len() - 1]);
                part
            }
        })
    }

    /// What stands behind the last span; says how many are missing.
    fn end(self, form: Form, left_out: usize, exactness: &Exactness) -> Vec<u8> {
        let unmatched = (left_out > 0).then(|| format!("{left_out} spans of the trace do not match"));
        let message = unmatched.into_iter().chain(rejected_note(exactness)).collect::<Vec<_>>().join("; ");
        match (form, self, Some(message).filter(|message| !message.is_empty())) {
            (Form::Json, Self::V1, _) => b"]}".to_vec(),
            (Form::Json, Self::V2, None) => br#"]},"metrics":{}}"#.to_vec(),
            (Form::Json, Self::V2, Some(message)) => {
                format!(r#"]}},"metrics":{{}},"status":"PARTIAL","message":"{message}"}}"#).into_bytes()
            }
            (Form::Protobuf, Self::V2, Some(message)) => {
                TraceByIdResponse { status: PARTIAL, message, ..TraceByIdResponse::default() }.encode_to_vec()
            }
            (Form::Protobuf, ..) => Vec::new(),
        }
    }
}

async fn answer(
    Asker { core, tenant }: Asker,
    id: &str,
    headers: &HeaderMap,
    envelope: Envelope,
    filter: Option<TraceFilter>,
) -> Result<Response, TextError> {
    let form = Form::asked_for(headers);
    let trace_id: TraceId =
        id.parse().map_err(|error: hotspan_model::ids::IdError| ApiError::invalid(error.to_string()))?;
    let kept = match &filter {
        Some(filter) => Some(core.engine.kept_spans(&tenant, trace_id, filter).await?),
        None => None,
    };
    let run = core.engine.start_trace(&tenant, trace_id);
    let mut reading =
        Reading { engine: core.engine, tenant, trace_id, run, kept, profiled: None, envelope, form, is_begun: false };
    let content_type = [(header::CONTENT_TYPE, form.content_type())];
    let Some(first) = reading.run.next_part().await? else {
        let nothing = match (envelope, form) {
            (Envelope::V1, _) => StatusCode::NOT_FOUND.into_response(),
            (Envelope::V2, Form::Json) => (content_type, r#"{"trace":{},"metrics":{}}"#).into_response(),
            (Envelope::V2, Form::Protobuf) => (content_type, envelope.part(form, Vec::new(), false)?).into_response(),
        };
        return Ok(with_exactness(nothing, &reading.run.exactness()));
    };
    let second = reading.run.next_part().await?;
    let mut body = envelope.start(form).to_vec();
    body.extend(reading.piece(first).await?);
    let Some(second) = second else {
        body.extend(reading.end());
        return Ok(with_exactness((content_type, body), &reading.run.exactness()));
    };
    body.extend(reading.piece(second).await?);
    let rest = stream::try_unfold(Some(reading), next_piece);
    let pieces = stream::once(std::future::ready(Ok(Bytes::from(body))));
    Ok((
        content_type,
        Body::from_stream(pieces.chain(rest).map_err(|error: ApiError| std::io::Error::other(error.message))),
    )
        .into_response())
}

/// The next piece of a long trace, and the end after the last.
async fn next_piece(reading: Option<Reading>) -> Result<Option<(Bytes, Option<Reading>)>, ApiError> {
    let Some(mut reading) = reading else { return Ok(None) };
    match reading.run.next_part().await? {
        Some(spans) => {
            let piece = reading.piece(spans).await?;
            Ok(Some((Bytes::from(piece), Some(reading))))
        }
        None => Ok(Some((Bytes::from(reading.end()), None))),
    }
}

/// A trace that is being given, part by part.
struct Reading {
    engine: Engine,
    tenant: TenantId,
    trace_id: TraceId,
    run: TraceRun,
    /// The spans that are given; all, if there is no filter.
    kept: Option<KeptSpans>,
    /// The spans whose samples name the trace, once they have been looked for.
    profiled: Option<HashSet<SpanId>>,
    envelope: Envelope,
    form: Form,
    /// Whether spans have been given.
    is_begun: bool,
}

impl Reading {
    async fn piece(&mut self, mut spans: Vec<StoredSpan>) -> Result<Vec<u8>, ApiError> {
        self.find_profiled(&spans).await?;
        if let Some(kept) = &self.kept {
            spans.retain(|span| kept.spans.contains(&span.span_id));
        }
        let groups = resource_spans(&spans, self.profiled.get_or_insert_default());
        let piece = self.envelope.part(self.form, groups, self.is_begun);
        self.is_begun |= !spans.is_empty();
        piece
    }

    /// Notes which spans have samples. Samples may name their trace, which is asked once, or only their span.
    async fn find_profiled(&mut self, spans: &[StoredSpan]) -> Result<(), ApiError> {
        // Whenever: files that are pushed for a trace are dated by their recording, and clocks differ.
        let range = (i64::MIN, i64::MAX);
        let by_trace = self.profiled.is_none().then_some(self.trace_id);
        let ids = spans.iter().map(|span| span.span_id);
        let found = self.engine.profiled_spans(&self.tenant, by_trace, ids, range).await?;
        // A trace is whole without them: samples that were rejected are no part of it.
        self.profiled.get_or_insert_default().extend(found.answer);
        Ok(())
    }

    fn end(&self) -> Vec<u8> {
        let left_out = self.kept.as_ref().map_or(0, |kept| kept.left_out);
        self.envelope.end(self.form, left_out, &self.run.exactness())
    }
}
