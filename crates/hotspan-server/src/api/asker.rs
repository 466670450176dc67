//! What every question begins with: the store that is asked, whose part of it, and parameters that can be read.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequestParts, Query};
use hotspan_model::TenantId;
use http::HeaderMap;
use http::request::Parts;
use serde::de::DeserializeOwned;

use super::ApiError;
use crate::app::{App, Core};
use crate::receive::tenant_of;

/// Whoever asks: the open store, and the tenant whose part of it answers (R6).
#[derive(Debug)]
pub(crate) struct Asker {
    pub(crate) core: Core,
    pub(crate) tenant: TenantId,
}

impl Asker {
    /// Who asks with these headers.
    pub(crate) fn of(app: &App, headers: &HeaderMap) -> Result<Self, ApiError> {
        Ok(Self { core: app.core()?.clone(), tenant: tenant_of(app, headers)? })
    }
}

impl FromRequestParts<Arc<App>> for Asker {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, ApiError> {
        Self::of(app, &parts.headers)
    }
}

/// Parameters in the address. One that can't be read is named, in the form that errors have here.
#[derive(Debug)]
pub(crate) struct Given<P>(pub(crate) P);

impl<P: DeserializeOwned, S: Sync> FromRequestParts<S> for Given<P> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let named = |error: QueryRejection| {
            let text = error.body_text();
            let reason = text.split_once("query string: ").map_or(text.as_str(), |(_, reason)| reason);
            ApiError::invalid(format!("a parameter can't be read: {reason}"))
        };
        Query::try_from_uri(&parts.uri).map(|Query(parameters)| Self(parameters)).map_err(named)
    }
}
