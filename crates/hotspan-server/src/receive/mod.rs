//! Receiving: from a request to acknowledged rows, and the answer that its protocol wants.

mod ingest;
mod ingest_body;
mod ingest_format;
mod ingest_rows;
mod intake;
mod long_recording;
mod not_here;
mod otlp;
mod push;
mod refusal;
mod repeated_warnings;
mod room;
mod spool;
mod upload;
mod upload_name;

pub(crate) use ingest::ingest_routes;
pub(crate) use ingest_rows::store_scraped;
pub(crate) use intake::{BodyError, Intake};
pub(crate) use not_here::unknown_otlp_path;
pub(crate) use otlp::{otlp_alone, otlp_routes};
pub(crate) use push::push_routes;
pub(crate) use refusal::Refusal;
pub(crate) use repeated_warnings::RepeatedWarnings;
pub(crate) use room::{Arrived, Room};
pub(crate) use upload::upload_routes;

use hotspan_model::TenantId;
use http::HeaderMap;

use crate::app::App;

/// Who sends: the header when multi-tenancy is on, the one tenant otherwise.
pub(crate) fn tenant_of(app: &App, headers: &HeaderMap) -> Result<TenantId, Refusal> {
    if !app.settings.multi_tenancy {
        return Ok(TenantId::anonymous());
    }
    let header = headers.get("x-scope-orgid").ok_or(Refusal::NoTenant)?;
    let name = header.to_str().map_err(|_| Refusal::Invalid("X-Scope-OrgID is not text".to_owned()))?;
    name.parse().map_err(|error| Refusal::Invalid(format!("X-Scope-OrgID: {error}")))
}
