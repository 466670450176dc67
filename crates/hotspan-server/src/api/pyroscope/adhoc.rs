//! `adhocprofiles.v1.AdHocProfileService`, behind Grafana's Ad hoc view: files that somebody uploads to look at.
//!
//! A file is kept as it came and read again whenever it is drawn, so that a later version may read more from it.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hotspan_formats::Limits;
use hotspan_formats::diff_tree::DiffTree;
use hotspan_formats::flamebearer::FlamebearerProfile;
use hotspan_formats::sample_types::SampleType;
use hotspan_lake::LakeError;
use hotspan_model::TenantId;
use http::StatusCode;

use super::adhoc_file::ProfileFile;
use super::messages::{
    AdHocDiffRequest, AdHocDiffResponse, AdHocGetRequest, AdHocListResponse, AdHocListed, AdHocProfile,
    AdHocUploadRequest, EmptyMessage,
};
use super::selection::max_nodes;
use super::unary::{Asked, MessageSize};
use crate::adhoc::{AdHocId, KeepError};
use crate::api::ApiError;
use crate::app::{App, Core};
use crate::decoding::Turn;
use crate::receive::Refusal;

/// How much an upload may hold: the largest request as base64 writes it, and what stands around it.
pub(super) fn upload_size(app: &App) -> MessageSize {
    let in_base64 = app.settings.limits.max_bytes.div_ceil(3).saturating_mul(4);
    MessageSize::Upload { max_bytes: in_base64.saturating_add(64 << 10) }
}

/// Keeps a file, and answers as [`get`] does. One that can't be drawn is not kept (R7).
pub(super) async fn upload(asked: Asked<AdHocUploadRequest>) -> Result<AdHocProfile, ApiError> {
    let AdHocUploadRequest { name, profile, max_nodes: nodes } = asked.message;
    let nodes = max_nodes(nodes)?;
    let turn = asked.app.decoding.turn().await;
    let drawing = move |limits: &Limits| {
        let content = STANDARD.decode(profile);
        let content = content.map_err(|error| ApiError::invalid(format!("profile is not base64: {error}")))?;
        let drawn = Drawn::new(&ProfileFile::read("profile", &content, limits)?, "", nodes)?;
        Ok((Bytes::from(content), drawn))
    };
    let (content, drawn) = draw(&asked.app, &turn, drawing).await?;
    drop(turn);
    let id = asked.core.adhoc.keep(&asked.tenant, &name, content).await.map_err(|error| match error {
        KeepError::TooLarge { .. } => {
            ApiError { status: StatusCode::PAYLOAD_TOO_LARGE, message: format!("profile: {error}") }
        }
        KeepError::Storage(error) => failed(error),
    })?;
    Ok(drawn.answer(&id))
}

/// The flame graph of one type of a file.
pub(super) async fn get(asked: Asked<AdHocGetRequest>) -> Result<AdHocProfile, ApiError> {
    let AdHocGetRequest { id, profile_type, max_nodes: nodes } = asked.message;
    let (id, nodes) = (id_in("id", &id)?, max_nodes(nodes)?);
    // Before the file is read, so that no more files are in memory than can be drawn at once (R5).
    let turn = asked.app.decoding.turn().await;
    let content = content_of(&asked.core, &asked.tenant, &id).await?;
    let drawing = move |limits: &Limits| {
        Drawn::new(&ProfileFile::read("the profile of id", &content, limits)?, &profile_type, nodes)
    };
    Ok(draw(&asked.app, &turn, drawing).await?.answer(&id))
}

/// What there is, the latest first.
pub(super) async fn list(asked: Asked<EmptyMessage>) -> Result<AdHocListResponse, ApiError> {
    let kept = asked.core.adhoc.list(&asked.tenant).await.map_err(failed)?;
    let listed = kept.iter().map(|kept| AdHocListed {
        id: kept.id.to_string(),
        name: kept.id.name().to_owned(),
        uploaded_at: kept.id.uploaded_at(),
    });
    Ok(AdHocListResponse { profiles: listed.collect() })
}

/// Two files laid over each other, in a type that both have.
pub(super) async fn diff(asked: Asked<AdHocDiffRequest>) -> Result<AdHocDiffResponse, ApiError> {
    let AdHocDiffRequest { left_id, right_id, profile_type, max_nodes: nodes } = asked.message;
    let (left_id, right_id) = (id_in("left_id", &left_id)?, id_in("right_id", &right_id)?);
    let nodes = max_nodes(nodes)?;
    let turn = asked.app.decoding.turn().await;
    let left = content_of(&asked.core, &asked.tenant, &left_id).await?;
    let right = content_of(&asked.core, &asked.tenant, &right_id).await?;
    let drawing = move |limits: &Limits| {
        let left = ProfileFile::read("the profile of left_id", &left, limits)?;
        let right = ProfileFile::read("the profile of right_id", &right, limits)?;
        let common = left.types_in_common(&right);
        if common.is_empty() {
            let [left, right] = [&left, &right].map(|file| names(file.types()).join(", "));
            let message = format!("the two profiles have no type in common: left_id has {left}, right_id has {right}");
            return Err(ApiError::invalid(message));
        }
        let types: Vec<&SampleType> = common.iter().map(|(on_left, _)| *on_left).collect();
        let (on_left, on_right) = common[place_of(&profile_type, &types)?];
        // Whole trees are laid over each other: what one side prunes would look new on the other.
        let tree = DiffTree::new(&left.tree(on_left)?, &right.tree(on_right)?).pruned(nodes);
        Ok(AdHocDiffResponse {
            profile_types: names(types),
            flamebearer_profile: json_text(&FlamebearerProfile::double(&tree, &on_left.profile_type)),
        })
    };
    draw(&asked.app, &turn, drawing).await
}

/// A file of which one type is drawn.
struct Drawn {
    profile_type: String,
    profile_types: Vec<String>,
    flamebearer_profile: String,
}

impl Drawn {
    fn new(file: &ProfileFile<'_>, asked_type: &str, nodes: usize) -> Result<Self, ApiError> {
        let types: Vec<&SampleType> = file.types().collect();
        let chosen = types[place_of(asked_type, &types)?];
        let (tree, _) = file.tree(chosen)?.pruned(nodes);
        Ok(Self {
            profile_type: chosen.name.clone(),
            flamebearer_profile: json_text(&FlamebearerProfile::single(&tree, &chosen.profile_type)),
            profile_types: names(types),
        })
    }

    fn answer(self, id: &AdHocId) -> AdHocProfile {
        AdHocProfile {
            id: id.to_string(),
            name: id.name().to_owned(),
            uploaded_at: id.uploaded_at(),
            profile_type: self.profile_type,
            profile_types: self.profile_types,
            flamebearer_profile: self.flamebearer_profile,
        }
    }
}

fn names<'t>(types: impl IntoIterator<Item = &'t SampleType>) -> Vec<String> {
    types.into_iter().map(|one| one.name.clone()).collect()
}

/// Where among `types`, of which there is at least one, the type is that was asked for: the first, if none was.
fn place_of(asked: &str, types: &[&SampleType]) -> Result<usize, ApiError> {
    if asked.is_empty() {
        return Ok(0);
    }
    types.iter().position(|one| one.is_called(asked)).ok_or_else(|| {
        let there = names(types.iter().copied()).join(", ");
        ApiError::invalid(format!("profile_type: {asked:?} is not among {there}"))
    })
}

fn json_text(profile: &FlamebearerProfile) -> String {
    // Numbers and texts: nothing in it can fail to be JSON.
    serde_json::to_string(profile).unwrap_or_default()
}

fn id_in(field: &str, text: &str) -> Result<AdHocId, ApiError> {
    text.parse().map_err(|error| ApiError::invalid(format!("{field}: {error}")))
}

async fn content_of(core: &Core, tenant: &TenantId, id: &AdHocId) -> Result<Bytes, ApiError> {
    let content = core.adhoc.read(tenant, id).await.map_err(failed)?;
    content.ok_or_else(|| {
        let message = format!("there is no ad hoc profile {id}; it may have grown too old");
        ApiError { status: StatusCode::NOT_FOUND, message }
    })
}

fn failed(error: LakeError) -> ApiError {
    Refusal::from(Arc::new(error)).into()
}

/// Does what takes its time where nobody waits for it.
async fn draw<T: Send + 'static>(
    app: &Arc<App>,
    turn: &Turn<'_>,
    work: impl FnOnce(&Limits) -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let app = Arc::clone(app);
    turn.decode(move || work(&app.settings.limits))
        .await
        .map_err(|error| ApiError::invalid(format!("decoding failed: {error}")))?
}
