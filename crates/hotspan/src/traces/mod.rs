//! `hotspan traces QUERY` and `hotspan trace ID`: what a person asks a running server at a terminal.

mod found_table;
mod meant;
mod span_tree;
mod waterfall;

use anyhow::{Context as _, bail};
use clap::Args;

pub(crate) use meant::probably_meant;

use crate::client::{Client, ServerArguments};
use crate::screen::{Screen, say};

/// Which traces to list.
#[derive(Debug, Args)]
pub(crate) struct TracesArguments {
    /// TraceQL, such as '{ resource.service.name = "checkout" && duration > 500ms }'
    #[arg(default_value = "{ }")]
    query: String,
    /// Look at the time up to now, such as 15m, 1h or 2d [default: everything that is stored]
    #[arg(long, alias = "since", value_name = "LENGTH", conflicts_with_all = ["from", "until"])]
    last: Option<String>,
    /// Start, such as 2026-01-31T10:00:00Z, 1700000000 or now-2h
    #[arg(long, value_name = "TIME", requires = "until")]
    from: Option<String>,
    /// End, likewise
    #[arg(long, value_name = "TIME", requires = "from")]
    until: Option<String>,
    /// Most traces to list
    #[arg(long, short = 'n', default_value_t = 20)]
    limit: usize,
    /// What comes first: the most recent, or the longest
    #[arg(long, value_parser = ["recent", "duration"], default_value = "recent")]
    order: String,
    /// Print the server's answer as it is
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerArguments,
}

/// Which trace to draw.
#[derive(Debug, Args)]
pub(crate) struct TraceArguments {
    /// Its id, as `hotspan traces` lists it
    id: String,
    /// Columns to draw in [default: those of the terminal]
    #[arg(long, value_name = "COLUMNS")]
    width: Option<usize>,
    /// Most spans to draw; 0 draws all
    #[arg(long, short = 'n', default_value_t = 500)]
    limit: usize,
    /// Print the server's answer as it is
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerArguments,
}

/// Lists the traces that match.
pub(crate) fn run_search(arguments: &TracesArguments) -> anyhow::Result<()> {
    let limit = arguments.limit.to_string();
    let mut question = vec![
        ("q", arguments.query.as_str()),
        ("limit", limit.as_str()),
        ("order", arguments.order.as_str()),
        ("spss", "100"),
    ];
    let times = [("since", &arguments.last), ("start", &arguments.from), ("end", &arguments.until)];
    question.extend(times.iter().filter_map(|(name, time)| Some((*name, time.as_deref()?))));
    let client = Client::new(&arguments.server);
    let answer = client.get("/api/search", &question)?;
    if arguments.json {
        say(answer.text().trim_end());
        return Ok(());
    }
    let found = answer.json()?;
    say(found_table::render(&found, arguments.limit, Screen::of(None).width()).trim_end());
    if found["traces"].as_array().is_none_or(Vec::is_empty) {
        probably_meant(&client, &arguments.query).iter().for_each(|line| say(line));
    }
    Ok(())
}

/// Draws one trace.
pub(crate) fn run_trace(arguments: &TraceArguments) -> anyhow::Result<()> {
    let client = Client::new(&arguments.server);
    let answer = client.get(&format!("/api/v2/traces/{}", arguments.id), &[])?;
    if arguments.json {
        say(answer.text().trim_end());
        return Ok(());
    }
    let tree = span_tree::SpanTree::read(&answer.json()?).context("the server's answer is not a trace")?;
    if tree.spans.is_empty() {
        bail!("there is no trace {} at {}", arguments.id, client.base());
    }
    // A trace is worth drawing without its profiles too.
    let profile = client.get(&format!("/api/v1/trace/{}/profile-summary", arguments.id), &[]);
    let profile = profile.and_then(|answer| answer.json()).unwrap_or_default();
    let width = arguments.width.or_else(|| Screen::of(None).width());
    say(waterfall::render(&tree, &profile["spans"], width, arguments.limit).trim_end());
    Ok(())
}
