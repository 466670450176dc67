//! `hotspan flame` and `hotspan top`: where the time, memory or waiting of a service goes, in a terminal or a file.

use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::{Args, ValueEnum};

use crate::client::{Answer, Client, ServerArguments};
use crate::saved_page::saved_page;
use crate::screen::{Screen, ending_of, unknown_ending, write_answer};
use crate::time_arguments::TimeArguments;

#[derive(Debug, Args)]
#[command(after_help = "Queries name a service and a profile type, or a type alone, and labels:
  order-service.cpu
  'order-service.wall{region=\"eu\", version=~\"1\\..*\"}'
  'order-service.cpu{span_id=\"00f067aa0ba902b7\"}'
  'process_cpu:cpu:nanoseconds:cpu:nanoseconds{service_name=\"order-service\"}'

Types: cpu, wall, off_cpu, alloc_objects, alloc_space, inuse_objects, inuse_space, live, goroutine,
  mutex, block, lock, exceptions, threadcreate, and any other that a profiler declares, such as
  malloc_bytes or alloc_in_new_tlab_bytes")]
pub(crate) struct FlameArguments {
    /// What to draw
    #[arg(value_name = "QUERY")]
    query: String,
    #[command(flatten)]
    time: TimeArguments,
    /// The form of the answer; the default is text
    #[arg(long, value_name = "FORMAT")]
    format: Option<FlameFormat>,
    /// Write to this file instead of standard output; its ending names the form if --format does not
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Leave out functions below this share of the whole, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 0.5)]
    min_percent: f64,
    /// Call paths to show at most; the smallest beyond are folded, and said to be. Files for other tools (pprof,
    /// collapsed, speedscope) are always whole [default: 8192]
    #[arg(long, value_name = "NODES")]
    max_nodes: Option<u32>,
    /// Lines to draw at most
    #[arg(long, value_name = "LINES", default_value_t = 200)]
    lines: usize,
    #[command(flatten)]
    server: ServerArguments,
}

/// Forms of a flame graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FlameFormat {
    /// Indented functions with bars and percentages
    Text,
    /// A picture that can be clicked and searched
    Svg,
    /// A page for a browser
    Html,
    /// For `go tool pprof` and other tools
    Pprof,
    /// Stacks joined by semicolons with their values
    Collapsed,
    /// For speedscope
    Speedscope,
    /// Flamebearer JSON
    Json,
    /// A call graph for Graphviz
    Dot,
}

impl FlameFormat {
    /// The form that a file's ending stands for; text if it has none.
    fn of_file(path: &Path) -> anyhow::Result<Self> {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_ascii_lowercase();
        let ends = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
        Ok(match () {
            () if ends(&[".svg"]) => Self::Svg,
            () if ends(&[".html", ".htm"]) => Self::Html,
            () if ends(&[".pb.gz", ".pprof", ".prof", ".pb"]) => Self::Pprof,
            () if ends(&[".speedscope.json", ".speedscope"]) => Self::Speedscope,
            () if ends(&[".json"]) => Self::Json,
            () if ends(&[".dot", ".gv"]) => Self::Dot,
            () if ends(&[".collapsed", ".folded"]) => Self::Collapsed,
            () if ends(&[".txt"]) || ending_of(path).is_none() => Self::Text,
            () => {
                let endings = ".txt, .svg, .html, .pb.gz, .pprof, .prof, .pb, .collapsed, .folded, .speedscope.json, .json \
                               or .dot";
                return Err(unknown_ending(path, endings));
            }
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Svg => "svg",
            Self::Html => "html",
            Self::Pprof => "pprof",
            Self::Collapsed => "collapsed",
            Self::Speedscope => "speedscope",
            Self::Json => "json",
            Self::Dot => "dot",
        }
    }
}

/// Where flame graphs are asked for.
const QUERY_PATH: &str = "/api/v1/query";

/// Draws a flame graph.
pub(crate) fn run(arguments: &FlameArguments) -> anyhow::Result<()> {
    let format = match (arguments.format, arguments.output.as_deref()) {
        (Some(format), _) => format,
        (None, Some(output)) => FlameFormat::of_file(output)?,
        (None, None) => FlameFormat::Text,
    };
    let screen = Screen::of(arguments.output.as_deref());
    let mut question = arguments.time.parameters();
    question.extend([
        ("query", arguments.query.clone()),
        ("min_percent", arguments.min_percent.to_string()),
        ("lines", arguments.lines.to_string()),
    ]);
    question.extend(arguments.max_nodes.map(|nodes| ("max_nodes", nodes.to_string())));
    question.extend(screen.parameters());
    let client = Client::new(&arguments.server);
    let mut answer = ask(&client, &question, format.name())?;
    if format == FlameFormat::Html {
        answer.body = saved_page(&answer.text(), client.base(), QUERY_PATH, client.tenant()).into_bytes();
    }
    write_answer(&answer.body, arguments.output.as_deref(), format == FlameFormat::Pprof)
}

/// The answer in a form. If no sample is behind it, that is an error, which says what there is instead.
fn ask(client: &Client, question: &[(&str, String)], format: &str) -> anyhow::Result<Answer> {
    let answer_as = |format: &str| client.ask(QUERY_PATH, &[question, &[("format", format.to_owned())]].concat());
    let answer = answer_as(format)?;
    if answer.samples != Some(0) {
        return Ok(answer);
    }
    let told = if format == "text" { answer } else { answer_as("text")? };
    bail!("{}", told.text().trim_end())
}

#[derive(Debug, Args)]
pub(crate) struct TopArguments {
    /// What to look at; see `hotspan flame --help`
    #[arg(value_name = "QUERY")]
    query: String,
    /// How many functions to list
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    #[command(flatten)]
    time: TimeArguments,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerArguments,
}

/// Lists the functions with the largest self values.
pub(crate) fn run_top(arguments: &TopArguments) -> anyhow::Result<()> {
    let mut question = arguments.time.parameters();
    question.push(("query", format!("topk({}, {})", arguments.limit, arguments.query)));
    question.extend(Screen::of(None).parameters());
    let answer = ask(&Client::new(&arguments.server), &question, if arguments.json { "json" } else { "text" })?;
    write_answer(&answer.body, None, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: files with the endings that people give them, and with none. Guarantee: each names its form, none is text;
    /// others are refused with the endings that there are.
    #[test]
    fn endings_name_forms() {
        let of = |name: &str| FlameFormat::of_file(Path::new(name)).ok();
        assert_eq!((of("a/cpu.pb.gz"), of("x.SVG")), (Some(FlameFormat::Pprof), Some(FlameFormat::Svg)));
        assert_eq!((of("x.speedscope.json"), of("x.json")), (Some(FlameFormat::Speedscope), Some(FlameFormat::Json)));
        assert_eq!(of("calls.dot"), Some(FlameFormat::Dot));
        assert_eq!((of("x.txt"), of("/dev/stdout")), (Some(FlameFormat::Text), Some(FlameFormat::Text)));
        let refused = FlameFormat::of_file(Path::new("x.weird")).unwrap_err().to_string();
        assert!(refused.contains("x.weird") && refused.contains(".pb.gz") && refused.contains("--format"), "{refused}");
        for format in FlameFormat::value_variants() {
            assert_eq!(format.to_possible_value().unwrap().get_name(), format.name());
        }
    }
}
