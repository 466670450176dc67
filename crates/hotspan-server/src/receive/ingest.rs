//! `/ingest`: what Pyroscope's Go, Java and Node clients, and many scripts, send profiles to.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Query, Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use hotspan_formats::app_name::AppName;
use hotspan_formats::{DecodeOptions, Encoding, Fault};
use hotspan_lake::catalog::now_nanos;
use hotspan_model::labels::SERVICE_NAME;
use http::{HeaderValue, StatusCode, Uri, header};

use super::ingest_body::{UploadBody, content_type};
use super::ingest_format::{IngestFormat, decode_ingest};
use super::ingest_rows::{SIGNAL, store_profiles};
use super::{Arrived, Intake, Refusal};
use crate::app::App;
use crate::rpc::{Protocol, rpc_error};
use crate::time_text::parse_time;

/// `/ingest` under both of its paths.
pub(crate) fn ingest_routes() -> Router<Arc<App>> {
    Router::new().route("/ingest", post(ingest)).route("/pyroscope/ingest", post(ingest))
}

/// All texts: a number that can't be read falls back to a default instead of costing a profile.
#[derive(Debug)]
struct IngestParameters {
    name: String,
    from: String,
    until: String,
    sample_rate: String,
    spy_name: String,
    format: String,
}

impl IngestParameters {
    /// Those of an address. Of one that is there twice the first counts, as it does for Pyroscope.
    fn of(uri: &Uri) -> Result<Self, Refusal> {
        let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(uri)
            .map_err(|error| Refusal::Invalid(format!("the parameters can't be read: {}", error.body_text())))?;
        let first = |name: &str| pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
        let text = |name: &str| first(name).unwrap_or_default();
        Ok(Self {
            name: text("name"),
            from: text("from"),
            until: text("until"),
            sample_rate: text("sampleRate"),
            spy_name: text("spyName"),
            format: text("format"),
        })
    }
}

async fn ingest(State(app): State<Arc<App>>, request: Request) -> Response {
    match take(&app, request).await {
        // Go's client takes nothing but 200 for success.
        Ok(()) => StatusCode::OK.into_response(),
        Err((refusal, typed)) => refuse(&app, &refusal, typed),
    }
}

/// Takes a request in; an error comes with whether the format has types of its own, which decides its status.
async fn take(app: &Arc<App>, request: Request) -> Result<(), (Refusal, bool)> {
    let untyped = |refusal: Refusal| (refusal, false);
    let parameters = IngestParameters::of(request.uri()).map_err(untyped)?;
    let name = AppName::parse(&parameters.name)
        .map_err(|error| untyped(Refusal::Invalid(format!("name {:?}: {error}", parameters.name))))?;
    let mut intake = Intake::of_data(app);
    let (parts, body) = UploadBody::read(request, &mut intake).await.map_err(untyped)?;
    let format = IngestFormat::choose(&parameters.format, &content_type(&parts));
    let mut options = options(&parameters, &name, format);
    let content = body.content();
    let arrived = Arrived { encoding: Encoding::from_magic(&content), bytes: &content, held: intake.take() };
    let stored = store_profiles(app, &parts.headers, arrived, move |limits, sink, room| {
        options.limits = limits.clone();
        decode_ingest(format, &body, &name, options, sink, room)
    });
    stored.await.map_err(|refusal| (refusal, format.is_typed()))?;
    Ok(())
}

fn options(parameters: &IngestParameters, name: &AppName, format: IngestFormat) -> DecodeOptions {
    let now = now_nanos();
    // Nothing was measured in 1970: a zero is a time that the sender does not know.
    let time = |text: &str| parse_time(text, now).ok().filter(|time| *time > 0);
    let mut labels = name.labels.clone();
    // `order-service.cpu` is the service order-service: scripts ask for it by that name whatever format it came in.
    labels.set_default(SERVICE_NAME, name.service(format.is_typed()));
    DecodeOptions {
        labels,
        from: time(&parameters.from).unwrap_or_default(),
        until: time(&parameters.until).unwrap_or(now),
        spy_name: parameters.spy_name.clone(),
        sample_rate: parameters.sample_rate.parse().ok().filter(|rate| *rate > 0),
        tolerant: true,
        ..DecodeOptions::default()
    }
}

fn refuse(app: &App, refusal: &Refusal, typed: bool) -> Response {
    app.metrics.refused(SIGNAL, refusal.reason());
    let status = match refusal {
        Refusal::Profile(error) if typed && error.fault != Fault::TooLarge => StatusCode::UNPROCESSABLE_ENTITY,
        Refusal::Invalid(_) | Refusal::Untimely(_) if typed => StatusCode::UNPROCESSABLE_ENTITY,
        other => other.http_status(),
    };
    let mut response = rpc_error(Protocol::Unary, refusal.code(), status, &refusal.to_string());
    if let Some(wait) = refusal.retry_after() {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(wait.as_secs().max(1)));
    }
    response
}
