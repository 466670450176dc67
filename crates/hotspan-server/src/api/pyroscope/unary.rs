//! One call of a method: its message in, its answer out, in whatever protocol and codec it came.

use std::sync::Arc;

use axum::extract::Request;
use axum::response::Response;
use hotspan_lake::ingest::Reservation;
use hotspan_model::{Exactness, TenantId};
use http::{HeaderMap, StatusCode};
use prost::Message;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::json_fields::message_from_json;
use crate::api::ApiError;
use crate::api::asker::Asker;
use crate::api::exactness::with_exactness;
use crate::app::{App, Core};
use crate::receive::{Arrived, Intake, Refusal, Room};
use crate::rpc::{Call, Code, Codec, rpc_error};

/// How much a message may hold.
#[derive(Debug, Clone, Copy)]
pub(super) enum MessageSize {
    /// A question is small; a larger one is a mistake or an attack.
    Question,
    /// A file, which takes room among all that is being received.
    Upload { max_bytes: usize },
}

impl MessageSize {
    fn max_bytes(self) -> usize {
        match self {
            Self::Question => 4 << 20,
            Self::Upload { max_bytes } => max_bytes,
        }
    }
}

/// What a method is asked.
#[derive(Debug)]
pub(super) struct Asked<Q> {
    pub(super) app: Arc<App>,
    pub(super) core: Core,
    pub(super) tenant: TenantId,
    pub(super) headers: HeaderMap,
    pub(super) message: Q,
}

/// What a method can answer with.
pub(super) trait Answer {
    fn into_protobuf(self) -> Vec<u8>;
    fn into_json(self) -> Result<Vec<u8>, serde_json::Error>;

    /// What it rests on, where it tells of data.
    fn exactness(&self) -> Option<Exactness> {
        None
    }
}

/// An answer in Pyroscope's format, which has no room for what it rests on.
#[derive(Debug)]
pub(super) struct Resting<A> {
    pub(super) answer: A,
    pub(super) exactness: Exactness,
}

impl<A: Answer> Answer for Resting<A> {
    fn into_protobuf(self) -> Vec<u8> {
        self.answer.into_protobuf()
    }

    fn into_json(self) -> Result<Vec<u8>, serde_json::Error> {
        self.answer.into_json()
    }

    fn exactness(&self) -> Option<Exactness> {
        Some(self.exactness)
    }
}

impl<T: Message + Serialize> Answer for T {
    fn into_protobuf(self) -> Vec<u8> {
        self.encode_to_vec()
    }

    fn into_json(self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(&self)
    }
}

/// Answers a call with a method.
pub(super) async fn unary<Q, A, F>(
    app: Arc<App>,
    request: Request,
    size: MessageSize,
    method: impl FnOnce(Asked<Q>) -> F,
) -> Response
where
    Q: Message + Default + DeserializeOwned,
    A: Answer,
    F: Future<Output = Result<A, ApiError>>,
{
    let mut intake = match size {
        MessageSize::Question => Intake::of_question(size.max_bytes()),
        MessageSize::Upload { max_bytes } => Intake::of_data(&app).up_to(max_bytes),
    };
    let call = match Call::read(request, &mut intake).await {
        Ok(call) => call,
        Err((error, protocol, _)) => {
            let refusal = Refusal::from(error);
            return rpc_error(protocol, refusal.code(), refusal.http_status(), &refusal.to_string());
        }
    };
    let held = intake.take();
    match answer(app, &call, held, size, method).await {
        Ok((message, Some(exactness))) => with_exactness(call.answer(message), &exactness),
        Ok((message, None)) => call.answer(message),
        Err(error) => rpc_error(call.protocol, Code::of_status(error.status), error.status, &error.message),
    }
}

async fn answer<Q, A, F>(
    app: Arc<App>,
    call: &Call,
    held: Option<Reservation>,
    size: MessageSize,
    method: impl FnOnce(Asked<Q>) -> F,
) -> Result<(Vec<u8>, Option<Exactness>), ApiError>
where
    Q: Message + Default + DeserializeOwned,
    A: Answer,
    F: Future<Output = Result<A, ApiError>>,
{
    let Asker { core, tenant } = Asker::of(&app, &call.headers)?;
    // Held until the answer is there (R5).
    let _room = match size {
        MessageSize::Question => None,
        MessageSize::Upload { max_bytes } => {
            let arrived = Arrived { encoding: call.encoding, bytes: &call.message, held };
            Some(Room::for_body(&core.ingest, arrived, max_bytes)?)
        }
    };
    let bytes = call.unpack(size.max_bytes()).map_err(Refusal::from)?;
    let broken = |error: String| ApiError::invalid(format!("the message can't be read: {error}"));
    let message = match call.codec {
        Codec::Protobuf => Q::decode(bytes).map_err(|error| broken(error.to_string()))?,
        // Curious people send no body at all.
        Codec::Json if bytes.is_empty() => Q::default(),
        Codec::Json => message_from_json(&bytes).map_err(|wrong| match wrong.is_unknown_name {
            true => ApiError::unimplemented(wrong.to_string()),
            false => broken(wrong.to_string()),
        })?,
    };
    let asked = Asked { app, core, tenant, headers: call.headers.clone(), message };
    let answer = method(asked).await?;
    let exactness = answer.exactness();
    let message = match call.codec {
        Codec::Protobuf => answer.into_protobuf(),
        Codec::Json => answer.into_json().map_err(|error| ApiError {
            status: StatusCode::INTERNAL_SERVER_ERROR,
            message: format!("the answer can't be written: {error}"),
        })?,
    };
    Ok((message, exactness))
}
