//! `/api/v1/profiling/policy`: asked by the profilers of services, changed by people and scripts.

use axum::Json;
use axum::body::Bytes;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::Deserialize;
use serde_json::{Value, json};

use super::ApiError;
use super::asker::{Asker, Given};
use crate::policy::{ChangeError, Policy};

/// A policy is a few hundred bytes.
const MAX_BODY: usize = 64 << 10;

#[derive(Debug, Deserialize)]
pub(crate) struct Parameters {
    service: Option<String>,
}

impl Parameters {
    fn service(&self) -> Result<&str, ApiError> {
        self.service
            .as_deref()
            .ok_or_else(|| ApiError::invalid("service: is missing; name one, or * for every service without its own"))
    }
}

impl From<ChangeError> for ApiError {
    fn from(error: ChangeError) -> Self {
        let status = match &error {
            ChangeError::Policy(_) | ChangeError::Service(_) => StatusCode::BAD_REQUEST,
            ChangeError::TooMany => StatusCode::UNPROCESSABLE_ENTITY,
            ChangeError::Storage(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self { status, message: error.to_string() }
    }
}

/// With a service: what is in force for it, with an ETag, or 204. Without: all of them.
pub(crate) async fn get(
    Asker { core, tenant }: Asker,
    Given(parameters): Given<Parameters>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let policies = &core.policies;
    let Some(service) = &parameters.service else {
        return Ok(Json(json!({ "policies": policies.list(&tenant) })).into_response());
    };
    let Some(policy) = policies.in_force(&tenant, service) else {
        return Ok(StatusCode::NO_CONTENT.into_response());
    };
    let etag = etag_of(&policy);
    let is_known = headers.get(header::IF_NONE_MATCH).is_some_and(|known| *known == etag);
    let mut response = if is_known { StatusCode::NOT_MODIFIED.into_response() } else { Json(policy).into_response() };
    response.headers_mut().insert(header::ETAG, etag);
    Ok(response)
}

/// Replaces the policy of a service.
pub(crate) async fn put(
    Asker { core, tenant }: Asker,
    Given(parameters): Given<Parameters>,
    body: Bytes,
) -> Result<Json<Value>, ApiError> {
    let service = parameters.service()?;
    let policy = core.policies.set(&tenant, service, read(&body)?).await?;
    Ok(Json(json!({ "service": service, "policy": policy })))
}

/// Changes what the body names in the policy of a service, and leaves the rest.
pub(crate) async fn patch(
    Asker { core, tenant }: Asker,
    Given(parameters): Given<Parameters>,
    body: Bytes,
) -> Result<Json<Value>, ApiError> {
    let service = parameters.service()?;
    let policy = core.policies.merge(&tenant, service, read(&body)?).await?;
    Ok(Json(json!({ "service": service, "policy": policy })))
}

/// Removes the policy of a service.
pub(crate) async fn delete(
    Asker { core, tenant }: Asker,
    Given(parameters): Given<Parameters>,
) -> Result<StatusCode, ApiError> {
    let service = parameters.service()?;
    if core.policies.clear(&tenant, service).await? {
        return Ok(StatusCode::NO_CONTENT);
    }
    Err(ApiError { status: StatusCode::NOT_FOUND, message: format!("{service:?} has no policy of its own") })
}

fn read(body: &Bytes) -> Result<Policy, ApiError> {
    if body.len() > MAX_BODY {
        return Err(ApiError::invalid(format!("a policy has at most {MAX_BODY} bytes")));
    }
    serde_json::from_slice(body).map_err(|error| ApiError::invalid(format!("policy: {error}")))
}

/// Names the content: a policy whose boost has ended has another tag than before.
fn etag_of(policy: &Policy) -> HeaderValue {
    let text = serde_json::to_vec(policy).unwrap_or_default();
    let tag = format!("\"{:016x}\"", xxhash_rust::xxh3::xxh3_64(&text));
    // Hexadecimal digits in quotes are always a header value.
    HeaderValue::from_str(&tag).unwrap_or(HeaderValue::from_static("\"\""))
}
