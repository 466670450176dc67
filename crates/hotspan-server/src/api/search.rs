//! Tempo's search: traces by TraceQL, tags and their values, and metrics.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use hotspan_lake::catalog::now_nanos;
use hotspan_query::search::{FoundSpanset, FoundTrace, SearchQuery};
use hotspan_traceql::{Program, Series, TimeGrid, TraceqlError, Value as QlValue, default_step};
use http::{HeaderMap, StatusCode, header};
use serde::Deserialize;
use serde_json::{Value, json};

use super::ApiError;
use crate::app::App;
use crate::receive::tenant_of;
use crate::time_text::{parse_duration, parse_time};

/// An error as Tempo gives it: plain text.
#[derive(Debug)]
pub(crate) struct TextError(ApiError);

impl<E: Into<ApiError>> From<E> for TextError {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for TextError {
    fn into_response(self) -> Response {
        (self.0.status, format!("{}\n", self.0.message)).into_response()
    }
}

#[derive(Debug, Deserialize, Default)]
pub(crate) struct SearchParameters {
    q: Option<String>,
    query: Option<String>,
    tags: Option<String>,
    #[serde(rename = "minDuration")]
    min_duration: Option<String>,
    #[serde(rename = "maxDuration")]
    max_duration: Option<String>,
    limit: Option<usize>,
    spss: Option<usize>,
    start: Option<String>,
    end: Option<String>,
    since: Option<String>,
    step: Option<String>,
    scope: Option<String>,
}

const DEFAULT_LIMIT: usize = 20;
const MAX_LIMIT: usize = 262_144;
const DEFAULT_SPANS_PER_SET: usize = 3;
const MAX_SPANS_PER_SET: usize = 100;
const HOUR: i64 = 3600 * 1_000_000_000;

impl SearchParameters {
    /// The time asked for; `fallback` nanoseconds up to now, or everything, where none is given.
    fn range(&self, fallback: Option<i64>) -> Result<(i64, i64), ApiError> {
        let now = now_nanos();
        let read = |name: &str, text: &Option<String>| {
            let parsed = text.as_deref().filter(|text| !text.is_empty()).map(|text| parse_time(text, now)).transpose();
            parsed.map_err(|error| ApiError::invalid(format!("{name}: {error}")))
        };
        let (start, end) = (read("start", &self.start)?, read("end", &self.end)?);
        if start.is_some() != end.is_some() {
            return Err(ApiError::invalid("start and end go together: give both or neither"));
        }
        if let Some(since) = &self.since {
            let length = parse_duration(since)
                .ok_or_else(|| ApiError::invalid(format!("since: {since:?} is not a length such as 1h")))?;
            let until = end.unwrap_or(now);
            return Ok((until.saturating_sub(i64::try_from(length.as_nanos()).unwrap_or(i64::MAX)), until));
        }
        let (from, until) = match (start, end) {
            (Some(start), Some(end)) => (start, end),
            _ => fallback.map_or((i64::MIN, i64::MAX), |length| (now - length, now + 1)),
        };
        if from >= until {
            return Err(ApiError::invalid("start must be before end"));
        }
        Ok((from, until))
    }

    /// The TraceQL to run: `q`, or what `tags` and durations say.
    fn traceql(&self) -> Result<String, ApiError> {
        if let Some(query) = self.q.as_ref().or(self.query.as_ref()).filter(|query| !query.trim().is_empty()) {
            return Ok(query.clone());
        }
        let mut conditions = Vec::new();
        for pair in self.tags.as_deref().unwrap_or_default().split_whitespace() {
            let (key, value) =
                pair.split_once('=').ok_or_else(|| ApiError::invalid(format!("tags: {pair:?} is not key=value")))?;
            let value = value.trim_matches('"');
            let field = match key {
                "name" | "status" | "kind" => key.to_owned(),
                _ => format!(".\"{}\"", key.replace('\\', "\\\\").replace('"', "\\\"")),
            };
            conditions.push(format!("{field} = {value:?}"));
        }
        for (name, operator, text) in
            [("minDuration", ">=", &self.min_duration), ("maxDuration", "<=", &self.max_duration)]
        {
            if let Some(text) = text.as_deref().filter(|text| !text.is_empty()) {
                parse_duration(text).ok_or_else(|| ApiError::invalid(format!("{name}: {text:?} is not a length")))?;
                conditions.push(format!("duration {operator} {text}"));
            }
        }
        Ok(format!("{{ {} }}", conditions.join(" && ")))
    }
}

fn compile(text: &str) -> Result<Program, ApiError> {
    Program::new(text).map_err(|error: TraceqlError| ApiError::invalid(error.render(text)))
}

/// `/api/search`.
pub(crate) async fn search(
    State(app): State<Arc<App>>,
    Query(parameters): Query<SearchParameters>,
    headers: HeaderMap,
) -> Result<Response, TextError> {
    let core = app.core()?;
    let tenant = tenant_of(&app, &headers)?;
    let text = parameters.traceql()?;
    let program = compile(&text)?;
    let (from, until) = parameters.range(None)?;
    let query = SearchQuery {
        from,
        until,
        limit: parameters.limit.filter(|limit| *limit > 0).unwrap_or(DEFAULT_LIMIT).min(MAX_LIMIT),
        spans_per_set: parameters
            .spss
            .filter(|spans| *spans > 0)
            .unwrap_or(DEFAULT_SPANS_PER_SET)
            .min(MAX_SPANS_PER_SET),
    };
    let answer = core.engine.search(&tenant, &program, &query).await?;
    let traces: Vec<Value> = answer.traces.iter().map(trace_json).collect();
    Ok(json_response(&json!({
        "traces": traces,
        "metrics": {
            "inspectedTraces": answer.inspected_traces,
            "inspectedBytes": answer.inspected_bytes.to_string(),
            "inspectedSpans": answer.inspected_spans.to_string(),
            "completedJobs": 1,
            "totalJobs": 1,
        },
    })))
}

fn trace_json(trace: &FoundTrace) -> Value {
    let sets: Vec<Value> = trace.spansets.iter().map(spanset_json).collect();
    let services: serde_json::Map<String, Value> = trace
        .services
        .iter()
        .map(|(service, (spans, errors))| {
            let mut counts = json!({ "spanCount": spans });
            if *errors > 0 {
                counts["errorCount"] = json!(errors);
            }
            (service.clone(), counts)
        })
        .collect();
    let mut json = json!({
        "traceID": trace.trace_id.to_string(),
        "rootServiceName": trace.root_service,
        "rootTraceName": trace.root_name,
        "startTimeUnixNano": trace.start.to_string(),
        "spanSets": sets,
        "serviceStats": services,
    });
    if let Some(first) = sets.first() {
        json["spanSet"] = first.clone();
    }
    // Protobuf JSON leaves zeros out.
    if trace.duration >= 1_000_000 {
        json["durationMs"] = json!(trace.duration / 1_000_000);
    }
    json
}

fn spanset_json(set: &FoundSpanset) -> Value {
    let spans = set.spans.iter().map(|span| {
        let mut json = json!({
            "spanID": span.span_id.to_string(),
            "startTimeUnixNano": span.start.to_string(),
            "durationNanos": span.duration.max(0).to_string(),
        });
        if !span.name.is_empty() {
            json["name"] = json!(span.name);
        }
        if !span.attributes.is_empty() {
            json["attributes"] = labels_json(&span.attributes);
        }
        json
    });
    let mut json = json!({ "spans": spans.collect::<Vec<_>>(), "matched": set.matched });
    if !set.attributes.is_empty() {
        json["attributes"] = labels_json(&set.attributes);
    }
    json
}

fn labels_json(labels: &[(String, QlValue)]) -> Value {
    labels.iter().map(|(key, value)| json!({ "key": key, "value": value_json(value) })).collect()
}

fn value_json(value: &QlValue) -> Value {
    match value {
        QlValue::Nil => json!({ "stringValue": "nil" }),
        QlValue::Bool(value) => json!({ "boolValue": value }),
        QlValue::Int(value) => json!({ "intValue": value.to_string() }),
        QlValue::Float(value) if value.is_finite() => json!({ "doubleValue": value }),
        QlValue::Float(value) => json!({ "doubleValue": value.to_string() }),
        QlValue::Str(text) => json!({ "stringValue": text }),
        QlValue::Array(values) => {
            json!({ "arrayValue": { "values": values.iter().map(value_json).collect::<Vec<_>>() } })
        }
        other => json!({ "stringValue": other.to_string() }),
    }
}

/// Names of intrinsics, which completion offers beside attributes.
const INTRINSICS: [&str; 22] = [
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
    "traceDuration",
];

const SCOPES: [&str; 7] = ["resource", "span", "event", "link", "instrumentation", "intrinsic", "none"];

fn check_scope(scope: Option<&str>) -> Result<Option<&str>, ApiError> {
    match scope.filter(|scope| !scope.is_empty() && *scope != "none") {
        Some(scope) if !SCOPES.contains(&scope) => {
            Err(ApiError::invalid(format!("scope {scope:?} is not known; use one of {}", SCOPES.join(", "))))
        }
        other => Ok(other),
    }
}

/// `/api/v2/search/tags`.
pub(crate) async fn tags_v2(
    State(app): State<Arc<App>>,
    Query(parameters): Query<SearchParameters>,
    headers: HeaderMap,
) -> Result<Response, TextError> {
    let wanted = check_scope(parameters.scope.as_deref())?;
    let (from, until) = parameters.range(Some(HOUR))?;
    let core = app.core()?;
    let names = core.engine.tag_names(&tenant_of(&app, &headers)?, from, until).await?;
    let mut scopes: Vec<Value> = names
        .iter()
        .filter(|(scope, _)| wanted.is_none_or(|wanted| wanted == **scope))
        .map(|(scope, tags)| json!({ "name": scope, "tags": tags }))
        .collect();
    if wanted.is_none_or(|wanted| wanted == "intrinsic") {
        scopes.push(json!({ "name": "intrinsic", "tags": INTRINSICS }));
    }
    Ok(json_response(&json!({ "scopes": scopes, "metrics": {} })))
}

/// `/api/search/tags`.
pub(crate) async fn tags_v1(
    State(app): State<Arc<App>>,
    Query(parameters): Query<SearchParameters>,
    headers: HeaderMap,
) -> Result<Response, TextError> {
    let wanted = check_scope(parameters.scope.as_deref())?;
    if wanted == Some("intrinsic") {
        return Ok(json_response(&json!({ "tagNames": INTRINSICS, "metrics": {} })));
    }
    let (from, until) = parameters.range(Some(HOUR))?;
    let core = app.core()?;
    let names = core.engine.tag_names(&tenant_of(&app, &headers)?, from, until).await?;
    let mut tags: Vec<&String> = names
        .iter()
        .filter(|(scope, _)| wanted.is_none_or(|wanted| wanted == **scope))
        .flat_map(|(_, tags)| tags)
        .collect();
    tags.sort_unstable();
    tags.dedup();
    Ok(json_response(&json!({ "tagNames": tags, "metrics": {} })))
}

/// `/api/v2/search/tag/{tag}/values`.
pub(crate) async fn tag_values_v2(
    State(app): State<Arc<App>>,
    Path(tag): Path<String>,
    Query(parameters): Query<SearchParameters>,
    headers: HeaderMap,
) -> Result<Response, TextError> {
    let values = tag_values(&app, &tag, &parameters, &headers).await?;
    let values: Vec<Value> =
        values.iter().map(|value| json!({ "type": value.value_type, "value": value.text })).collect();
    Ok(json_response(&json!({ "tagValues": values, "metrics": {} })))
}

/// `/api/search/tag/{tag}/values`.
pub(crate) async fn tag_values_v1(
    State(app): State<Arc<App>>,
    Path(tag): Path<String>,
    Query(parameters): Query<SearchParameters>,
    headers: HeaderMap,
) -> Result<Response, TextError> {
    let scoped =
        if tag.contains(':') || ["name", "status", "kind"].contains(&tag.as_str()) { tag } else { format!(".{tag}") };
    let values = tag_values(&app, &scoped, &parameters, &headers).await?;
    let values: Vec<&str> = values.iter().map(|value| value.text.as_str()).collect();
    Ok(json_response(&json!({ "tagValues": values, "metrics": {} })))
}

async fn tag_values(
    app: &App,
    tag: &str,
    parameters: &SearchParameters,
    headers: &HeaderMap,
) -> Result<std::collections::BTreeSet<hotspan_query::search::TagValue>, ApiError> {
    hotspan_traceql::parse_field(tag).map_err(|error| ApiError::invalid(error.render(tag)))?;
    // A half-typed filter narrows nothing; a whole one does.
    let filter = parameters.q.as_deref().unwrap_or("{ }");
    let program = Program::new(&format!("{filter} | select({tag})"))
        .or_else(|_| Program::new(&format!("{{ }} | select({tag})")))
        .map_err(|error| ApiError::invalid(error.to_string()))?;
    let (from, until) = parameters.range(Some(HOUR))?;
    let core = app.core()?;
    let limit = parameters.limit.filter(|limit| *limit > 0).unwrap_or(5000);
    Ok(core.engine.tag_values(&tenant_of(app, headers)?, &program, from, until, limit).await?)
}

/// `/api/metrics/query_range`.
pub(crate) async fn query_range(
    State(app): State<Arc<App>>,
    Query(parameters): Query<SearchParameters>,
    headers: HeaderMap,
) -> Result<Response, TextError> {
    let (from, until) = parameters.range(Some(HOUR))?;
    let step = match parameters.step.as_deref().filter(|step| !step.is_empty()) {
        Some(text) => step_nanos(text)?,
        None => default_step(from, until),
    };
    let grid = TimeGrid::range(from, until, step).map_err(|error| ApiError::invalid(error.to_string()))?;
    let series = metrics(&app, &parameters, &headers, grid, from, until).await?;
    let series: Vec<Value> = series.0.iter().map(series_json).collect();
    Ok(json_response(&json!({ "series": series, "metrics": {} })))
}

/// `/api/metrics/query`.
pub(crate) async fn query_instant(
    State(app): State<Arc<App>>,
    Query(parameters): Query<SearchParameters>,
    headers: HeaderMap,
) -> Result<Response, TextError> {
    let (from, until) = parameters.range(Some(HOUR))?;
    let grid = TimeGrid::instant(from, until).map_err(|error| ApiError::invalid(error.to_string()))?;
    let series = metrics(&app, &parameters, &headers, grid, from, until).await?;
    let series = series.0.iter().filter_map(|series| {
        let value = series.points.iter().map(|point| point.value).find(|value| value.is_finite())?;
        Some(json!({ "labels": labels_json(&series.labels), "value": value }))
    });
    Ok(json_response(&json!({ "series": series.collect::<Vec<_>>(), "metrics": {} })))
}

struct MetricsSeries(Vec<Series>);

async fn metrics(
    app: &App,
    parameters: &SearchParameters,
    headers: &HeaderMap,
    grid: TimeGrid,
    from: i64,
    until: i64,
) -> Result<MetricsSeries, ApiError> {
    let text = parameters.traceql()?;
    let program = compile(&text)?;
    let core = app.core()?;
    let answer = core.engine.metrics(&tenant_of(app, headers)?, &program, grid, from, until).await?;
    Ok(MetricsSeries(answer.series))
}

fn series_json(series: &Series) -> Value {
    // Values that are no numbers have no place in JSON; a missing point says the same.
    let points =
        series.points.iter().filter(|point| point.value.is_finite()).map(
            |point| json!({ "timestampMs": (point.timestamp_nanos / 1_000_000).to_string(), "value": point.value }),
        );
    let exemplars: Vec<Value> = series
        .exemplars
        .iter()
        .map(|exemplar| {
            json!({
                "labels": [{ "key": "trace:id", "value": { "stringValue": exemplar.trace_id.to_string() } }],
                "value": exemplar.value,
                "timestampMs": (exemplar.timestamp_nanos / 1_000_000).to_string(),
            })
        })
        .collect();
    let mut json = json!({ "labels": labels_json(&series.labels), "samples": points.collect::<Vec<_>>() });
    if !exemplars.is_empty() {
        json["exemplars"] = json!(exemplars);
    }
    json
}

fn step_nanos(text: &str) -> Result<i64, ApiError> {
    let seconds = text.parse::<f64>().ok().map(|seconds| (seconds * 1e9) as i64);
    let nanos = seconds.or_else(|| parse_duration(text).and_then(|step| i64::try_from(step.as_nanos()).ok()));
    nanos
        .filter(|nanos| *nanos > 0)
        .ok_or_else(|| ApiError::invalid(format!("step: {text:?} is not a length such as 15s")))
}

/// `/api/status/buildinfo`, which clients gate features by.
pub(crate) async fn build_info() -> Response {
    json_response(&json!({
        "version": "3.0.0", "revision": env!("CARGO_PKG_VERSION"), "branch": "hotspan",
        "buildUser": "", "buildDate": "", "goVersion": "",
    }))
}

fn json_response(body: &Value) -> Response {
    (StatusCode::OK, [(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}
