//! `POST /api/v1/profiles`: files of any format, as profilers left them on disk.

use std::sync::Arc;

use axum::extract::{Query, Request, State};
use axum::response::Response;
use axum::routing::post;
use axum::{Json, Router};
use hotspan_formats::span_identity::{parse_span_id, parse_trace_id};
use hotspan_formats::{DecodeOptions, decode_file};
use hotspan_lake::catalog::now_nanos;
use hotspan_model::Link;
use hotspan_model::labels::SERVICE_NAME;
use http::Uri;
use serde_json::{Value, json};

use super::Refusal;
use super::ingest_body::UploadBody;
use super::ingest_rows::{SIGNAL, store_profiles};
use crate::app::App;
use crate::rpc::{Protocol, rpc_error};
use crate::time_text::parse_time;

/// Uploads.
pub(crate) fn upload_routes() -> Router<Arc<App>> {
    Router::new().route("/api/v1/profiles", post(upload))
}

async fn upload(State(app): State<Arc<App>>, request: Request) -> Result<Json<Value>, Response> {
    take(&app, request).await.map_err(|refusal| {
        app.metrics.refused(SIGNAL, refusal.reason());
        rpc_error(Protocol::Unary, refusal.code(), refusal.http_status(), &refusal.to_string())
    })
}

async fn take(app: &Arc<App>, request: Request) -> Result<Json<Value>, Refusal> {
    let mut options = options(request.uri())?;
    let (parts, body) = UploadBody::read(request, app.settings.limits.max_bytes).await?;
    let stored = store_profiles(app, &parts.headers, body.len(), move |limits, sink| {
        options.limits = limits.clone();
        let files = match &body {
            UploadBody::Bare(bytes) => vec![bytes],
            UploadBody::Form(parts) => parts.iter().map(|(_, bytes)| bytes).collect(),
        };
        if files.is_empty() {
            return Err(Refusal::Invalid("the form has no file".to_owned()));
        }
        for file in files {
            sink.push(decode_file(file, &options)?);
        }
        Ok(())
    });
    let stored = stored.await?;
    Ok(Json(json!({ "profiles": stored.profiles, "samples": stored.samples, "duplicates": stored.duplicates })))
}

/// Facts about the file that stand in the query: `service`, `label=k=v` (repeatable), ids and times.
fn options(uri: &Uri) -> Result<DecodeOptions, Refusal> {
    let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(uri)
        .map_err(|error| Refusal::Invalid(format!("the parameters can't be read: {}", error.body_text())))?;
    let now = now_nanos();
    let mut options = DecodeOptions { from: now, ..DecodeOptions::default() };
    let mut link = Link::default();
    for (key, value) in &pairs {
        let no_id = || Refusal::Invalid(format!("{key}: {value:?} is not an id"));
        let time = || parse_time(value, now).map_err(|error| Refusal::Invalid(format!("{key}: {error}")));
        match key.as_str() {
            "service" | "service_name" | "app" => options.labels.set(SERVICE_NAME, value.as_str()),
            "label" => {
                let (name, value) = value
                    .split_once('=')
                    .filter(|(name, _)| !name.is_empty())
                    .ok_or_else(|| Refusal::Invalid(format!("label: {value:?} is not of the form name=value")))?;
                options.labels.set(name, value);
            }
            "trace_id" => link.trace_id = parse_trace_id(value).ok_or_else(no_id)?,
            "span_id" => link.span_id = parse_span_id(value).ok_or_else(no_id)?,
            "from" => options.from = time()?,
            "until" => options.until = time()?,
            "name" => options.name = Some(value.clone()),
            "sample_rate" | "sampleRate" => options.sample_rate = value.parse().ok(),
            other => {
                return Err(Refusal::Invalid(format!(
                    "the parameter {other:?} is not known; there are service, label, trace_id, span_id, from, until, \
                     name and sample_rate"
                )));
            }
        }
    }
    options.link = link;
    Ok(options)
}
