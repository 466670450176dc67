//! Flamebearer JSON as Hotspan's own endpoints give it: with files, lines and origins beside the names, and what the
//! numbers rest on. Written from the graph as it stands: a tree of JSON values of all bars would cost more than the graph.

use axum::response::{IntoResponse, Response};
use hotspan_formats::diff_tree::DiffTree;
use hotspan_formats::flamebearer::FlamebearerProfile;
use hotspan_model::{FlameTree, ProfileType};
use http::{HeaderValue, header};
use serde::Serialize;
use serde_json::{Map, Value};

/// A flame graph, and what else an answer tells.
#[derive(Debug, Serialize)]
pub(crate) struct FlameJson {
    #[serde(flatten)]
    pub(crate) profile: FlamebearerProfile,
    #[serde(flatten)]
    told: Map<String, Value>,
}

impl FlameJson {
    /// The flame graph of one tree.
    pub(crate) fn single(tree: &FlameTree, profile_type: &ProfileType) -> Self {
        Self::with_frames(FlamebearerProfile::single(tree, profile_type), &[tree])
    }

    /// The flame graph of two trees that are laid over each other.
    pub(crate) fn double(tree: &DiffTree, sides: [&FlameTree; 2], profile_type: &ProfileType) -> Self {
        Self::with_frames(FlamebearerProfile::double(tree, profile_type), &sides)
    }

    fn with_frames(mut profile: FlamebearerProfile, trees: &[&FlameTree]) -> Self {
        profile.flamebearer = profile.flamebearer.with_frames(trees);
        Self { profile, told: Map::new() }
    }

    /// Adds a key of its own, which flamebearer does not have.
    #[must_use]
    pub(crate) fn telling(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.told.insert(key.to_owned(), value.into());
        self
    }
}

impl IntoResponse for FlameJson {
    fn into_response(self) -> Response {
        // Numbers and texts with keys that are texts: nothing in it can fail to be JSON.
        let body = serde_json::to_vec(&self).unwrap_or_default();
        ([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response()
    }
}
