//! `/api/v1/cohort/…`: the code of exactly the spans that a TraceQL search selects.

mod diff;
mod flame;
mod ledger;
mod request;
mod selected;
mod top;
mod traces;

use std::sync::Arc;

use axum::Router;
use axum::extract::rejection::JsonRejection;
use axum::response::Response;
use axum::routing::post;
use axum::{Json, body::Body};
use hotspan_traceql::ast::Sink;
use http::HeaderMap;

use self::request::{CohortBody, CohortQuestion, Wanted};
use super::QuestionError;
use super::asker::Asker;
use crate::app::App;

/// The routes of cohorts.
pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/api/v1/cohort", post(by_sink))
        .route("/api/v1/cohort/flame", post(flame))
        .route("/api/v1/cohort/top", post(top))
        .route("/api/v1/cohort/diff", post(diff))
        .route("/api/v1/cohort/ledger", post(ledger))
        .route("/api/v1/cohort/traces", post(traces))
}

type Asked = Result<Json<CohortBody>, JsonRejection>;

/// Answers whatever the query ends in.
async fn by_sink(asker: Asker, headers: HeaderMap, body: Asked) -> Result<Response<Body>, QuestionError> {
    answer(&asker, &headers, body, None).await
}

async fn flame(asker: Asker, headers: HeaderMap, body: Asked) -> Result<Response<Body>, QuestionError> {
    answer(&asker, &headers, body, Some(Wanted::Flame)).await
}

async fn top(asker: Asker, headers: HeaderMap, body: Asked) -> Result<Response<Body>, QuestionError> {
    answer(&asker, &headers, body, Some(Wanted::Top)).await
}

async fn diff(asker: Asker, headers: HeaderMap, body: Asked) -> Result<Response<Body>, QuestionError> {
    answer(&asker, &headers, body, Some(Wanted::Diff)).await
}

async fn ledger(asker: Asker, headers: HeaderMap, body: Asked) -> Result<Response<Body>, QuestionError> {
    answer(&asker, &headers, body, Some(Wanted::Ledger)).await
}

async fn traces(asker: Asker, headers: HeaderMap, body: Asked) -> Result<Response<Body>, QuestionError> {
    answer(&asker, &headers, body, Some(Wanted::Traces)).await
}

async fn answer(
    Asker { core, tenant }: &Asker,
    headers: &HeaderMap,
    body: Asked,
    wanted: Option<Wanted>,
) -> Result<Response<Body>, QuestionError> {
    let Json(body) = body.map_err(|error| QuestionError::invalid(error.body_text()))?;
    let question = CohortQuestion::read(body, wanted)?;
    match question.wanted {
        Wanted::Flame if question.is_merged() => ledger::merged(core, tenant, &question).await,
        Wanted::Flame => flame::flame(core, tenant, &question, headers).await,
        Wanted::Top => top::top(core, tenant, &question).await,
        Wanted::Diff => diff::diff(core, tenant, &question).await,
        Wanted::Ledger => ledger::ledger(core, tenant, &question).await,
        Wanted::Traces => traces::traces(core, tenant, &question).await,
    }
}

impl Wanted {
    /// What a query's last stage asks for.
    fn of(sink: &Sink) -> Self {
        match sink {
            Sink::Flame { .. } => Self::Flame,
            Sink::Top { .. } => Self::Top,
            Sink::Diff { .. } => Self::Diff,
            Sink::Ledger => Self::Ledger,
        }
    }
}
