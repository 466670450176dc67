//! `tempopb.StreamingQuerier`: the same questions, answered part by part as the work goes on.
//!
//! A part holds what the parts before did not; metrics hold what is known so far. Work is done while the client reads: a
//! client that leaves ends it.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt};
use prost::Message;

use super::messages::{
    QueryInstantRequest, QueryRangeRequest, QueryRangeResponse, SearchRequest, SearchResponse, SearchTagValuesRequest,
    SearchTagsRequest,
};
use super::metrics::{instant_message, range_message, start_instant, start_range};
use super::parameters::Parameters;
use super::search::search_message;
use super::tags::{
    NamesQuestion, metadata, start_values, tags_v1_message, tags_v2_message, unscoped, values_v1_message,
    values_v2_message,
};
use crate::api::ApiError;
use crate::api::asker::Asker;
use crate::app::App;
use crate::receive::{Intake, Refusal};
use crate::rpc::{Call, Code, rpc_error};

/// A message of a question is small; a larger one is a mistake or an attack.
const MAX_QUESTION_BYTES: usize = 1 << 20;
/// Clients take messages of 4 MiB by default; Tempo cuts at one.
const PACKET_BYTES: usize = 1 << 20;

/// Encoded messages, until an error or the end.
type Messages = BoxStream<'static, Result<Vec<u8>, ApiError>>;

/// Reads the question, starts its work, and answers with the stream that does it.
async fn serve<Q: Message + Default>(
    app: Arc<App>,
    request: Request,
    start: impl FnOnce(Asker, Q) -> Result<Messages, ApiError>,
) -> Response {
    let call = match Call::read(request, &mut Intake::of_question(MAX_QUESTION_BYTES)).await {
        Ok(call) => call,
        Err((error, protocol, _)) => {
            let refusal = Refusal::from(error);
            return rpc_error(protocol, refusal.code(), refusal.http_status(), &refusal.to_string());
        }
    };
    let started =
        call.unpack(MAX_QUESTION_BYTES).map_err(|error| ApiError::from(Refusal::from(error))).and_then(|bytes| {
            let question =
                Q::decode(bytes).map_err(|error| ApiError::invalid(format!("the message can't be read: {error}")))?;
            start(Asker::of(&app, &call.headers)?, question)
        });
    match started {
        Ok(messages) => {
            let told = |error: ApiError| (Code::of_status(error.status), error.message);
            call.stream(messages.map(move |message| message.map_err(told)))
        }
        Err(error) => rpc_error(call.protocol, Code::of_status(error.status), error.status, &error.message),
    }
}

/// The messages that each part of some work becomes, one after another.
fn parts<W, P, F>(
    work: W,
    next: impl Fn(W) -> F + Send + 'static,
    encode: impl Fn(P) -> Vec<Vec<u8>> + Send + 'static,
) -> Messages
where
    W: Send + 'static,
    P: Send + 'static,
    F: Future<Output = Result<Option<(P, W)>, ApiError>> + Send + 'static,
{
    let parts: BoxStream<'static, Result<P, ApiError>> = stream::try_unfold(work, next).boxed();
    in_messages(parts, encode).boxed()
}

fn in_messages<P>(
    parts: impl Stream<Item = Result<P, ApiError>>,
    encode: impl Fn(P) -> Vec<Vec<u8>>,
) -> impl Stream<Item = Result<Vec<u8>, ApiError>> {
    parts.flat_map(move |part| {
        stream::iter(match part {
            Ok(part) => encode(part).into_iter().map(Ok).collect::<Vec<_>>(),
            Err(error) => vec![Err(error)],
        })
    })
}

/// `Search`.
pub(super) async fn search(State(app): State<Arc<App>>, request: Request) -> Response {
    serve(app, request, |asker, question: SearchRequest| {
        let parameters = Parameters::from(question);
        let Asker { core, tenant } = asker;
        let run = core.engine.start_search(&tenant, &parameters.program()?, parameters.search_query()?)?;
        let next = |mut run: hotspan_query::search::SearchRun| async move {
            Ok(run.next_part().await?.map(|part| (part, run)))
        };
        Ok(parts(run, next, |part| search_packets(search_message(&part))))
    })
    .await
}

/// Long answers are cut; each packet carries the metrics.
fn search_packets(message: SearchResponse) -> Vec<Vec<u8>> {
    let SearchResponse { traces, metrics, .. } = message;
    let packet = |traces| SearchResponse { traces, metrics, next_cursor: String::new() }.encode_to_vec();
    cut(traces).into_iter().map(packet).collect()
}

/// Pieces of a list that are about as long as a packet may be; one empty piece of an empty list.
fn cut<M: Message>(items: Vec<M>) -> Vec<Vec<M>> {
    let mut pieces = vec![Vec::new()];
    let mut bytes = 0;
    for item in items {
        let length = item.encoded_len();
        if bytes > 0 && bytes + length > PACKET_BYTES {
            pieces.push(Vec::new());
            bytes = 0;
        }
        bytes += length;
        if let Some(piece) = pieces.last_mut() {
            piece.push(item);
        }
    }
    pieces
}

/// `SearchTags`.
pub(super) async fn search_tags(State(app): State<Arc<App>>, request: Request) -> Response {
    serve(app, request, |asker, question: SearchTagsRequest| {
        let work = NamesQuestion::start(&asker, &Parameters::from(question), false)?;
        Ok(parts(work, next_names, |(names, metrics)| vec![tags_v1_message(names, metrics).encode_to_vec()]))
    })
    .await
}

/// `SearchTagsV2`.
pub(super) async fn search_tags_v2(State(app): State<Arc<App>>, request: Request) -> Response {
    serve(app, request, |asker, question: SearchTagsRequest| {
        let work = NamesQuestion::start(&asker, &Parameters::from(question), true)?;
        Ok(parts(work, next_names, |(names, metrics)| vec![tags_v2_message(names, metrics).encode_to_vec()]))
    })
    .await
}

type Names = (hotspan_query::search::TagScopes, super::messages::MetadataMetrics);

async fn next_names(mut work: NamesQuestion) -> Result<Option<(Names, NamesQuestion)>, ApiError> {
    let names = work.next_part().await?;
    Ok(names.map(|names| ((names, work.metrics()), work)))
}

/// `SearchTagValues`.
pub(super) async fn search_tag_values(State(app): State<Arc<App>>, request: Request) -> Response {
    serve(app, request, |asker, question: SearchTagValuesRequest| {
        let tag = unscoped(&question.tag_name);
        let work = start_values(&asker, &tag, &Parameters::from(question))?;
        Ok(parts(work, next_values, |(values, bytes)| vec![values_v1_message(values, metadata(bytes)).encode_to_vec()]))
    })
    .await
}

/// `SearchTagValuesV2`.
pub(super) async fn search_tag_values_v2(State(app): State<Arc<App>>, request: Request) -> Response {
    serve(app, request, |asker, question: SearchTagValuesRequest| {
        let tag = question.tag_name.clone();
        let work = start_values(&asker, &tag, &Parameters::from(question))?;
        Ok(parts(work, next_values, |(values, bytes)| vec![values_v2_message(values, metadata(bytes)).encode_to_vec()]))
    })
    .await
}

type Values = (std::collections::BTreeSet<hotspan_query::search::TagValue>, u64);

async fn next_values(
    mut work: hotspan_query::search::TagValuesRun,
) -> Result<Option<(Values, hotspan_query::search::TagValuesRun)>, ApiError> {
    let values = work.next_part().await?;
    Ok(values.map(|values| ((values, work.inspected_bytes()), work)))
}

/// `MetricsQueryRange`.
pub(super) async fn metrics_query_range(State(app): State<Arc<App>>, request: Request) -> Response {
    serve(app, request, |asker, question: QueryRangeRequest| {
        let parameters = Parameters::from(question);
        let work = start_range(&asker, &parameters)?;
        let encode = move |answer| {
            let QueryRangeResponse { series, metrics, status, message } = range_message(&answer, parameters.max_series);
            let packet =
                |series| QueryRangeResponse { series, metrics, status, message: message.clone() }.encode_to_vec();
            cut(series).into_iter().map(packet).collect()
        };
        Ok(parts(work, next_series, encode))
    })
    .await
}

/// `MetricsQueryInstant`.
pub(super) async fn metrics_query_instant(State(app): State<Arc<App>>, request: Request) -> Response {
    serve(app, request, |asker, question: QueryInstantRequest| {
        let work = start_instant(&asker, &Parameters::from(question))?;
        Ok(parts(work, next_series, |answer| vec![instant_message(&answer, None).encode_to_vec()]))
    })
    .await
}

async fn next_series(
    mut work: hotspan_query::search::MetricsRun,
) -> Result<Option<(hotspan_query::search::MetricsAnswer, hotspan_query::search::MetricsRun)>, ApiError> {
    Ok(work.next_part().await?.map(|answer| (answer, work)))
}
