//! Answers to what comes to OTLP's doors and is not taken there: other signals, other paths, other methods (R4, R7).

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use http::{HeaderValue, Method, StatusCode, header};

use super::otlp::refuse;
use super::{Intake, Refusal};
use crate::app::App;
use crate::rpc::spoken;

/// What counts as the signal of a request that names none.
const UNKNOWN: &str = "unknown";

/// Metrics and logs, which SDKs and collectors send to the same address unless they are told not to.
pub(super) async fn other_signal(State(app): State<Arc<App>>, request: Request) -> Response {
    let is_metrics = request.uri().path().to_ascii_lowercase().contains("metrics");
    let (signal, exporter) =
        if is_metrics { ("metrics", "OTEL_METRICS_EXPORTER") } else { ("logs", "OTEL_LOGS_EXPORTER") };
    let message = format!(
        "{signal} are not stored here, traces and profiles only; set {exporter}=none, or take this exporter out of the \
         collector's {signal} pipeline"
    );
    answer(&app, request, signal, &Refusal::NotHere { status: StatusCode::NOT_FOUND, reason: "not_stored", message })
        .await
}

/// A path that nothing is at, on a port that has OTLP alone.
pub(super) async fn unknown_path(State(app): State<Arc<App>>, request: Request) -> Response {
    nothing_there(&app, request, ", and all else is on the port of --http").await
}

/// The same for what looks like OTLP on the port that has all else too.
pub(crate) async fn unknown_otlp_path(app: &App, request: Request) -> Response {
    nothing_there(app, request, "").await
}

async fn nothing_there(app: &App, request: Request, elsewhere: &str) -> Response {
    let message = format!(
        "there is nothing at {}; OTLP over HTTP is at /v1/traces and /v1/profiles, OTLP over gRPC has TraceService and \
         ProfilesService{elsewhere}",
        request.uri().path()
    );
    answer(app, request, UNKNOWN, &Refusal::NotHere { status: StatusCode::NOT_FOUND, reason: "unknown_path", message })
        .await
}

/// Anything but POST.
pub(super) async fn wrong_method(State(app): State<Arc<App>>, request: Request) -> Response {
    let (method, path) = (request.method(), request.uri().path());
    let message = format!("{path} is sent to with POST, and {method} came");
    let refusal = Refusal::NotHere { status: StatusCode::METHOD_NOT_ALLOWED, reason: "wrong_method", message };
    let mut response = answer(&app, request, UNKNOWN, &refusal).await;
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
    response
}

async fn answer(app: &App, request: Request, signal: &'static str, refusal: &Refusal) -> Response {
    let (protocol, codec) = spoken(request.headers());
    if request.method() != Method::GET {
        Intake::of_data(app).discard(&mut request.into_body().into_data_stream()).await;
    }
    refuse(app, signal, protocol, codec, refusal)
}
