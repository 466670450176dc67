//! Pyroscope's API: the querier's methods in every protocol, the older GET endpoints, and what Grafana asks besides.

mod adhoc;
mod adhoc_file;
mod json_fields;
mod json_forms;
mod labels;
mod merge;
mod messages;
mod pprof_message;
mod render;
mod script;
mod selection;
mod series_points;
mod settings;
mod side;
mod stack_samples;
mod stack_selector;
mod timeline_bars;
mod unary;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::routing::{get, post};

pub(super) use merge::{DOT_FUNCTIONS, check_types, merged_pprof};
pub(super) use render::ranged_query;
pub(super) use selection::{max_nodes, take_ids};
use unary::MessageSize;

use crate::app::App;

/// A route of a method.
macro_rules! method {
    ($method:path) => {
        method!($method, |_: &App| MessageSize::Question)
    };
    ($method:path, $size:expr) => {
        post(|State(app): State<Arc<App>>, request: Request| {
            let size = $size(&app);
            unary::unary(app, request, size, $method)
        })
    };
}

/// All routes.
pub(super) fn routes() -> Router<Arc<App>> {
    let querier = |name: &str| format!("/querier.v1.QuerierService/{name}");
    let adhoc = |name: &str| format!("/adhocprofiles.v1.AdHocProfileService/{name}");
    Router::new()
        .route(&querier("ProfileTypes"), method!(labels::profile_types))
        .route(&querier("LabelNames"), method!(labels::label_names))
        .route(&querier("LabelValues"), method!(labels::label_values))
        .route(&querier("Series"), method!(labels::series))
        .route(&querier("SelectMergeStacktraces"), method!(merge::stacktraces))
        .route(&querier("SelectMergeSpanProfile"), method!(merge::span_profile))
        .route(&querier("SelectMergeProfile"), method!(merge::merge_profile))
        .route(&querier("SelectSeries"), method!(series_points::select_series))
        .route(&querier("SelectHeatmap"), method!(series_points::select_heatmap))
        .route(&querier("Diff"), method!(merge::diff))
        .route(&querier("GetProfileStats"), method!(labels::profile_stats))
        .route(&querier("AnalyzeQuery"), method!(labels::analyze_query))
        .route(&adhoc("Upload"), method!(adhoc::upload, adhoc::upload_size))
        .route(&adhoc("Get"), method!(adhoc::get))
        .route(&adhoc("List"), method!(adhoc::list))
        .route(&adhoc("Diff"), method!(adhoc::diff))
        .route("/capabilities.v1.FeatureFlagsService/GetFeatureFlags", method!(side::feature_flags))
        .route("/settings.v1.SettingsService/Get", method!(settings::get))
        .route("/settings.v1.SettingsService/Set", method!(settings::set))
        .route("/settings.v1.SettingsService/Delete", method!(settings::delete))
        .route("/settings.v1.RecordingRulesService/ListRecordingRules", method!(side::recording_rules))
        .route("/settings.v1.RecordingRulesService/{method}", method!(side::no_recording_rules))
        .route("/api/v1/status/buildinfo", get(side::build_info))
        .route("/pyroscope/render", get(render::render))
        .route("/pyroscope/render-diff", get(render::render_diff))
        .route("/pyroscope/label-values", get(render::label_values))
        .route("/api/v1/query", get(script::query))
        .route("/api/v1/profiles", get(stack_samples::samples))
}
