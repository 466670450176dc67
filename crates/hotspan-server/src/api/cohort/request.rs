//! What is asked about a cohort, and whether it makes sense.

use hotspan_lake::catalog::now_nanos;
use hotspan_model::ProfileType;
use hotspan_query::{CohortScope, LinkPolicy};
use hotspan_traceql::Program;
use hotspan_traceql::ast::Sink;
use serde::Deserialize;
use serde_json::Value;

use crate::api::QuestionError;
use crate::api::profile::TextParameters;
use crate::api::pyroscope::max_nodes;
use crate::time_text::parse_time;

/// The body of a question, as it comes.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CohortBody {
    query: String,
    #[serde(rename = "type", alias = "profile_type")]
    profile_type: Option<String>,
    #[serde(alias = "start")]
    from: Option<Value>,
    #[serde(alias = "until", alias = "end")]
    to: Option<Value>,
    scope: Option<String>,
    baseline: Option<String>,
    baseline_from: Option<Value>,
    baseline_to: Option<Value>,
    format: Option<String>,
    #[serde(alias = "maxNodes")]
    max_nodes: Option<i64>,
    limit: Option<usize>,
    links: Option<String>,
    /// Columns that text is drawn in; without, nothing is cut.
    width: Option<usize>,
}

/// What is to be shown of a cohort.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Its flame graph.
    Flame,
    /// Its heaviest functions.
    Top,
    /// Its flame graph over another cohort's.
    Diff,
    /// Where its time goes.
    Ledger,
    /// What its whole traces cost.
    Traces,
}

impl Wanted {
    fn name(self) -> &'static str {
        match self {
            Self::Flame => "flame",
            Self::Top => "top",
            Self::Diff => "diff",
            Self::Ledger => "ledger",
            Self::Traces => "traces",
        }
    }
}

/// A question that makes sense.
#[derive(Debug)]
pub(crate) struct CohortQuestion {
    pub(crate) wanted: Wanted,
    /// The query as it was written.
    pub(crate) text: String,
    /// Selects the spans.
    pub(crate) program: Program,
    /// Selects those that they are compared with.
    pub(crate) baseline: Option<Program>,
    pub(crate) profile_type: ProfileType,
    /// Spans start in this time.
    pub(crate) range: (i64, i64),
    /// Those that they are compared with start in this time.
    pub(crate) baseline_range: (i64, i64),
    pub(crate) scope: CohortScope,
    pub(crate) links: LinkPolicy,
    pub(crate) format: Option<String>,
    /// Nodes of a flame graph.
    pub(crate) max_nodes: usize,
    /// Functions of a table.
    pub(crate) limit: usize,
    pub(crate) drawing: TextParameters,
}

const HOUR: i64 = 3600 * 1_000_000_000;
/// Functions of a table where nothing is said.
const FUNCTIONS: usize = 50;

impl CohortQuestion {
    /// Reads a body. Without `wanted`, the query must end in a stage that says what is wanted.
    pub(crate) fn read(body: CohortBody, wanted: Option<Wanted>) -> Result<Self, QuestionError> {
        let program = compile("query", &body.query)?;
        let sink = program.sink().cloned();
        let asked = sink.as_ref().map(Wanted::of);
        let wanted = match (wanted, asked) {
            (Some(wanted), Some(asked)) if wanted != asked => {
                let (asked, wanted) = (asked.name(), wanted.name());
                return Err(QuestionError::invalid(format!(
                    "query: it ends in {asked}(…), but this is /api/v1/cohort/{wanted}; ask /api/v1/cohort/{asked}"
                )));
            }
            (Some(wanted), _) | (None, Some(wanted)) => wanted,
            (None, None) => {
                return Err(QuestionError::invalid(
                    "query: it does not say what to show; end it in flame(cpu), top(10, cpu), diff({ … }, cpu) or ledger()",
                ));
            }
        };
        let (sink_type, sink_limit) = match &sink {
            Some(Sink::Flame { profile_type } | Sink::Diff { profile_type, .. }) => (Some(profile_type.as_str()), None),
            Some(Sink::Top { count, profile_type }) => (Some(profile_type.as_str()), Some(*count as usize)),
            _ => (None, None),
        };
        let profile_type = match body.profile_type.as_deref().or(sink_type) {
            Some(text) => {
                text.parse::<ProfileType>().map_err(|error| QuestionError::invalid(format!("type: {error}")))?
            }
            None => ProfileType::cpu(),
        };
        let baseline = match (&body.baseline, program.baseline()) {
            (Some(text), _) => Some(compile("baseline", text)?),
            (None, Some(baseline)) => {
                Some(baseline.map_err(|error| QuestionError::traceql("query", &error, &body.query))?)
            }
            (None, None) => None,
        };
        if wanted == Wanted::Diff && baseline.is_none() {
            return Err(QuestionError::invalid(
                "baseline: say what to compare with, such as \"{ duration < 100ms }\", or end the query in diff({ … }, cpu)",
            ));
        }
        let now = now_nanos();
        let until = time("to", body.to.as_ref(), now)?.unwrap_or(now);
        let from = time("from", body.from.as_ref(), now)?.unwrap_or(until.saturating_sub(HOUR));
        if from >= until {
            return Err(QuestionError::invalid("from must be before to"));
        }
        let baseline_range = (
            time("baseline_from", body.baseline_from.as_ref(), now)?.unwrap_or(from),
            time("baseline_to", body.baseline_to.as_ref(), now)?.unwrap_or(until),
        );
        if baseline_range.0 >= baseline_range.1 {
            return Err(QuestionError::invalid("baseline_from must be before baseline_to"));
        }
        Ok(Self {
            wanted,
            text: body.query,
            baseline,
            profile_type,
            range: (from, until),
            baseline_range,
            scope: body.scope.as_deref().unwrap_or("span").parse()?,
            links: body.links.as_deref().map_or(Ok(LinkPolicy::default()), str::parse)?,
            format: body.format,
            max_nodes: max_nodes(body.max_nodes)?,
            limit: sink_limit.or(body.limit).unwrap_or(FUNCTIONS),
            drawing: TextParameters::within(body.width),
            program,
        })
    }
}

impl CohortQuestion {
    /// Whether spans and code are wanted in one tree.
    pub(super) fn is_merged(&self) -> bool {
        matches!(self.format.as_deref(), Some("merged" | "merged_text"))
    }
}

fn compile(field: &str, text: &str) -> Result<Program, QuestionError> {
    let program = Program::new(text).map_err(|error| QuestionError::traceql(field, &error, text))?;
    if program.is_metrics() {
        return Err(QuestionError::invalid(format!(
            "{field}: a cohort is selected by a search, not by a metrics query"
        )));
    }
    Ok(program)
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
