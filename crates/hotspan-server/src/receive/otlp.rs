//! OTLP: traces and profiles, over gRPC and HTTP.

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use bytes::Bytes;
use hotspan_formats::Limits;
use hotspan_formats::otlp::json::{ProfilesJson, decode_traces_json};
use hotspan_formats::otlp::response::{Format, Status, profiles_response, trace_response};
use hotspan_formats::otlp::{Outcome, decode_profiles, decode_traces};
use hotspan_lake::Table;
use hotspan_lake::catalog::now_nanos;
use hotspan_lake::ingest::{Reservation, expect_receipt};
use hotspan_lake::rejected::{Rejected, RejectedItems};
use hotspan_lake::rows::{Rows, SpanRows};
use hotspan_model::TenantId;
use http::{HeaderValue, header};
use tracing::{Span, warn};

use super::not_here::{other_signal, unknown_path, wrong_method};
use super::{Arrived, Intake, Refusal, Room, tenant_of};
use crate::app::App;
use crate::rpc::{Call, Codec, Protocol, framed_error};
use crate::self_tracing::child_span;

/// Which of OTLP's signals a request carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Signal {
    Traces,
    Profiles,
}

impl Signal {
    /// Where its items go.
    fn table(self) -> Table {
        match self {
            Self::Traces => Table::Spans,
            Self::Profiles => Table::Samples,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Traces => "traces",
            Self::Profiles => "profiles",
        }
    }
}

/// OTLP over gRPC and HTTP, for a listener that has nothing else. Both protocols are on both ports, since they are told apart
/// by what comes, and an address is easily given the port of the other.
pub(crate) fn otlp_alone(app: Arc<App>) -> Router {
    otlp_routes().fallback(unknown_path).method_not_allowed_fallback(wrong_method).with_state(app)
}

/// Paths that an endpoint may have already when a collector or an SDK adds its own: one `endpoint` may serve several signals.
const ENDPOINT_PATHS: [&str; 5] = ["", "/otlp", "/v1/traces", "/v1/profiles", "/v1development/profiles"];

/// OTLP over gRPC and HTTP, over the latter also under the paths that are made of an endpoint which has a path already.
pub(crate) fn otlp_routes() -> Router<Arc<App>> {
    let mut routes = Router::new()
        .route("/opentelemetry.proto.collector.trace.v1.TraceService/Export", post(export_traces))
        .route("/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export", post(export_profiles))
        .route("/opentelemetry.proto.collector.metrics.v1.MetricsService/Export", post(other_signal))
        .route("/opentelemetry.proto.collector.logs.v1.LogsService/Export", post(other_signal));
    for endpoint in ENDPOINT_PATHS {
        let paths = [
            ("/v1/traces", post(export_traces)),
            ("/v1/profiles", post(export_profiles)),
            ("/v1development/profiles", post(export_profiles)),
            ("/v1/metrics", post(other_signal)),
            ("/v1/logs", post(other_signal)),
        ];
        for (path, method) in paths {
            routes = routes.route(&format!("{endpoint}{path}"), method.clone());
            routes = routes.route(&format!("{endpoint}{path}/"), method);
        }
    }
    routes
}

async fn export_traces(State(app): State<Arc<App>>, request: Request) -> Response {
    export(app, request, Signal::Traces).await
}

async fn export_profiles(State(app): State<Arc<App>>, request: Request) -> Response {
    export(app, request, Signal::Profiles).await
}

async fn export(app: Arc<App>, request: Request, signal: Signal) -> Response {
    let mut intake = Intake::of_data(&app);
    let call = match Call::read(request, &mut intake).await {
        Ok(call) => Arc::new(call),
        Err((error, protocol, codec)) => return refuse(&app, signal.name(), protocol, codec, &error.into()),
    };
    match store(&app, &call, intake.take(), signal).await {
        Ok(outcome) => {
            app.metrics.received(signal.name(), &outcome);
            warn_of_rejected(&app, signal.name(), &outcome);
            let format = format_of(call.codec);
            call.answer(match signal {
                Signal::Traces => trace_response(&outcome, format),
                Signal::Profiles => profiles_response(&outcome, format),
            })
        }
        Err(refusal) => refuse(&app, signal.name(), call.protocol, call.codec, &refusal),
    }
}

/// Takes a request in: room first, then unpacking and decoding off the reactor, from where rows go on to their commit.
async fn store(
    app: &Arc<App>,
    call: &Arc<Call>,
    held: Option<Reservation>,
    signal: Signal,
) -> Result<Outcome, Refusal> {
    let core = app.opened_core()?;
    let tenant = tenant_of(app, &call.headers)?;
    let arrived = Arrived { encoding: call.encoding, bytes: &call.message, held };
    let mut room = Room::for_body(&core.ingest, arrived, app.settings.limits.max_bytes)?;
    let (unpacking, ingest, owner) = (Arc::clone(call), core.ingest.clone(), tenant.clone());
    let clock = app.settings.clock(signal.table(), now_nanos());
    let latest = clock.latest();
    let limits = Limits { clock, ..app.settings.limits.clone() };
    let (answer, receipt) = expect_receipt();
    let request_span = Span::current();
    let decode = move || {
        let limits = &limits;
        let (message, codec) = (unpacking.unpack(limits.max_bytes)?, unpacking.codec);
        room.decodes(message.len(), 0)?;
        let (rows, outcome) = match signal {
            Signal::Traces => decode_trace_rows(&message, codec, limits)?,
            Signal::Profiles => decode_profile_rows(&message, codec, limits, &ingest, &owner)?,
        };
        let reservation = room.decoded(rows.size())?;
        ingest.submit_for(answer, owner, rows, reservation);
        Ok::<_, Refusal>((outcome, request_span.in_scope(|| child_span!("commit"))))
    };
    let decoded = app.decoding.decode(decode);
    // Nothing wakes this task in between. What can't be decoded has no receipt, and says why below.
    let receipt = receipt.await;
    let (outcome, commit) = decoded.await??;
    drop(commit);
    receipt?;
    note_rejected(core.engine.lake().rejected(), &tenant, signal, &outcome, latest);
    Ok(outcome)
}

/// Files what was rejected under the time that it tells of, so that answers about that time say so. What has no time, or one
/// that never comes, is filed under that of its arrival.
fn note_rejected(filed: &RejectedItems, tenant: &TenantId, signal: Signal, outcome: &Outcome, latest: i64) {
    let now = now_nanos();
    let (mut rest, of): (u64, fn(u64) -> Rejected) = match signal {
        Signal::Traces => (outcome.rejected, |spans| Rejected { spans, samples: 0 }),
        Signal::Profiles => (outcome.rejected_samples, |samples| Rejected { spans: 0, samples }),
    };
    for (time, count) in outcome.rejected_times.iter().filter(|(time, _)| *time <= latest) {
        filed.note(tenant, *time, of(*count));
        rest = rest.saturating_sub(*count);
    }
    filed.note(tenant, now, of(rest));
}

fn decode_trace_rows(message: &Bytes, codec: Codec, limits: &Limits) -> Result<(Rows, Outcome), Refusal> {
    let mut spans = SpanRows::with_room_for(message.len());
    let outcome = match codec {
        Codec::Protobuf => decode_traces(message, limits, &mut spans)?,
        Codec::Json => decode_traces_json(message, limits, &mut spans)?,
    };
    Ok((Rows { spans, ..Rows::default() }, outcome))
}

fn decode_profile_rows(
    message: &Bytes,
    codec: Codec,
    limits: &Limits,
    ingest: &hotspan_lake::Ingest,
    tenant: &TenantId,
) -> Result<(Rows, Outcome), Refusal> {
    let mut rows = Rows::default();
    let outcome = match codec {
        Codec::Protobuf => {
            let (set, outcome, _version) = decode_profiles(message, limits, now_nanos())?;
            rows.profiles.push(&set, &ingest.known().of(tenant));
            outcome
        }
        Codec::Json => {
            let json = ProfilesJson::parse(message, limits)?;
            let (set, outcome) = json.decode(limits, now_nanos())?;
            rows.profiles.push(&set, &ingest.known().of(tenant));
            outcome
        }
    };
    Ok((rows, outcome))
}

fn format_of(codec: Codec) -> Format {
    match codec {
        Codec::Protobuf => Format::Protobuf,
        Codec::Json => Format::Json,
    }
}

pub(super) fn refuse(app: &App, signal: &'static str, protocol: Protocol, codec: Codec, refusal: &Refusal) -> Response {
    app.metrics.refused(signal, refusal.reason());
    let code = refusal.code();
    warn_of(app, signal, refusal);
    let mut status = Status::new(code as i32, refusal.to_string());
    if let Some(wait) = refusal.retry_after() {
        status = status.retry_after(wait);
    }
    if protocol != Protocol::Unary {
        let details = status.encode(Format::Protobuf);
        return framed_error(protocol, code, &refusal.to_string(), Some(&details));
    }
    let body = status.encode(format_of(codec));
    let content_type = HeaderValue::from_static(codec.content_type());
    let mut response = (refusal.http_status(), [(header::CONTENT_TYPE, content_type)], body).into_response();
    if let Some(wait) = refusal.retry_after() {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(wait.as_secs().max(1)));
    }
    response
}

fn warn_of(app: &App, signal: &'static str, refusal: &Refusal) {
    let (reason, retryable) = (refusal.reason(), refusal.retry_after().is_some());
    if let Some(requests) = app.repeated_warnings.due(signal, reason, Instant::now()) {
        warn!(signal, reason, retryable, requests, error = %refusal, "requests refused; told once a minute");
    }
}

/// Says that some of what a request brought was not taken: its sender was told, and many an SDK keeps that to itself.
fn warn_of_rejected(app: &App, signal: &'static str, outcome: &Outcome) {
    if outcome.rejected == 0 {
        return;
    }
    if let Some(requests) = app.repeated_warnings.due(signal, "rejected", Instant::now()) {
        warn!(signal, requests, error = outcome.message(), "requests taken in part; told once a minute");
    }
}
