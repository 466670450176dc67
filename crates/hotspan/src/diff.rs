//! `hotspan diff`: what changed between two versions, regions or times, function by function.

use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::{Args, ValueEnum};
use serde_json::Value;

use crate::client::{Client, ServerArguments};
use crate::screen::{Screen, ending_of, unknown_ending, write_answer};
use crate::time_arguments::TimeArguments;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hotspan diff --baseline 'my-service{commit=abc123}' --comparison 'my-service{commit=def456}' \\
      --time-range 1h
  hotspan diff --baseline my-service.alloc_space --comparison my-service.alloc_space \\
      --baseline-from now-2h --baseline-until now-1h --last 1h
  hotspan diff --baseline 'a{v=1}' --comparison 'a{v=2}' --per request -o change.svg \\
      --layout comparison")]
pub(crate) struct DiffArguments {
    /// What to compare with, as a query; see `hotspan flame --help`
    #[arg(long, value_name = "QUERY")]
    baseline: String,
    /// What is compared
    #[arg(long, value_name = "QUERY")]
    comparison: String,
    #[command(flatten)]
    time: TimeArguments,
    /// Start of the baseline, where it is another time
    #[arg(long, value_name = "TIME")]
    baseline_from: Option<String>,
    /// End of the baseline
    #[arg(long, value_name = "TIME")]
    baseline_until: Option<String>,
    /// What values are divided by, so that both sides compare; the default is second, or profile for what is in use at a moment
    #[arg(long, value_name = "UNIT")]
    per: Option<Per>,
    /// The form of the answer; the default is text
    #[arg(long, value_name = "FORMAT")]
    format: Option<DiffFormat>,
    /// Whose values decide how wide the bars of a picture are
    #[arg(long, value_name = "SIDE", default_value = "both")]
    layout: Layout,
    /// Write to this file instead of standard output; its ending names the form if --format does not
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// How many functions to list
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    #[command(flatten)]
    server: ServerArguments,
}

/// What values are divided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Per {
    /// Seconds that the profiles cover
    Second,
    /// Profiles, where each says what there was at one moment
    Profile,
    /// Requests that the service answered, from its spans
    Request,
    /// Nothing
    None,
}

/// Forms of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DiffFormat {
    /// A table
    Text,
    /// A differential flame graph
    Svg,
    /// Functions and flame graph
    Json,
}

impl DiffFormat {
    /// The form that a file's ending stands for; text if it has none.
    fn of_file(path: &Path) -> anyhow::Result<Self> {
        match ending_of(path).as_deref() {
            Some("svg") => Ok(Self::Svg),
            Some("json") => Ok(Self::Json),
            Some("txt") | None => Ok(Self::Text),
            Some(_) => Err(unknown_ending(path, ".txt, .svg or .json")),
        }
    }
}

/// Whose values decide how wide bars are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Layout {
    /// The baseline: shows what vanished
    Baseline,
    /// The comparison: shows what is new
    Comparison,
    /// Both: shows everything
    Both,
}

/// The name that clap and the server know a value by.
fn name_of(value: &impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// Compares two selections.
pub(crate) fn run(arguments: &DiffArguments) -> anyhow::Result<()> {
    let format = match (arguments.format, arguments.output.as_deref()) {
        (Some(format), _) => format,
        (None, Some(output)) => DiffFormat::of_file(output)?,
        (None, None) => DiffFormat::Text,
    };
    let screen = Screen::of(arguments.output.as_deref());
    let mut question = arguments.time.parameters();
    question.extend([
        ("baseline", arguments.baseline.clone()),
        ("comparison", arguments.comparison.clone()),
        ("layout", name_of(&arguments.layout)),
        ("limit", arguments.limit.to_string()),
    ]);
    question.extend(arguments.per.as_ref().map(|per| ("per", name_of(per))));
    let times = [("baseline_from", &arguments.baseline_from), ("baseline_until", &arguments.baseline_until)];
    question.extend(times.into_iter().filter_map(|(name, time)| Some((name, time.clone()?))));
    question.extend(screen.parameters());
    let client = Client::new(&arguments.server);
    let answer_as =
        |format: DiffFormat| client.ask("/api/v1/diff", &[&question[..], &[("format", name_of(&format))]].concat());
    let answer = answer_as(format)?;
    if format == DiffFormat::Json
        && let Some(empty) = empty_side(&answer.json()?)
    {
        // Of the other forms, a server refuses a side without samples, and says what there is instead.
        answer_as(DiffFormat::Text)?;
        bail!("{empty}");
    }
    write_answer(&answer.body, arguments.output.as_deref(), false)
}

/// What is wrong with JSON of which a side has no samples.
fn empty_side(answer: &Value) -> Option<String> {
    let is_empty = |side: &&str| answer[side]["exactness"]["samples"] == 0;
    let side = ["baseline", "comparison"].into_iter().find(is_empty)?;
    Some(format!("{side}: no samples match {}", answer[side]["query"]))
}
