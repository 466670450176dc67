//! `/api/v1/diff`: two selections compared, function by function and as one flame graph.

use axum::response::{IntoResponse, Response};
use hotspan_formats::change_table::{FunctionChange, changes_text, function_changes};
use hotspan_formats::diff_tree::{DiffTree, Presence};
use hotspan_formats::measure::Measure;
use hotspan_formats::{counted, duration_text, rate_text, shortened, svg, value_text, wrapped};
use hotspan_model::{Exactness, TenantId};
use hotspan_query::{Engine, FlameAnswer, FlameQuery};
use http::{HeaderValue, StatusCode, Uri, header};
use serde::Deserialize;
use serde_json::{Value, json};

use super::ApiError;
use super::asker::{Asker, Given};
use super::exactness::{coverage_text, exactness_json, exactness_of_both, with_exactness};
use super::flame_json::FlameJson;
use super::known_parameters::{names_of, refuse_other, refuse_unknown};
use super::no_samples::no_samples;
use super::profile::TextParameters;
use super::pyroscope::{check_types, ranged_query};
use super::short_types::settle_query;
use crate::app::Core;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct DiffParameters {
    #[serde(alias = "left")]
    baseline: Option<String>,
    #[serde(alias = "right")]
    comparison: Option<String>,
    from: Option<String>,
    until: Option<String>,
    baseline_from: Option<String>,
    baseline_until: Option<String>,
    comparison_from: Option<String>,
    comparison_until: Option<String>,
    per: Option<String>,
    layout: Option<String>,
    format: Option<String>,
    limit: Option<usize>,
    #[serde(alias = "maxNodes", alias = "max-nodes")]
    max_nodes: Option<i64>,
}

/// Functions that are listed where the asker does not say.
const FUNCTIONS: usize = 50;

/// One side of a comparison.
struct Selected {
    text: String,
    query: FlameQuery,
    answer: FlameAnswer,
    /// Seconds, profiles or requests that its values are divided by.
    units: f64,
}

/// Answers `/api/v1/diff`.
pub(crate) async fn diff(
    Asker { core, tenant }: Asker,
    Given(parameters): Given<DiffParameters>,
    Given(text): Given<TextParameters>,
    uri: Uri,
) -> Result<Response, ApiError> {
    refuse_unknown(&uri, &[names_of::<DiffParameters>(), names_of::<TextParameters>()])?;
    let per = parameters.per.as_deref().map(Per::parse).transpose()?;
    let format = parameters.format.as_deref().unwrap_or("json");
    refuse_other("format", format, &["json", "text", "svg"])?;
    let limit = functions_to_list(parameters.limit, format)?;
    let layout = parameters.layout.as_deref().unwrap_or("both").parse().map_err(ApiError::invalid)?;
    let side = |name: &str, query: &Option<String>, from: &Option<String>, until: &Option<String>| {
        let text = query.clone().ok_or_else(|| ApiError::invalid(format!("{name} is missing")))?;
        let from = from.clone().or_else(|| parameters.from.clone());
        let until = until.clone().or_else(|| parameters.until.clone());
        let query = ranged_query(&text, &from, &until, parameters.max_nodes);
        let query = query.map_err(|error| ApiError { message: format!("{name}: {}", error.message), ..error })?;
        Ok::<_, ApiError>((text, query))
    };
    let mut left = side("baseline", &parameters.baseline, &parameters.baseline_from, &parameters.baseline_until)?;
    let mut right =
        side("comparison", &parameters.comparison, &parameters.comparison_from, &parameters.comparison_until)?;
    for (text, query) in [&mut left, &mut right] {
        settle_query(&core, &tenant, text, query).await?;
    }
    check_types(&left.1, &right.1)?;
    // Sums of what there was at single moments grow with how often somebody looked.
    let default = if left.1.profile_type.is_snapshot() { Per::Profile } else { Per::Second };
    let per = per.unwrap_or(default);
    let mut left = Selected::read(&core.engine, &tenant, left, per, "baseline").await?;
    let mut right = Selected::read(&core.engine, &tenant, right, per, "comparison").await?;
    // Drawn, an empty side would make all of the other look new or gone; who reads JSON sees how many samples there are.
    if format != "json" {
        refuse_empty(&core, &tenant, [("baseline", &left), ("comparison", &right)]).await?;
    }
    let measure = Measure { left: left.units, right: right.units, noun: per.noun() };
    let whole = DiffTree::new(&left.answer.tree, &right.answer.tree).measured_by(measure);
    let mut rows = function_changes(&whole);
    // A table counts functions over all paths; pictures show the largest.
    let max_nodes = if format == "text" { 0 } else { left.query.max_nodes };
    let tree = whole.pruned(max_nodes);
    let folded = tree.folded();
    let exactness = exactness_of_both(&mut left.answer.exactness, &mut right.answer.exactness, &folded);
    let unit = left.query.profile_type.sample_unit.as_str();
    let typed = |content_type: &'static str, body: String| {
        ([(header::CONTENT_TYPE, HeaderValue::from_static(content_type))], body).into_response()
    };
    let answer = match format {
        "json" => {
            rows.truncate(limit);
            as_json(&left, &right, tree, &exactness, &rows).into_response()
        }
        "text" => {
            let table = changes_text(&rows, unit, limit, text.width(), text.colour());
            typed("text/plain; charset=utf-8", format!("{}\n{table}", heading(&left, &right, &measure, text.width())))
        }
        // A picture: other formats are refused above.
        _ => {
            let title = format!("{} -> {}{}", left.text, right.text, per_text(&measure));
            let (unit, folded) = (unit.to_owned(), folded.nodes);
            let options = svg::SvgOptions { title, unit, layout, folded, ..svg::SvgOptions::default() };
            typed("image/svg+xml", svg::diff_svg(&tree, &options))
        }
    };
    Ok(with_exactness(answer, &exactness))
}

/// How many functions to list. A table of none would say nothing; JSON without them has the flame graph.
fn functions_to_list(limit: Option<usize>, format: &str) -> Result<usize, ApiError> {
    match limit {
        Some(0) if format == "text" => Err(ApiError::invalid("limit is 0; it may be 1 or more")),
        limit => Ok(limit.unwrap_or(FUNCTIONS)),
    }
}

/// Tells that a side has no samples, and what there is instead.
async fn refuse_empty(core: &Core, tenant: &TenantId, sides: [(&str, &Selected); 2]) -> Result<(), ApiError> {
    for (name, side) in sides {
        if side.answer.exactness.samples == 0 {
            let told = no_samples(core, tenant, &side.query).await?;
            return Err(ApiError { status: StatusCode::NOT_FOUND, message: format!("{name}: {}", told.trim_end()) });
        }
    }
    Ok(())
}

/// What values are compared for each of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Per {
    Second,
    Profile,
    Request,
    Nothing,
}

impl Per {
    fn parse(text: &str) -> Result<Self, ApiError> {
        match text {
            "second" | "seconds" => Ok(Self::Second),
            "profile" | "profiles" => Ok(Self::Profile),
            "request" | "requests" => Ok(Self::Request),
            "none" => Ok(Self::Nothing),
            other => {
                Err(ApiError::invalid(format!("per {other:?} is not known; use second, profile, request or none")))
            }
        }
    }

    fn noun(self) -> &'static str {
        match self {
            Self::Second => "second",
            Self::Profile => "profile",
            Self::Request => "request",
            Self::Nothing => "",
        }
    }
}

impl Selected {
    async fn read(
        engine: &Engine,
        tenant: &TenantId,
        (text, query): (String, FlameQuery),
        per: Per,
        name: &str,
    ) -> Result<Self, ApiError> {
        // Whole trees: what one side prunes would look new on the other.
        let mut answer = engine.flame(tenant, &FlameQuery { max_nodes: 0, ..query.clone() }).await?;
        let units = match per {
            Per::Second => engine.profile_seconds(tenant, &query).await?.count,
            Per::Profile => engine.profile_count(tenant, &query).await?.count,
            Per::Request => {
                let requests = engine.requests(tenant, &query).await?;
                // A request whose spans were rejected divides nothing.
                answer.exactness.dropped = answer.exactness.dropped.saturating_add(requests.exactness.dropped);
                requests.count
            }
            Per::Nothing => 1.0,
        };
        if answer.exactness.samples > 0 && units <= 0.0 {
            let missing = match per {
                Per::Request => "there are no spans of requests for it; compare per second instead",
                _ => {
                    "its profiles do not say how long they took; compare per profile instead (per=profile, --per profile)"
                }
            };
            return Err(ApiError::invalid(format!("{name}: {missing}")));
        }
        Ok(Self { text, query, answer, units })
    }

    fn total(&self) -> i64 {
        self.answer.tree.total()
    }

    fn per_unit(&self) -> f64 {
        if self.units > 0.0 { self.total() as f64 / self.units } else { self.total() as f64 }
    }

    fn json(&self, noun: &str) -> Value {
        let mut json = json!({
            "query": self.text,
            "total": self.total(),
            "per_unit": self.per_unit(),
            "exactness": exactness_json(&self.answer.exactness),
        });
        if !noun.is_empty() {
            json[format!("{noun}s")] = json!(self.units);
        }
        json
    }
}

/// Both sides in JSON. Where they were measured for different lengths, the bars are worth as much as the longer one.
fn as_json(left: &Selected, right: &Selected, tree: DiffTree, both: &Exactness, rows: &[FunctionChange]) -> FlameJson {
    let profile_type = &left.query.profile_type;
    let measure = *tree.measure();
    let bars = tree.scaled(measure.factors_to_longer());
    FlameJson::double(&bars, [&right.answer.tree, &left.answer.tree], profile_type)
        .telling("exactness", exactness_json(&right.answer.exactness))
        .telling("baseline_exactness", exactness_json(&left.answer.exactness))
        .telling("pruned_nodes", both.pruned_nodes)
        .telling("pruned_value", both.pruned_value)
        .telling("baseline", left.json(measure.noun))
        .telling("comparison", right.json(measure.noun))
        .telling("per", measure.noun)
        .telling("unit", profile_type.sample_unit.as_str())
        .telling("functions", rows.iter().map(change_json).collect::<Vec<_>>())
}

fn change_json(row: &FunctionChange) -> Value {
    let change = |(before, after): (f64, f64)| {
        let relative = FunctionChange::relative((before, after));
        json!({ "before": before, "after": after, "change": after - before, "relative": relative })
    };
    let presence = match row.presence {
        Presence::Both => "both",
        Presence::New => "new",
        Presence::Vanished => "vanished",
    };
    json!({ "name": row.name, "presence": presence, "self": change(row.own), "total": change(row.total) })
}

fn per_text(measure: &Measure) -> String {
    if measure.noun.is_empty() { String::new() } else { format!(", per {}", measure.noun) }
}

/// What is compared, and how it changed in all.
fn heading(left: &Selected, right: &Selected, measure: &Measure, width: Option<usize>) -> String {
    let unit = left.query.profile_type.sample_unit.as_str();
    let mut text = String::new();
    for (name, side) in [("baseline", left), ("comparison", right)] {
        let units = match measure.noun {
            "" => String::new(),
            "second" => format!(" in {} of profiles", duration_text((side.units * 1e9) as i64)),
            noun => format!(" in {}", counted(side.units as u64, noun)),
        };
        let samples = counted(side.answer.exactness.samples, "sample");
        let measured = format!("{}{units}, {samples}", value_text(side.total(), unit));
        let room = width.map_or(usize::MAX, |width| width.saturating_sub(14 + measured.chars().count()).max(12));
        text.push_str(&format!("{name:<10}  {}  {measured}\n", shortened(&side.text, room)));
        if let Some(coverage) = coverage_text(&side.answer.exactness) {
            text.push_str(&wrapped(&coverage, 12, width));
        }
    }
    let (before, after) = (left.per_unit(), right.per_unit());
    let relative = FunctionChange::relative((before, after)).map(|change| format!(" ({:+.1}%)", change * 100.0));
    let label = if measure.noun.is_empty() { "total".to_owned() } else { format!("per {}", measure.noun) };
    let (before, after) = (rate_text(before, unit), rate_text(after, unit));
    text.push_str(&format!("{label:<10}  {before} -> {after}{}\n", relative.unwrap_or_default()));
    text
}
