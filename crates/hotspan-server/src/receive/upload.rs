//! `POST /api/v1/profiles`: files of any format, as profilers left them on disk.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Query, Request, State};
use axum::response::Response;
use axum::routing::post;
use axum::{Json, Router};
use hotspan_formats::jfr::is_recording;
use hotspan_formats::span_identity::{ID_FORMS, parse_span_id, parse_trace_id};
use hotspan_formats::{DecodeOptions, Encoding, Fault, Limits, TextType, decode_file, expanded};
use hotspan_lake::catalog::now_nanos;
use hotspan_model::labels::SERVICE_NAME;
use hotspan_model::{Link, ProfileType};
use http::{HeaderMap, HeaderValue, Uri, header};
use serde_json::{Value, json};

use super::ingest_body::{FormPart, UploadBody, content_type};
use super::ingest_rows::{RowSink, SIGNAL, Stored, store_profiles};
use super::intake::announced_length;
use super::long_recording::store_recording;
use super::spool::{SpoolLimits, Spooled};
use super::upload_name::UploadName;
use super::{Arrived, Intake, Refusal, Room, tenant_of};
use crate::app::App;
use crate::rpc::{Protocol, rpc_error};
use crate::time_text::parse_time;

/// How a file is read, and what it is called.
type NamedOptions = (DecodeOptions, UploadName);

/// Uploads.
pub(crate) fn upload_routes() -> Router<Arc<App>> {
    Router::new().route("/api/v1/profiles", post(upload))
}

async fn upload(State(app): State<Arc<App>>, request: Request) -> Result<Json<Value>, Response> {
    take(&app, request).await.map_err(|refusal| {
        app.metrics.refused(SIGNAL, refusal.reason());
        let mut response = rpc_error(Protocol::Unary, refusal.code(), refusal.http_status(), &refusal.to_string());
        if let Some(wait) = refusal.retry_after() {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(wait.as_secs().max(1)));
        }
        response
    })
}

async fn take(app: &Arc<App>, request: Request) -> Result<Json<Value>, Refusal> {
    let (mut options, name) = options(request.uri())?;
    options.limits = app.settings.limits.clone();
    let (parts, body) = request.into_parts();
    let stored = if content_type(&parts).starts_with("multipart/") {
        store_form(app, Request::from_parts(parts, body), (options, name)).await?
    } else {
        store_file(app, &parts.headers, body, (options, name)).await?
    };
    Ok(Json(json!({
        "profiles": stored.profiles,
        "samples": stored.samples,
        "duplicates": stored.duplicates,
        "profile_types": stored.profile_types,
        "cut_frames": stored.cut_frames,
        "cut_texts": stored.cut_texts,
    })))
}

/// Every part of a form is a file; all of them are stored, or none.
async fn store_form(app: &Arc<App>, request: Request, (options, name): NamedOptions) -> Result<Stored, Refusal> {
    let mut intake = Intake::of_data(app);
    let (parts, body) = UploadBody::read(request, &mut intake).await?;
    let content = body.content();
    let decode = move |limits: &Limits, sink: &mut RowSink, room: &mut Room| {
        let UploadBody::Form(files) = &body else { return Ok(()) };
        if files.is_empty() {
            return Err(Refusal::Invalid("the form has no file".to_owned()));
        }
        for FormPart { name: part, file_name, bytes } in files {
            let wrong = |error| Refusal::Part { part: part.clone(), error };
            let plain = expanded(bytes, limits).map_err(wrong)?;
            room.decodes(plain.len(), sink.size())?;
            let name = name.or_file(file_name.as_deref());
            sink.push(name.mark(decode_file(&plain, &options).map_err(wrong)?))?;
        }
        Ok(())
    };
    let arrived = Arrived { encoding: Encoding::from_magic(&content), bytes: &content, held: intake.take() };
    store_profiles(app, &parts.headers, arrived, decode).await
}

/// A file in one piece if it fits into a request's limits, else chunk by chunk if its format has chunks.
async fn store_file(
    app: &Arc<App>,
    headers: &HeaderMap,
    body: Body,
    (options, name): NamedOptions,
) -> Result<Stored, Refusal> {
    let tenant = tenant_of(app, headers)?;
    let limits = SpoolLimits { in_memory: app.settings.limits.max_bytes, in_all: app.settings.max_upload_bytes };
    let mut intake = Intake::of_data(app);
    let mut file = Spooled::read(body, announced_length(headers), limits, &app.settings.store, &mut intake).await?;
    if let Spooled::Memory(bytes) = &file {
        let (content, own_options, own_name) = (bytes.clone(), options.clone(), name.clone());
        let decode = move |limits: &Limits, sink: &mut RowSink, room: &mut Room| {
            let plain = expanded(&content, limits)?;
            room.decodes(plain.len(), 0)?;
            sink.push(own_name.mark(decode_file(&plain, &own_options)?))
        };
        let arrived = Arrived { encoding: Encoding::from_magic(bytes), bytes, held: intake.take() };
        match store_profiles(app, headers, arrived, decode).await {
            Err(Refusal::Profile(error)) if error.fault == Fault::TooLarge && is_recording(bytes) => {}
            stored => return stored,
        }
        // It waits for its turn on disk: in memory it would need room that the one whose turn it is may need.
        file = Spooled::write(bytes, &app.settings.store).await?;
    }
    store_recording(app, tenant, file, (options, name)).await
}

/// Facts about the file that stand in the query: `service`, `label=k=v` (repeatable), ids and times.
fn options(uri: &Uri) -> Result<NamedOptions, Refusal> {
    let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(uri)
        .map_err(|error| Refusal::Invalid(format!("the parameters can't be read: {}", error.body_text())))?;
    let now = now_nanos();
    let mut options = DecodeOptions::default();
    let mut link = Link::default();
    let mut kind = None;
    let (mut from, mut until) = (None, None);
    let mut file_name = UploadName::default();
    for (key, value) in &pairs {
        let no_id = || Refusal::Invalid(format!("{key}: {value:?} is not an id; {ID_FORMS}"));
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
            "from" => from = Some(time()?),
            "until" => until = Some(time()?),
            "name" => options.name = Some(value.clone()),
            "sample_rate" | "sampleRate" => {
                let rate = value.parse().ok().filter(|rate| *rate > 0);
                let wrong = || Refusal::Invalid(format!("{key}: {value:?} is not a number of samples a second"));
                options.sample_rate = Some(rate.ok_or_else(wrong)?);
            }
            "type" => kind = Some(value.as_str()),
            "file" => file_name.file = Some(value.clone()),
            "profile_id" => file_name.id = Some(value.clone()),
            other => {
                return Err(Refusal::Invalid(format!(
                    "the parameter {other:?} is not known; there are service, label, trace_id, span_id, from, until, \
                     name, type, sample_rate, file and profile_id"
                )));
            }
        }
    }
    if let (Some(from), Some(until)) = (from, until)
        && from > until
    {
        return Err(Refusal::Invalid("from must not be after until".to_owned()));
    }
    // What was measured lies in the past: a profile of which nothing is known ends now.
    let end = if from.is_none() { until.or(Some(now)) } else { until };
    (options.from, options.until) = (from.unwrap_or_default(), end.unwrap_or_default());
    options.link = link;
    options.text_type = kind.map(|kind| text_type(kind, options.sample_rate)).transpose()?;
    Ok((options, file_name))
}

/// What the values of a format without types are: `wall`, `alloc_space`, or five parts. They are in the unit of the type, unless a
/// rate says that samples were counted, which become time by it.
fn text_type(kind: &str, sample_rate: Option<u32>) -> Result<TextType, Refusal> {
    let known = TextType::from_app_name(&format!(".{kind}"), 1).map(|known| Ok(known.profile_type));
    let named = || kind.parse().map_err(|error| Refusal::Invalid(format!("type: {error}")));
    let profile_type: ProfileType = known.unwrap_or_else(named)?;
    if sample_rate.is_some() && profile_type.sample_unit != "nanoseconds" {
        let message = format!("sample_rate: it makes values time, which {profile_type} is not; leave out one of them");
        return Err(Refusal::Invalid(message));
    }
    let scale = sample_rate.map_or(1, |rate| (1_000_000_000 / i64::from(rate.max(1))).max(1));
    Ok(TextType { profile_type, scale })
}
