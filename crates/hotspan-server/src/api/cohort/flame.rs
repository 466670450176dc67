//! The flame graph of a cohort.

use axum::response::{IntoResponse, Response};
use hotspan_model::TenantId;
use http::{HeaderMap, Uri};

use super::request::CohortQuestion;
use super::selected::{Selected, Side};
use crate::api::QuestionError;
use crate::api::flame_json::FlameJson;
use crate::api::profile::{AskedFlame, flame_response};
use crate::app::Core;

/// The flame graph in the format asked for: flamebearer JSON, if nothing is said.
pub(super) async fn flame(
    core: &Core,
    tenant: &TenantId,
    question: &CohortQuestion,
    headers: &HeaderMap,
) -> Result<Response, QuestionError> {
    let snapshot = core.engine.snapshot();
    let selected = Selected::find(core, tenant, &snapshot, question, Side::Asked).await?;
    match question.format.as_deref() {
        None | Some("json" | "flamebearer") => {
            let answer = core.engine.flame(tenant, &selected.query).await?;
            let graph = FlameJson::single(&answer.tree, &question.profile_type);
            Ok(graph.telling("exactness", selected.exactness(&answer.exactness)).into_response())
        }
        Some(format) => {
            let uri = Uri::default();
            let if_empty = Some(selected.no_samples(question.scope));
            let asked =
                AskedFlame { query: &selected.query, format, text: &question.drawing, uri: &uri, headers, if_empty };
            Ok(flame_response(core, tenant, &asked).await?)
        }
    }
}
