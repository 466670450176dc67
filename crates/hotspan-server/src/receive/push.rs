//! `push.v1.PusherService/Push`: what Pyroscope's Rust, Python, Ruby and .NET clients and Alloy send pprof to.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::post;
use bytes::Bytes;
use hotspan_formats::push::{PushedProfile, each_profile, each_profile_json};
use hotspan_formats::{DecodeOptions, FileError, Limits, expanded, pprof};
use hotspan_lake::catalog::now_nanos;
use http::{HeaderValue, header};

use super::ingest_rows::{RowSink, SIGNAL, store_profiles};
use super::{Arrived, Intake, Refusal, Room};
use crate::app::App;
use crate::rpc::{Call, Codec, Protocol, rpc_error};

/// The one method of the service.
pub(crate) fn push_routes() -> Router<Arc<App>> {
    Router::new().route("/push.v1.PusherService/Push", post(push))
}

async fn push(State(app): State<Arc<App>>, request: Request) -> Response {
    let mut intake = Intake::of_data(&app);
    let call = match Call::read(request, &mut intake).await {
        Ok(call) => call,
        Err((error, protocol, _)) => return refuse(&app, protocol, &error.into()),
    };
    let call = Arc::new(call);
    // Unpacked only once there is room for it (R5).
    let unpacking = Arc::clone(&call);
    let arrived = Arrived { encoding: call.encoding, bytes: &call.message, held: intake.take() };
    let stored = store_profiles(&app, &call.headers, arrived, move |limits, sink, room| {
        let message = unpacking.unpack(limits.max_bytes)?;
        room.decodes(message.len(), 0)?;
        decode(&message, unpacking.codec, limits, sink, room)
    });
    match stored.await {
        Ok(_) => call.answer(if call.codec == Codec::Json { b"{}".to_vec() } else { Vec::new() }),
        Err(refusal) => refuse(&app, call.protocol, &refusal),
    }
}

fn decode(message: &Bytes, codec: Codec, limits: &Limits, sink: &mut RowSink, room: &mut Room) -> Result<(), Refusal> {
    let now = now_nanos();
    let mut profiles = 0u64;
    let mut store = |profile: PushedProfile<'_>| {
        profiles += 1;
        let options = DecodeOptions {
            labels: profile.labels.clone(),
            name: profile.labels.get("__name__").map(str::to_owned),
            from: now,
            until: now,
            tolerant: true,
            limits: limits.clone(),
            ..DecodeOptions::default()
        };
        let misread = |mut error: FileError| {
            error.expected = format!("{} (in {})", error.expected, profile.place()).into();
            Refusal::Profile(error)
        };
        let plain = expanded(profile.raw, limits).map_err(misread)?;
        room.decodes(message.len() + plain.len(), sink.size())?;
        sink.push(pprof::decode(&plain, &options).map_err(misread)?)
    };
    match codec {
        Codec::Protobuf => each_profile(message, limits, &mut store)?,
        Codec::Json => each_profile_json(message, limits, &mut store)?,
    }
    if profiles == 0 {
        return Err(Refusal::Invalid("the request has no profiles".to_owned()));
    }
    Ok(())
}

fn refuse(app: &App, protocol: Protocol, refusal: &Refusal) -> Response {
    app.metrics.refused(SIGNAL, refusal.reason());
    let status = match refusal {
        // The wire protocol has no code of its own for a profile that is too large: it is a bad argument.
        Refusal::Profile(_) => refusal.code().http_status(),
        other => other.http_status(),
    };
    let mut response = rpc_error(protocol, refusal.code(), status, &refusal.to_string());
    if let Some(wait) = refusal.retry_after() {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(wait.as_secs().max(1)));
    }
    response
}
