//! `/api/v1/profile`: the flame graph of a service, span or trace, in the format that the asker reads.

use axum::response::{IntoResponse, Response};
use hotspan_formats::flamebearer::Metadata;
use hotspan_formats::span_identity::{ID_FORMS, parse_span_id, parse_trace_id};
use hotspan_formats::{collapsed, counted, dot, flame_page, gzip, packed_flame, speedscope, svg, text_flame, wrapped};
use hotspan_lake::catalog::now_nanos;
use hotspan_model::labels::SERVICE_NAME;
use hotspan_model::{ProfileType, TenantId};
use hotspan_query::{FlameAnswer, FlameQuery, LeafTrim, Matcher, Selector};
use http::{HeaderMap, HeaderValue, Uri, header};
use serde::Deserialize;
use serde_json::json;

use super::ApiError;
use super::asker::{Asker, Given};
use super::exactness::{evidence_text, with_exactness};
use super::flame_json::FlameJson;
use super::known_parameters::{names_of, refuse_other, refuse_unknown};
use super::no_samples::{asked_for, no_samples};
use super::pyroscope::{DOT_FUNCTIONS, max_nodes, merged_pprof, take_ids};
use super::short_types::settle_type;
use super::snapshot_sums::{snapshots_summed, snapshots_text, told_exactness};
use super::span_scope::{ScopeParameters, outlines_of, owners_in_trace};
use crate::accept::Accept;
use crate::app::Core;
use crate::time_text::parse_time;

/// Time looked at when none is given and no span or trace narrows the question down.
const DEFAULT_RANGE: i64 = 3600 * 1_000_000_000;

/// What a flame graph may be asked for as.
const FLAME_FORMATS: [&str; 10] =
    ["json", "packed", "flamegraph", "html", "text", "svg", "pprof", "collapsed", "speedscope", "dot"];

#[derive(Debug, Deserialize)]
pub(crate) struct ProfileParameters {
    app: Option<String>,
    #[serde(alias = "service")]
    service_name: Option<String>,
    #[serde(rename = "type", alias = "profile_type")]
    profile_type: Option<String>,
    /// Further conditions, as in `{version="1.4.2", region=~"eu.*"}`.
    labels: Option<String>,
    span_id: Option<String>,
    trace_id: Option<String>,
    #[serde(alias = "start", alias = "start_time")]
    from: Option<String>,
    #[serde(alias = "to", alias = "end", alias = "end_time")]
    until: Option<String>,
    #[serde(alias = "maxNodes", alias = "max-nodes")]
    max_nodes: Option<i64>,
    format: Option<String>,
}

/// How text is to be drawn; only the terminal knows.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct TextParameters {
    width: Option<usize>,
    #[serde(alias = "color")]
    colour: Option<bool>,
    lines: Option<usize>,
    min_percent: Option<f64>,
}

impl TextParameters {
    /// Refuses what can't be drawn.
    fn check(&self) -> Result<(), ApiError> {
        if self.lines == Some(0) {
            return Err(ApiError::invalid("lines is 0; it may be 1 or more"));
        }
        match self.min_percent {
            Some(share) if !(0.0..=100.0).contains(&share) => {
                Err(ApiError::invalid(format!("min_percent is {share}; it may be 0 to 100")))
            }
            _ => Ok(()),
        }
    }

    /// Whether ANSI escapes are welcome.
    pub(crate) fn colour(&self) -> bool {
        self.colour.unwrap_or(false)
    }

    /// Drawing for a screen of this width, if there is one.
    pub(crate) fn within(width: Option<usize>) -> Self {
        Self { width, ..Self::default() }
    }

    /// Columns to draw in; without, nothing is cut.
    pub(crate) fn width(&self) -> Option<usize> {
        self.width.map(|width| width.clamp(40, 1000))
    }

    pub(crate) fn options(&self, unit: &str, folded: u64) -> text_flame::TextFlameOptions {
        let default = text_flame::TextFlameOptions::default();
        text_flame::TextFlameOptions {
            width: self.width(),
            colour: self.colour(),
            max_lines: self.lines.unwrap_or(default.max_lines),
            min_percent: self.min_percent.unwrap_or(default.min_percent),
            unit: unit.to_owned(),
            folded,
        }
    }
}

/// Answers `/api/v1/profile`.
pub(crate) async fn profile(
    Asker { core, tenant }: Asker,
    Given(parameters): Given<ProfileParameters>,
    Given(text): Given<TextParameters>,
    Given(scope): Given<ScopeParameters>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let known = [names_of::<ProfileParameters>(), names_of::<TextParameters>(), names_of::<ScopeParameters>()];
    refuse_unknown(&uri, &known)?;
    let mut query = flame_query(&parameters, now_nanos())?;
    if let Some(text) = &parameters.profile_type {
        settle_type(&core, &tenant, text, &mut query).await?;
    }
    let scope = scope.read()?;
    if let ([trace_id], [span_id]) = (query.traces.as_slice(), query.spans.as_slice()) {
        // A span that is not stored yet still has the samples that name it.
        let spans = outlines_of(&core, &tenant, *trace_id).await?;
        let found = owners_in_trace(&core, &tenant, &spans, Some(*span_id), scope).await?;
        (query.owners, query.owners_time) = found.unzip();
    }
    let format = parameters.format.as_deref().unwrap_or("json");
    let asked = AskedFlame { query: &query, format, text: &text, uri: &uri, headers: &headers, if_empty: None };
    flame_response(&core, &tenant, &asked).await
}

/// A flame graph that somebody asked for, and in which form.
#[derive(Debug)]
pub(crate) struct AskedFlame<'a> {
    pub(crate) query: &'a FlameQuery,
    pub(crate) format: &'a str,
    pub(crate) text: &'a TextParameters,
    pub(crate) uri: &'a Uri,
    pub(crate) headers: &'a HeaderMap,
    /// What a reader is told if there are no samples, where the asker knows more than the query says.
    pub(crate) if_empty: Option<String>,
}

/// A flame graph in the format that is asked for.
pub(crate) async fn flame_response(
    core: &Core,
    tenant: &TenantId,
    asked: &AskedFlame<'_>,
) -> Result<Response, ApiError> {
    let AskedFlame { query, format, text: drawing, uri, headers, ref if_empty } = *asked;
    refuse_other("format", format, &FLAME_FORMATS)?;
    drawing.check()?;
    let format = if format == "flamegraph" { suiting_format(headers) } else { format };
    if format == "pprof" {
        let merged = core.engine.merged_paths(tenant, query, LeafTrim::default()).await?;
        let body = gzip(&merged_pprof(&merged, query));
        let headers = [
            (header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
            (header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment; filename=\"profile.pb.gz\"")),
        ];
        return Ok(with_exactness((headers, body), &merged.exactness));
    }
    // Files that other tools read are whole, and so is what sums are made of; pictures and text show the largest nodes.
    let is_whole = matches!(format, "collapsed" | "speedscope" | "dot" | "html");
    let max_nodes = if is_whole { 0 } else { query.max_nodes };
    let answer = core.engine.flame(tenant, &FlameQuery { max_nodes, ..query.clone() }).await?;
    let folded = answer.exactness.pruned_nodes;
    let unit = query.profile_type.sample_unit.as_str();
    let says_evidence = matches!(format, "html" | "text" | "json" | "packed");
    let summed = if says_evidence { snapshots_summed(core, tenant, query).await? } else { None };
    let mut evidence = evidence_text(&answer.exactness);
    if let Some(profiles) = summed {
        evidence.push_str(&format!(", {}", snapshots_text(profiles, answer.tree.total(), unit)));
    }
    let title = title_of(query);
    let told_instead = match (format, if_empty) {
        ("html" | "text", Some(told)) if answer.exactness.samples == 0 => told.clone(),
        ("html" | "text", None) if answer.exactness.samples == 0 => no_samples(core, tenant, query).await?,
        _ => String::new(),
    };
    let text = |content_type: &'static str, body: String| {
        ([(header::CONTENT_TYPE, HeaderValue::from_static(content_type))], body).into_response()
    };
    let drawn = match format {
        "json" => flame_json(&answer, &query.profile_type, summed),
        "packed" => {
            let content_type = HeaderValue::from_static("application/octet-stream");
            ([(header::CONTENT_TYPE, content_type)], packed(&answer, &query.profile_type, summed)).into_response()
        }
        "html" => {
            let around = flame_page::PageOptions {
                title,
                unit: unit.to_owned(),
                evidence,
                links: other_forms(uri),
                if_empty: told_instead,
            };
            text("text/html; charset=utf-8", page(&answer, query.max_nodes, around))
        }
        "text" if answer.exactness.samples == 0 => text("text/plain; charset=utf-8", told_instead),
        "text" => {
            let options = drawing.options(unit, folded);
            let mut graph = text_flame::text_flame(&answer.tree, &options);
            graph.push_str(&wrapped(&evidence, 2, drawing.width()));
            text("text/plain; charset=utf-8", graph)
        }
        "svg" => {
            let options = svg::SvgOptions { title, unit: unit.to_owned(), folded, ..svg::SvgOptions::default() };
            text("image/svg+xml", svg::flame_svg(&answer.tree, &options))
        }
        "collapsed" => text("text/plain; charset=utf-8", collapsed::encode(&answer.tree)),
        "speedscope" => text("application/json", speedscope::encode(&answer.tree, &title, unit)),
        // Only those of `FLAME_FORMATS` come here.
        _ => text("text/vnd.graphviz", dot::encode(&answer.tree, unit, DOT_FUNCTIONS)),
    };
    Ok(with_exactness(drawn, &answer.exactness))
}

/// The form of a flame graph that suits an asker: a page for browsers, and text for those who read anything, as curl does.
fn suiting_format(headers: &HeaderMap) -> &'static str {
    match Accept::of(headers).best(&["text/plain", "text/html", "application/json"]) {
        Some("text/html") => "html",
        Some("application/json") => "json",
        _ => "text",
    }
}

/// What is drawn: the type, and whose samples, as far as the query says it.
fn title_of(query: &FlameQuery) -> String {
    match asked_for(query) {
        asked if asked == "{}" => query.profile_type.to_string(),
        asked => format!("{} {asked}", query.profile_type),
    }
}

/// The page for a browser.
fn page(answer: &FlameAnswer, max_nodes: usize, mut around: flame_page::PageOptions) -> String {
    let drawn = answer.pruned(max_nodes);
    let pruned_nodes = drawn.exactness.pruned_nodes;
    if pruned_nodes > 0 {
        let folded = counted(pruned_nodes, "small call path");
        around.evidence.push_str(&format!(", {folded} folded into \"other\""));
    }
    flame_page::flame_page(&drawn.tree, &answer.tree, &around)
}

/// The same answer in other forms, one click away.
fn other_forms(uri: &Uri) -> Vec<(String, String)> {
    let kept: Vec<&str> =
        uri.query().unwrap_or_default().split('&').filter(|pair| !pair.starts_with("format=")).collect();
    let link = |format: &&str| ((*format).to_owned(), format!("?{}&format={format}", kept.join("&")));
    ["pprof", "svg", "collapsed", "speedscope", "json", "text"].iter().map(link).collect()
}

/// The profile type that a question names; CPU time if it names none.
pub(crate) fn type_or_cpu(text: Option<&str>) -> Result<ProfileType, ApiError> {
    match text {
        Some(text) => text.parse().map_err(|error| ApiError::invalid(format!("type: {error}"))),
        None => Ok(ProfileType::cpu()),
    }
}

/// The question, about CPU time until the type that it names is settled.
fn flame_query(parameters: &ProfileParameters, now: i64) -> Result<FlameQuery, ApiError> {
    let mut selector = match &parameters.labels {
        Some(text) => Selector::parse(text).map_err(|error| ApiError::invalid(format!("labels: {error}")))?,
        None => Selector::default(),
    };
    if let Some(service) = parameters.app.as_ref().or(parameters.service_name.as_ref()) {
        selector = selector.and(Matcher::equal(SERVICE_NAME, service.as_str()));
    }
    let named = |name: &str, text: &str| ApiError::invalid(format!("{name}: {text:?} is not an id; {ID_FORMS}"));
    let spans = parameters
        .span_id
        .iter()
        .map(|text| parse_span_id(text).ok_or_else(|| named("span_id", text)))
        .collect::<Result<_, _>>()?;
    let traces = parameters
        .trace_id
        .iter()
        .map(|text| parse_trace_id(text).ok_or_else(|| named("trace_id", text)))
        .collect::<Result<_, _>>()?;
    let mut query = FlameQuery {
        any_period: true,
        profile_type: ProfileType::cpu(),
        selector,
        spans,
        traces,
        max_nodes: max_nodes(parameters.max_nodes)?,
        ..FlameQuery::default()
    };
    take_ids(&mut query)?;
    let time = |name: &str, text: &Option<String>| match text {
        Some(text) => parse_time(text, now).map(Some).map_err(|error| ApiError::invalid(format!("{name}: {error}"))),
        None => Ok(None),
    };
    let has_ids = !query.spans.is_empty() || !query.traces.is_empty();
    // A span or trace is found wherever it is; everything else is about the last hour.
    query.until = time("until", &parameters.until)?.unwrap_or(if has_ids { i64::MAX } else { now });
    let default_from = if has_ids { 0 } else { query.until.saturating_sub(DEFAULT_RANGE) };
    query.from = time("from", &parameters.from)?.unwrap_or(default_from);
    if query.from >= query.until {
        return Err(ApiError::invalid("from must be before until"));
    }
    Ok(query)
}

/// Flamebearer JSON with what the numbers rest on.
fn flame_json(answer: &FlameAnswer, profile_type: &ProfileType, summed: Option<u64>) -> Response {
    let graph = FlameJson::single(&answer.tree, profile_type);
    graph.telling("exactness", told_exactness(&answer.exactness, summed)).into_response()
}

/// The same for readers of large graphs.
fn packed(answer: &FlameAnswer, profile_type: &ProfileType, summed: Option<u64>) -> Vec<u8> {
    let metadata = Metadata::for_type("single", profile_type);
    let exactness = told_exactness(&answer.exactness, summed);
    packed_flame::encode(&answer.tree, json!({ "metadata": metadata, "exactness": exactness }))
}
