//! `hotspan explain`: why is it slow? Answered by a running server.

use clap::Args;
use serde_json::{Map, Value, json};

use crate::client::{Client, ServerArguments};
use crate::screen::say;
use crate::time_arguments::RangeArguments;

/// Ask a server why a trace, a span or a cohort is slow, or whether a change helped
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ExplainArguments {
    /// A trace id, TRACE:SPAN, a span id, or a TraceQL search
    #[arg(value_name = "TARGET")]
    target: String,
    /// What to compare with: a TraceQL search; without it, the same operation's spans around its median
    #[arg(long, value_name = "TRACEQL")]
    baseline: Option<String>,
    #[command(flatten)]
    time: RangeArguments,
    /// Only profiles of this type: cpu, wall, off_cpu, lock or block
    #[arg(long = "type", value_name = "TYPE")]
    profile_type: Option<String>,
    /// Time before a change, as T1..T2: answers whether the change helped
    #[arg(long, value_name = "T1..T2", requires = "after", conflicts_with = "baseline")]
    before: Option<String>,
    /// Time after the change
    #[arg(long, value_name = "T3..T4", requires = "before")]
    after: Option<String>,
    /// Functions that start like this are own code, whatever their files say; may be given several times
    #[arg(long, value_name = "PREFIX")]
    own_code: Vec<String>,
    /// Which samples count: those that name the span, or also its local root at its time, or also its thread at its time
    #[arg(long, value_parser = ["exact", "inherited", "inferred"])]
    links: Option<String>,
    /// How to tell it
    #[arg(long, value_parser = ["text", "json", "markdown"], default_value = "text")]
    format: String,
    #[command(flatten)]
    server: ServerArguments,
}

const EXAMPLES: &str = "Examples:
  hotspan explain 4bf92f3577b34da6a3ce929d0e0e4736
  hotspan explain '{ name = \"POST /api/checkout\" && duration > 1s }'
  hotspan explain '{ span.customer = \"acme\" }' --baseline '{ span.customer != \"acme\" }' --format markdown
  hotspan explain --before now-2h..now-1h --after now-1h..now '{ name = \"POST /api/checkout\" }'";

/// Runs the command.
pub(crate) fn run(arguments: &ExplainArguments) -> anyhow::Result<()> {
    let mut body = Map::new();
    body.insert("target".to_owned(), json!(arguments.target));
    body.insert("format".to_owned(), json!(arguments.format));
    let optional = [
        ("baseline", &arguments.baseline),
        ("type", &arguments.profile_type),
        ("before", &arguments.before),
        ("after", &arguments.after),
        ("links", &arguments.links),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            body.insert(name.to_owned(), json!(value));
        }
    }
    body.extend(arguments.time.parameters().into_iter().map(|(name, time)| (name.to_owned(), json!(time))));
    if !arguments.own_code.is_empty() {
        body.insert("own_code".to_owned(), json!(arguments.own_code));
    }
    let answer = Client::new(&arguments.server).post_json("/api/v1/explain", &Value::Object(body))?;
    let text = if arguments.format == "json" { format!("{:#}", answer.json()?) } else { answer.text() };
    say(text.trim_end());
    Ok(())
}
