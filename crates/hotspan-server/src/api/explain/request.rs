//! What is asked of `/api/v1/explain`, and whether it makes sense.

use hotspan_analysis::Measure;
use hotspan_analysis::gather::{BeforeAfter, ExplainQuery, measure_of};
use hotspan_lake::catalog::now_nanos;
use hotspan_model::ProfileType;
use hotspan_query::LinkPolicy;
use hotspan_traceql::Program;
use serde::Deserialize;
use serde_json::Value;

use crate::api::QuestionError;
use crate::time_text::parse_time;

/// The body of a question, as it comes.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExplainBody {
    target: String,
    baseline: Option<String>,
    #[serde(alias = "start")]
    from: Option<Value>,
    #[serde(alias = "until", alias = "end")]
    to: Option<Value>,
    #[serde(rename = "type", alias = "profile_type")]
    profile_type: Option<String>,
    before: Option<String>,
    after: Option<String>,
    format: Option<String>,
    #[serde(default)]
    own_code: Vec<String>,
    links: Option<String>,
}

/// How the answer is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Json,
    Text,
    Markdown,
}

/// A question that makes sense.
#[derive(Debug)]
pub(super) struct ExplainQuestion {
    pub(super) query: ExplainQuery,
    /// Two times to compare, for a change.
    pub(super) times: Option<BeforeAfter>,
    pub(super) format: Format,
    pub(super) profile_type: Option<String>,
}

const HOUR: i64 = 3600 * 1_000_000_000;

impl ExplainQuestion {
    pub(super) fn read(body: ExplainBody) -> Result<Self, QuestionError> {
        let now = now_nanos();
        if body.target.trim_start().starts_with(['{', '(']) {
            compile("target", &body.target)?;
        }
        let baseline = body.baseline.filter(|text| !text.trim().is_empty());
        if let Some(text) = &baseline {
            compile("baseline", text)?;
        }
        let until = time("to", body.to.as_ref(), now)?;
        let from = time("from", body.from.as_ref(), now)?;
        let default_until = until.unwrap_or(now);
        let default_range = (from.unwrap_or(default_until.saturating_sub(HOUR)), default_until);
        if default_range.0 >= default_range.1 {
            return Err(QuestionError::invalid("from must be before to"));
        }
        let times = match (&body.before, &body.after) {
            (None, None) => None,
            (Some(before), Some(after)) => {
                let (before, after) = (range("before", before, now)?, range("after", after, now)?);
                Some(BeforeAfter { before, after })
            }
            _ => return Err(QuestionError::invalid("before and after belong together: give both, as T1..T2")),
        };
        if times.is_some() && baseline.is_some() {
            return Err(QuestionError::invalid("baseline: after is compared with before; leave the baseline out"));
        }
        let measures = match body.profile_type.as_deref() {
            None | Some("") => Vec::new(),
            Some(text) => vec![measure(text)?],
        };
        Ok(Self {
            query: ExplainQuery {
                target: body.target,
                baseline,
                range: (from.is_some() || until.is_some()).then_some(default_range),
                default_range,
                measures,
                own_code: body.own_code,
                links: body.links.as_deref().map_or(Ok(LinkPolicy::default()), str::parse)?,
            },
            times,
            format: match body.format.as_deref() {
                None | Some("json") => Format::Json,
                Some("text") => Format::Text,
                Some("markdown" | "md") => Format::Markdown,
                Some(other) => {
                    let message = format!("format {other:?} is not known; use json, text or markdown");
                    return Err(QuestionError::invalid(message));
                }
            },
            profile_type: body.profile_type.filter(|text| !text.is_empty()),
        })
    }
}

/// A profile type whose values are time.
fn measure(text: &str) -> Result<Measure, QuestionError> {
    if text == "lock" {
        return Ok(Measure::Lock);
    }
    let profile_type: ProfileType = text.parse().map_err(|error| QuestionError::invalid(format!("type: {error}")))?;
    measure_of(&profile_type).ok_or_else(|| {
        QuestionError::invalid(format!("type: {text:?} does not measure time; use cpu, wall, off_cpu, lock or block"))
    })
}

fn compile(field: &str, text: &str) -> Result<(), QuestionError> {
    Program::new(text).map(|_| ()).map_err(|error| QuestionError::traceql(field, &error, text))
}

/// A time given as text or number.
fn time(name: &str, value: Option<&Value>, now: i64) -> Result<Option<i64>, QuestionError> {
    let text = match value {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    parse_time(&text, now).map(Some).map_err(|error| QuestionError::invalid(format!("{name}: {error}")))
}

/// `T1..T2`.
fn range(name: &str, text: &str, now: i64) -> Result<(i64, i64), QuestionError> {
    let wrong = |reason: String| QuestionError::invalid(format!("{name}: {reason}"));
    let (from, until) = text
        .split_once("..")
        .ok_or_else(|| wrong(format!("{text:?} is not two times; write T1..T2, such as now-2h..now-1h")))?;
    let [from, until] = [from, until].map(|part| parse_time(part, now).map_err(|error| wrong(error.to_string())));
    let (from, until) = (from?, until?);
    if from >= until {
        return Err(wrong(format!("{text:?} ends before it begins")));
    }
    Ok((from, until))
}
