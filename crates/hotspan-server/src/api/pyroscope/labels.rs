//! What there is to ask about: profile types, labels, series, and how much a query would read.

use std::collections::BTreeSet;

use hotspan_formats::profile_query::parse_selector;
use hotspan_lake::Table;
use hotspan_model::labels::DERIVED_LABELS;
use hotspan_model::{Labels, ProfileType};
use hotspan_query::{Selector, Told, plain_name};
use http::header;

use super::messages::{
    AnalyzeQueryRequest, AnalyzeQueryResponse, EmptyMessage, LabelNamesRequest, LabelPair, LabelValuesRequest,
    LabelsMessage, NamesResponse, ProfileStatsResponse, ProfileTypeMessage, ProfileTypesRequest, ProfileTypesResponse,
    QueryImpact, QueryScope, SeriesRequest, SeriesResponse,
};
use super::selection::{time_range, written_query};
use super::unary::{Asked, Resting};
use crate::api::ApiError;

pub(super) async fn profile_types(
    asked: Asked<ProfileTypesRequest>,
) -> Result<Resting<ProfileTypesResponse>, ApiError> {
    let (from, until) = time_range(asked.message.start, asked.message.end)?;
    let ids = asked.core.engine.profile_types(&asked.tenant, from, until).await?;
    let profile_types = ids.answer.into_iter().filter_map(|id| {
        let ProfileType { name, sample_type, sample_unit, period_type, period_unit } = id.parse().ok()?;
        Some(ProfileTypeMessage { id, name, sample_type, sample_unit, period_type, period_unit })
    });
    let answer = ProfileTypesResponse { profile_types: profile_types.collect() };
    Ok(Resting { answer, exactness: ids.exactness })
}

pub(super) async fn label_names(asked: Asked<LabelNamesRequest>) -> Result<Resting<NamesResponse>, ApiError> {
    let (from, until) = time_range(asked.message.start, asked.message.end)?;
    let any_of = selectors(&asked.message.matchers)?;
    let Told { answer: mut names, exactness } =
        asked.core.engine.label_names(&asked.tenant, &any_of, from, until).await?;
    // Clients that put names into selectors without quotes can't use those with dots: they get names that they can.
    let mut accepts = asked.headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    if !accepts.any(|accept| accept.replace(' ', "").contains("allow-utf8-labelnames=true")) {
        let plain: BTreeSet<String> = names.iter().map(|name| plain_name(name)).collect();
        names = plain.into_iter().filter(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')).collect();
    }
    Ok(Resting { answer: NamesResponse { names }, exactness })
}

pub(super) async fn label_values(asked: Asked<LabelValuesRequest>) -> Result<Resting<NamesResponse>, ApiError> {
    let request = &asked.message;
    if request.name.is_empty() {
        return Err(ApiError::invalid("name is missing: the label whose values are wanted"));
    }
    let (from, until) = time_range(request.start, request.end)?;
    let any_of = selectors(&request.matchers)?;
    let Told { answer: names, exactness } =
        asked.core.engine.label_values(&asked.tenant, &request.name, &any_of, from, until).await?;
    Ok(Resting { answer: NamesResponse { names }, exactness })
}

pub(super) async fn series(asked: Asked<SeriesRequest>) -> Result<Resting<SeriesResponse>, ApiError> {
    let request = &asked.message;
    let (from, until) = time_range(request.start, request.end)?;
    let engine = &asked.core.engine;
    let any_of = selectors(&request.matchers)?;
    let series = engine.series(&asked.tenant, &engine.snapshot(), &any_of, (from, until)).await?;
    let is_wanted = |name: &str| request.label_names.is_empty() || request.label_names.iter().any(|n| n == name);
    let wanted = |labels: &Labels| {
        let derived = DERIVED_LABELS.into_iter().filter_map(|name| Some((name, labels.derived(name)?)));
        Labels::from_pairs(labels.iter().chain(derived).filter(|(name, _)| is_wanted(name)))
    };
    let mut sets: BTreeSet<Labels> = series.answer.iter().map(|entry| wanted(&entry.labels)).collect();
    sets.retain(|labels| !labels.is_empty());
    let labels_set = sets.iter().map(|labels| LabelsMessage { labels: pairs(labels) }).collect();
    Ok(Resting { answer: SeriesResponse { labels_set }, exactness: series.exactness })
}

pub(super) async fn profile_stats(asked: Asked<EmptyMessage>) -> Result<ProfileStatsResponse, ApiError> {
    let segments = asked.core.engine.snapshot().segments(&asked.tenant, Table::Profiles);
    let millis = |time: Option<i64>| time.unwrap_or(0).div_euclid(1_000_000);
    Ok(ProfileStatsResponse {
        data_ingested: !segments.is_empty(),
        oldest_profile_time: millis(segments.iter().map(|segment| segment.min_time).min()),
        newest_profile_time: millis(segments.iter().map(|segment| segment.max_time).max()),
    })
}

/// How much a query would read, from the catalog alone.
pub(super) async fn analyze_query(asked: Asked<AnalyzeQueryRequest>) -> Result<AnalyzeQueryResponse, ApiError> {
    let request = &asked.message;
    let (from, until) = time_range(request.start, request.end)?;
    let text = request.query.trim();
    // A query without a type is about all of them.
    let selector = if text.is_empty() || text.starts_with('{') {
        parse_selector(text)?
    } else {
        written_query(text)?.typed_selector()
    };
    let engine = &asked.core.engine;
    let snapshot = engine.snapshot();
    let series = engine.series(&asked.tenant, &snapshot, &[selector], (from, until)).await?;
    let series_count = series.answer.len() as u64;
    let mut scope =
        QueryScope { component_type: "store".to_owned(), component_count: 1, series_count, ..QueryScope::default() };
    // What has no series is answered without reading anything else.
    let all = [Table::Samples, Table::Profiles, Table::Series, Table::Nodes, Table::Frames];
    let tables = if series_count > 0 { &all[..] } else { &[] };
    for table in tables.iter().copied() {
        for segment in snapshot.segments(&asked.tenant, table).iter().filter(|found| found.overlaps(from, until)) {
            scope.index_bytes += segment.index.as_ref().map_or(0, |(_, size)| *size);
            match table {
                Table::Samples => {
                    scope.block_count += 1;
                    scope.sample_count += segment.rows;
                    scope.profile_bytes += segment.bytes();
                }
                Table::Profiles => scope.profile_count += segment.rows,
                Table::Series => scope.index_bytes += segment.bytes(),
                _ => scope.symbol_bytes += segment.bytes(),
            }
        }
    }
    let impact = QueryImpact {
        total_bytes_in_time_range: scope.index_bytes + scope.profile_bytes + scope.symbol_bytes,
        total_queried_series: series_count,
        deduplication_needed: false,
    };
    Ok(AnalyzeQueryResponse { query_scopes: vec![scope], query_impact: Some(impact) })
}

/// Labels as pairs.
pub(super) fn pairs(labels: &Labels) -> Vec<LabelPair> {
    let pair = |(name, value): (&str, &str)| LabelPair { name: name.to_owned(), value: value.to_owned() };
    labels.iter().map(pair).collect()
}

/// Several selectors mean any of them; none means everything.
fn selectors(texts: &[String]) -> Result<Vec<Selector>, ApiError> {
    if texts.is_empty() {
        return Ok(vec![Selector::default()]);
    }
    texts.iter().map(|text| Ok(parse_selector(text)?)).collect()
}
