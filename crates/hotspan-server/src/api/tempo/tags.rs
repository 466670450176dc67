//! Names of attributes and their values, for completion.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::Path;
use axum::response::Response;
use hotspan_model::Exactness;
use hotspan_query::search::{TagNamesRun, TagQuery, TagScopes, TagValue, TagValuesRun};
use hotspan_traceql::Program;
use hotspan_traceql::editor::lenient_condition;
use http::{HeaderMap, StatusCode};

use super::answer::{Form, Plain, TextError};
use super::messages::{
    MetadataMetrics, SearchTagValuesResponse, SearchTagValuesV2Response, SearchTagsResponse, SearchTagsV2Response,
    TagScope, TypedTagValue,
};
use super::parameters::Parameters;
use crate::api::ApiError;
use crate::api::asker::{Asker, Given};
use crate::api::exactness::with_exactness;

/// Names of intrinsics, which completion offers beside attributes.
const INTRINSICS: [&str; 25] = [
    "duration",
    "event:name",
    "event:timeSinceStart",
    "instrumentation:name",
    "instrumentation:version",
    "kind",
    "link:spanID",
    "link:traceID",
    "name",
    "rootName",
    "rootServiceName",
    "span:duration",
    "span:id",
    "span:kind",
    "span:name",
    "span:parentID",
    "span:status",
    "span:statusMessage",
    "status",
    "statusMessage",
    "trace:duration",
    "trace:id",
    "trace:rootName",
    "trace:rootService",
    "traceDuration",
];

const SCOPES: [&str; 7] = ["resource", "span", "event", "link", "instrumentation", "intrinsic", "none"];
/// Names of a scope, or values, that are given if the question does not say how many.
const DEFAULT_LIMIT: usize = 5000;
/// Without a time, so many of the latest spans are looked at: completion should not read a whole archive.
const ENOUGH_SPANS: u64 = 2_000_000;

/// The scope asked for, if it is not all of them.
fn scope_of(parameters: &Parameters) -> Result<Option<&str>, ApiError> {
    match parameters.scope.as_deref().filter(|scope| !scope.is_empty() && *scope != "none") {
        Some(scope) if !SCOPES.contains(&scope) => {
            Err(ApiError::invalid(format!("scope {scope:?} is not known; use one of {}", SCOPES.join(", "))))
        }
        other => Ok(other),
    }
}

fn tag_query(parameters: &Parameters) -> Result<TagQuery, ApiError> {
    let (from, until) = parameters.range(None)?;
    // A half-typed filter narrows by what of it is whole.
    let filter = parameters
        .query_text()
        .map(|text| lenient_condition(text).map_err(|error| ApiError::invalid(error.render(text))));
    Ok(TagQuery {
        from,
        until,
        filter: filter.transpose()?.flatten(),
        limit: parameters.given_limit().unwrap_or(DEFAULT_LIMIT),
        enough_spans: (!parameters.has_range()).then_some(ENOUGH_SPANS),
    })
}

/// A question for names, with the scope it is about.
#[derive(Debug)]
pub(super) struct NamesQuestion {
    run: Option<TagNamesRun>,
    scope: Option<String>,
    intrinsics: Intrinsics,
}

/// Whether the names of intrinsics are wanted, and given already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Intrinsics {
    Wanted,
    NotWanted,
}

impl NamesQuestion {
    pub(super) fn start(
        Asker { core, tenant }: &Asker,
        parameters: &Parameters,
        intrinsics_by_default: bool,
    ) -> Result<Self, ApiError> {
        let scope = scope_of(parameters)?.map(str::to_owned);
        let wants_intrinsics = scope.as_deref().map_or(intrinsics_by_default, |scope| scope == "intrinsic");
        let query = tag_query(parameters)?;
        let run = (scope.as_deref() != Some("intrinsic")).then(|| core.engine.start_tag_names(tenant, query));
        let intrinsics = if wants_intrinsics { Intrinsics::Wanted } else { Intrinsics::NotWanted };
        Ok(Self { run, scope, intrinsics })
    }

    /// Names that were not given before; none when all have been given.
    pub(super) async fn next_part(&mut self) -> Result<Option<TagScopes>, ApiError> {
        let mut names = TagScopes::new();
        let mut is_over = self.intrinsics == Intrinsics::NotWanted;
        if self.intrinsics == Intrinsics::Wanted {
            self.intrinsics = Intrinsics::NotWanted;
            names.insert("intrinsic", INTRINSICS.iter().map(|name| (*name).to_owned()).collect());
        }
        if let Some(run) = &mut self.run
            && let Some(fresh) = run.next_part().await?
        {
            is_over = false;
            let wanted =
                fresh.into_iter().filter(|(scope, _)| self.scope.as_deref().is_none_or(|wanted| wanted == *scope));
            names.extend(wanted);
        }
        Ok((!is_over).then_some(names))
    }

    pub(super) fn metrics(&self) -> MetadataMetrics {
        metadata(self.run.as_ref().map_or(0, TagNamesRun::inspected_bytes))
    }

    fn exactness(&self) -> Exactness {
        self.run.as_ref().map(TagNamesRun::exactness).unwrap_or_default()
    }

    async fn all(&mut self) -> Result<TagScopes, ApiError> {
        let mut all = TagScopes::new();
        while let Some(part) = self.next_part().await? {
            for (scope, names) in part {
                all.entry(scope).or_default().extend(names);
            }
        }
        Ok(all)
    }
}

pub(super) fn metadata(inspected_bytes: u64) -> MetadataMetrics {
    MetadataMetrics { inspected_bytes, total_jobs: 1, completed_jobs: 1 }
}

/// `/api/v2/search/tags`.
pub(super) async fn tags_v2(
    Plain(asker): Plain<Asker>,
    Plain(Given(parameters)): Plain<Given<Parameters>>,
    headers: HeaderMap,
) -> Result<Response, TextError> {
    let mut question = NamesQuestion::start(&asker, &parameters, true)?;
    let names = question.all().await?;
    let answer = Form::asked_for(&headers).answer(&tags_v2_message(names, question.metrics()))?;
    Ok(with_exactness(answer, &question.exactness()))
}

/// `/api/search/tags`.
pub(super) async fn tags_v1(
    Plain(asker): Plain<Asker>,
    Plain(Given(parameters)): Plain<Given<Parameters>>,
    headers: HeaderMap,
) -> Result<Response, TextError> {
    let mut question = NamesQuestion::start(&asker, &parameters, false)?;
    let names = question.all().await?;
    let answer = Form::asked_for(&headers).answer(&tags_v1_message(names, question.metrics()))?;
    Ok(with_exactness(answer, &question.exactness()))
}

pub(super) fn tags_v2_message(names: TagScopes, metrics: MetadataMetrics) -> SearchTagsV2Response {
    let scopes = names.into_iter().filter(|(_, tags)| !tags.is_empty());
    let scopes = scopes.map(|(scope, tags)| TagScope { name: scope.to_owned(), tags: tags.into_iter().collect() });
    SearchTagsV2Response { scopes: scopes.collect(), metrics: Some(metrics) }
}

pub(super) fn tags_v1_message(names: TagScopes, metrics: MetadataMetrics) -> SearchTagsResponse {
    let tags: BTreeSet<String> = names.into_values().flatten().collect();
    SearchTagsResponse { tag_names: tags.into_iter().collect(), metrics: Some(metrics) }
}

/// Starts to look for the values of a tag, which is named as TraceQL does.
pub(super) fn start_values(
    Asker { core, tenant }: &Asker,
    tag: &str,
    parameters: &Parameters,
) -> Result<TagValuesRun, ApiError> {
    hotspan_traceql::parse_field(tag).map_err(|error| ApiError::invalid(error.render(tag)))?;
    let program =
        Program::new(&format!("{{ }} | select({tag})")).map_err(|error| ApiError::invalid(error.to_string()))?;
    let query = tag_query(parameters)?;
    Ok(core.engine.start_tag_values(tenant, &Arc::new(program), query))
}

/// The tag of the first version, which knows no scopes, as TraceQL names it.
pub(super) fn unscoped(tag: &str) -> String {
    if tag.contains(':') || ["name", "status", "kind"].contains(&tag) { tag.to_owned() } else { format!(".{tag}") }
}

/// The tag in the rest of a path that should be `{tag}/values`.
fn tag_in(path: &str) -> Result<&str, ApiError> {
    let tag = path.strip_suffix("/values").filter(|tag| !tag.is_empty());
    let message = "the path should be /api/v2/search/tag/{tag}/values, or the same without v2";
    tag.ok_or_else(|| ApiError { status: StatusCode::NOT_FOUND, message: message.to_owned() })
}

/// `/api/v2/search/tag/{tag}/values`.
pub(super) async fn tag_values_v2(
    Plain(asker): Plain<Asker>,
    Path(path): Path<String>,
    Plain(Given(parameters)): Plain<Given<Parameters>>,
    headers: HeaderMap,
) -> Result<Response, TextError> {
    let mut run = start_values(&asker, tag_in(&path)?, &parameters)?;
    let values = all_values(&mut run).await?;
    let answer = Form::asked_for(&headers).answer(&values_v2_message(values, metadata(run.inspected_bytes())))?;
    Ok(with_exactness(answer, &run.exactness()))
}

/// `/api/search/tag/{tag}/values`.
pub(super) async fn tag_values_v1(
    Plain(asker): Plain<Asker>,
    Path(path): Path<String>,
    Plain(Given(parameters)): Plain<Given<Parameters>>,
    headers: HeaderMap,
) -> Result<Response, TextError> {
    let mut run = start_values(&asker, &unscoped(tag_in(&path)?), &parameters)?;
    let values = all_values(&mut run).await?;
    let answer = Form::asked_for(&headers).answer(&values_v1_message(values, metadata(run.inspected_bytes())))?;
    Ok(with_exactness(answer, &run.exactness()))
}

async fn all_values(run: &mut TagValuesRun) -> Result<BTreeSet<TagValue>, ApiError> {
    let mut all = BTreeSet::new();
    while let Some(part) = run.next_part().await? {
        all.extend(part);
    }
    Ok(all)
}

pub(super) fn values_v2_message(values: BTreeSet<TagValue>, metrics: MetadataMetrics) -> SearchTagValuesV2Response {
    let typed = |value: TagValue| TypedTagValue { value_type: value.value_type.to_owned(), value: value.text };
    SearchTagValuesV2Response { tag_values: values.into_iter().map(typed).collect(), metrics: Some(metrics) }
}

pub(super) fn values_v1_message(values: BTreeSet<TagValue>, metrics: MetadataMetrics) -> SearchTagValuesResponse {
    let texts: BTreeSet<String> = values.into_iter().map(|value| value.text).collect();
    SearchTagValuesResponse { tag_values: texts.into_iter().collect(), metrics: Some(metrics) }
}
