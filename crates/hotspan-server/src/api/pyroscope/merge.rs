//! Flame graphs: merged stacks in each of their shapes, of one selection or of two.

use hotspan_formats::diff_tree::DiffTree;
use hotspan_formats::flamebearer::Flamebearer;
use hotspan_formats::profile_query::parse_selector;
use hotspan_formats::{dot, pprof, pyroscope_tree};
use hotspan_model::{Exactness, ProfileType};
use hotspan_query::{Engine, FlameAnswer, FlameQuery, MergedPaths};

use super::json_forms::pprof_json;
use super::messages::{
    DiffRequest, DiffResponse, FlameGraphDiffMessage, FlameGraphMessage, LevelMessage, MergeProfileRequest,
    PprofMessage, SpanProfileRequest, StacktracesRequest, StacktracesResponse,
};
use super::selection::{max_nodes, profile_ids, profile_type, span_ids, take_ids, time_range, trace_ids};
use super::stack_selector::{leaf_trim, stack_filter};
use super::unary::{Answer, Asked, Resting};
use crate::api::ApiError;
use crate::api::exactness::exactness_of_both;

/// Functions in a call graph where the asker does not say; more can't be read.
pub(in crate::api) const DOT_FUNCTIONS: usize = 100;

pub(super) async fn stacktraces(asked: Asked<StacktracesRequest>) -> Result<Resting<StacktracesResponse>, ApiError> {
    let query = flame_query(&asked.message)?;
    let engine = &asked.core.engine;
    let mut response = StacktracesResponse::default();
    let exactness = match asked.message.format {
        3 => {
            // Functions are summed over all paths.
            let whole = FlameQuery { max_nodes: 0, ..query.clone() };
            let FlameAnswer { tree, exactness } = engine.flame(&asked.tenant, &whole).await?;
            let functions = dot_functions(asked.message.max_nodes)?;
            response.dot = dot::encode(&tree, &query.profile_type.sample_unit, functions);
            exactness
        }
        0..=2 => {
            let FlameAnswer { tree, exactness } = engine.flame(&asked.tenant, &query).await?;
            match asked.message.format {
                2 => response.tree = pyroscope_tree::encode_tree(&tree),
                _ => response.flamegraph = Some(flame_graph(Flamebearer::single(&tree))),
            }
            exactness
        }
        4 => {
            let trim = leaf_trim(asked.message.stack_trace_selector.as_ref());
            let merged = engine.merged_paths(&asked.tenant, &query, trim).await?;
            let merged = merged.pruned(file_nodes(asked.message.max_nodes)?);
            response.pprof = Some(PprofMessage { profile: merged_pprof(&merged, &query) });
            merged.exactness
        }
        other => return Err(unknown_format(other)),
    };
    Ok(Resting { answer: response, exactness })
}

/// Later versions of Grafana's app try what is new, and make do with the flame graph if a server hasn't got it.
fn unknown_format(format: i32) -> ApiError {
    ApiError::unimplemented(format!("format {format} is not known here; 1 is flame graph, 2 tree, 3 dot, 4 pprof"))
}

/// How many functions a call graph has, of however many paths they are called by.
pub(super) fn dot_functions(asked: Option<i64>) -> Result<usize, ApiError> {
    match asked {
        None | Some(0) => Ok(DOT_FUNCTIONS),
        asked => max_nodes(asked),
    }
}

/// How many nodes a file may have: it is whole unless the asker says how many.
fn file_nodes(asked: Option<i64>) -> Result<usize, ApiError> {
    match asked {
        None | Some(0) => Ok(0),
        asked => max_nodes(asked),
    }
}

pub(super) async fn span_profile(asked: Asked<SpanProfileRequest>) -> Result<Resting<StacktracesResponse>, ApiError> {
    let Asked { app, core, tenant, headers, message } = asked;
    let message = StacktracesRequest {
        profile_type_id: message.profile_type_id,
        label_selector: message.label_selector,
        start: message.start,
        end: message.end,
        max_nodes: message.max_nodes,
        format: message.format,
        span_selector: message.span_selector,
        ..StacktracesRequest::default()
    };
    stacktraces(Asked { app, core, tenant, headers, message }).await
}

/// pprof bytes: the answer of a method whose message is a profile itself.
#[derive(Debug)]
pub(super) struct PprofAnswer(Vec<u8>);

impl Answer for PprofAnswer {
    fn into_protobuf(self) -> Vec<u8> {
        self.0
    }

    fn into_json(self) -> Result<Vec<u8>, serde_json::Error> {
        let mut json = Vec::new();
        pprof_json(&self.0, &mut serde_json::Serializer::new(&mut json))?;
        Ok(json)
    }
}

pub(super) async fn merge_profile(asked: Asked<MergeProfileRequest>) -> Result<Resting<PprofAnswer>, ApiError> {
    let request = asked.message;
    let trim = leaf_trim(request.stack_trace_selector.as_ref());
    let max_nodes = file_nodes(request.max_nodes)?;
    let query = flame_query(&StacktracesRequest {
        profile_type_id: request.profile_type_id,
        label_selector: request.label_selector,
        start: request.start,
        end: request.end,
        stack_trace_selector: request.stack_trace_selector,
        profile_id_selector: request.profile_id_selector,
        trace_id_selector: request.trace_id_selector,
        ..StacktracesRequest::default()
    })?;
    let merged = asked.core.engine.merged_paths(&asked.tenant, &query, trim).await?;
    let merged = merged.pruned(max_nodes);
    Ok(Resting { answer: PprofAnswer(merged_pprof(&merged, &query)), exactness: merged.exactness })
}

pub(super) async fn diff(asked: Asked<DiffRequest>) -> Result<Resting<DiffResponse>, ApiError> {
    let (Some(left), Some(right)) = (&asked.message.left, &asked.message.right) else {
        return Err(ApiError::invalid("left and right are both needed"));
    };
    if let Some(format) = [left.format, right.format].into_iter().find(|format| !(0..=4).contains(format)) {
        return Err(unknown_format(format));
    }
    let side = |name: &str, side: &StacktracesRequest| {
        flame_query(side).map_err(|error| ApiError { message: format!("{name}: {}", error.message), ..error })
    };
    let (mut left_query, mut right_query) = (side("left", left)?, side("right", right)?);
    let says_nodes = |side: &StacktracesRequest| side.max_nodes.is_some_and(|nodes| nodes != 0);
    // What one side alone says holds for both; the larger number does if both say one.
    match (says_nodes(left), says_nodes(right)) {
        (true, false) => right_query.max_nodes = left_query.max_nodes,
        (false, true) => left_query.max_nodes = right_query.max_nodes,
        _ => {}
    }
    let (tree, exactness) = diff_tree(&asked.core.engine, &asked.tenant, &left_query, &right_query).await?;
    let (left_ticks, right_ticks) = (tree.nodes()[0].left.total, tree.nodes()[0].right.total);
    let graph = flame_graph(Flamebearer::double(&tree));
    let flamegraph = FlameGraphDiffMessage {
        names: graph.names,
        levels: graph.levels,
        total: graph.total,
        max_self: graph.max_self,
        left_ticks,
        right_ticks,
    };
    Ok(Resting { answer: DiffResponse { flamegraph: Some(flamegraph) }, exactness })
}

/// Two selections laid over each other, and then pruned to the larger of their limits; and what both rest on.
pub(super) async fn diff_tree(
    engine: &Engine,
    tenant: &hotspan_model::TenantId,
    left: &FlameQuery,
    right: &FlameQuery,
) -> Result<(DiffTree, Exactness), ApiError> {
    check_types(left, right)?;
    let whole = |query: &FlameQuery| FlameQuery { max_nodes: 0, ..query.clone() };
    let (mut left_answer, mut right_answer) =
        (engine.flame(tenant, &whole(left)).await?, engine.flame(tenant, &whole(right)).await?);
    let tree = DiffTree::new(&left_answer.tree, &right_answer.tree).pruned(left.max_nodes.max(right.max_nodes));
    let exactness = exactness_of_both(&mut left_answer.exactness, &mut right_answer.exactness, &tree.folded());
    Ok((tree, exactness))
}

/// Seconds can't be compared with bytes.
pub(in crate::api) fn check_types(left: &FlameQuery, right: &FlameQuery) -> Result<(), ApiError> {
    if left.profile_type == right.profile_type {
        return Ok(());
    }
    let (left, right) = (&left.profile_type, &right.profile_type);
    Err(ApiError::invalid(format!("the two sides have different profile types: {left} and {right}")))
}

fn flame_query(request: &StacktracesRequest) -> Result<FlameQuery, ApiError> {
    let (from, until) = time_range(request.start, request.end)?;
    let mut query = FlameQuery {
        profile_type: profile_type(&request.profile_type_id)?,
        any_period: false,
        selector: parse_selector(&request.label_selector)?,
        from,
        until,
        spans: span_ids(&request.span_selector)?,
        traces: trace_ids(&request.trace_id_selector)?,
        owners_time: None,
        profiles: profile_ids(&request.profile_id_selector)?,
        stacks: stack_filter(request.stack_trace_selector.as_ref())?,
        max_nodes: max_nodes(request.max_nodes)?,
        owners: None,
    };
    take_ids(&mut query)?;
    Ok(query)
}

fn flame_graph(graph: Flamebearer) -> FlameGraphMessage {
    FlameGraphMessage {
        names: graph.names,
        levels: graph.levels.into_iter().map(|values| LevelMessage { values }).collect(),
        total: graph.num_ticks,
        max_self: graph.max_self,
    }
}

/// Merged paths as a pprof profile, not compressed.
pub(in crate::api) fn merged_pprof(merged: &MergedPaths, query: &FlameQuery) -> Vec<u8> {
    let ProfileType { sample_type, sample_unit, period_type, period_unit, .. } = query.profile_type.clone();
    let folded = (merged.exactness.pruned_nodes > 0)
        .then(|| format!("{} small call paths folded into \"other\"", merged.exactness.pruned_nodes));
    let open_end = query.until == i64::MAX;
    let header = pprof::Header {
        sample_types: vec![(sample_type.clone(), sample_unit)],
        period_type: (period_type, period_unit),
        time: query.from,
        duration: if open_end { 0 } else { query.until.saturating_sub(query.from) },
        default_sample_type: sample_type,
        comments: folded.into_iter().collect(),
        ..pprof::Header::default()
    };
    let mut writer = pprof::PprofWriter::new(&header, &merged.paths).with_build_ids(merged.build_ids.clone());
    for (path, value) in &merged.values {
        writer.sample(*path, &[*value], []);
    }
    writer.finish()
}
