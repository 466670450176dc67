//! `hotspan query`: TraceQL from a terminal, answered by a running server.

use clap::Args;
use hotspan_formats::{count_text, duration_text};
use hotspan_traceql::Program;
use hotspan_traceql::ast::Sink;
use serde_json::{Value, json};

use crate::client::{Client, ServerArguments};
use crate::screen::{Screen, say};
use crate::table::{Column, Table};
use crate::time_arguments::RangeArguments;
use crate::traces::probably_meant;

/// Ask a server with TraceQL: traces as a table, series, or the code of the spans
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct QueryArguments {
    /// The query
    #[arg(value_name = "TRACEQL")]
    query: String,
    #[command(flatten)]
    time: RangeArguments,
    /// Whose samples count: the spans' own, those of everything they called, of their traces, or of their processes
    #[arg(long, value_parser = ["span", "subtree", "trace", "process"], default_value = "span")]
    scope: String,
    /// Which samples count: those that name the span, or also its local root at its time, or also its thread at its time
    #[arg(long, value_parser = ["exact", "inherited", "inferred"], default_value = "inherited")]
    links: String,
    /// For flame: spans above, their code and waits below, in one tree that is as wide as a request takes on average
    #[arg(long)]
    merged: bool,
    /// How many traces to list
    #[arg(long, value_name = "N", default_value = "20")]
    limit: u32,
    /// Print the server's JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerArguments,
}

const EXAMPLES: &str = "Examples:
  hotspan query '{ resource.service.name = \"order\" && duration > 500ms }'
  hotspan query '{ name = \"POST /checkout\" && duration > 1s } | flame(cpu)' --scope subtree
  hotspan query '{ name = \"POST /checkout\" && duration > 1s } | flame(cpu)' --merged
  hotspan query '{ name = \"POST /checkout\" } | top(10, wall)'
  hotspan query '{ duration > 1s } | diff({ duration < 100ms }, cpu)'
  hotspan query '{ name = \"POST /checkout\" && duration > 1s } | ledger()'
  hotspan query '{ status = error } | rate() by(resource.service.name)'";

/// Runs the command.
pub(crate) fn run(arguments: &QueryArguments) -> anyhow::Result<()> {
    let program =
        Program::new(&arguments.query).map_err(|error| anyhow::anyhow!("{}", error.render(&arguments.query)))?;
    if arguments.merged && !matches!(program.sink(), Some(Sink::Flame { .. })) {
        anyhow::bail!("--merged draws a flame graph: let the query end in | flame(cpu)");
    }
    let client = Client::new(&arguments.server);
    let text = if program.sink().is_some() {
        cohort(&client, arguments)?
    } else if program.is_metrics() {
        series(&client, arguments)?
    } else {
        traces(&client, arguments)?
    };
    say(text.trim_end());
    Ok(())
}

/// The answer of a query that ends in `flame(…)`, `top(…)` or `diff(…)`: the server draws.
fn cohort(client: &Client, arguments: &QueryArguments) -> anyhow::Result<String> {
    let format = match (arguments.merged, arguments.json) {
        (true, true) => "merged",
        (true, false) => "merged_text",
        (false, true) => "json",
        (false, false) => "text",
    };
    let (from, to) = arguments.time.range();
    let mut body = json!({
        "query": arguments.query,
        "from": from,
        "to": to,
        "scope": arguments.scope,
        "links": arguments.links,
        "format": format,
    });
    if let Some(width) = Screen::of(None).width() {
        body["width"] = json!(width);
    }
    let answer = client.post_json("/api/v1/cohort", &body)?;
    if arguments.json { Ok(format!("{:#}", answer.json()?)) } else { Ok(answer.text()) }
}

fn traces(client: &Client, arguments: &QueryArguments) -> anyhow::Result<String> {
    let limit = arguments.limit.to_string();
    let (from, to) = arguments.time.range();
    let (start, end) = (seconds(&from, false)?, seconds(&to, true)?);
    let query = [("q", arguments.query.as_str()), ("start", &start), ("end", &end), ("limit", &limit), ("spss", "3")];
    let answer = client.get("/api/search", &query)?.json()?;
    if arguments.json {
        return Ok(format!("{answer:#}"));
    }
    let mut table = Table::new(&[
        ("trace", Column::Id),
        ("start", Column::Id),
        ("duration", Column::Number),
        ("service", Column::Text),
        ("root", Column::Text),
        ("spans", Column::Number),
        ("slowest match", Column::Text),
    ]);
    for trace in list(&answer["traces"]) {
        let start: i64 = number_in(&trace["startTimeUnixNano"]);
        let sets = list(&trace["spanSets"]);
        let matched: u64 = sets.iter().filter_map(|set| set["matched"].as_u64()).sum();
        let spans = sets.iter().flat_map(|set| list(&set["spans"]));
        let slowest = spans.max_by_key(|span| number_in(&span["durationNanos"]));
        let slowest = slowest.map_or_else(String::new, |span| {
            let name = span["name"].as_str().unwrap_or_default();
            let mut shown = format!("{name} {}", duration_text(number_in(&span["durationNanos"])));
            for attribute in list(&span["attributes"]) {
                shown.push_str("  ");
                shown.push_str(&attribute_text(attribute));
            }
            shown
        });
        table.row([
            text(&trace["traceID"]),
            hotspan_server::time_as_text(start),
            duration_text(trace["durationMs"].as_i64().unwrap_or(0).saturating_mul(1_000_000)),
            text(&trace["rootServiceName"]),
            text(&trace["rootTraceName"]),
            count_text(matched),
            slowest,
        ]);
    }
    if table.is_empty() {
        let nothing = format!("no trace matches between {from} and {to}");
        let told = std::iter::once(nothing).chain(probably_meant(client, &arguments.query));
        return Ok(told.collect::<Vec<_>>().join("\n"));
    }
    Ok(table.draw(Screen::of(None).width()))
}

fn series(client: &Client, arguments: &QueryArguments) -> anyhow::Result<String> {
    let (from, to) = arguments.time.range();
    let (start, end) = (seconds(&from, false)?, seconds(&to, true)?);
    let query = [("q", arguments.query.as_str()), ("start", &start), ("end", &end)];
    let answer = client.get("/api/metrics/query", &query)?.json()?;
    if arguments.json {
        return Ok(format!("{answer:#}"));
    }
    let mut table = Table::new(&[("series", Column::Text), ("value", Column::Number)]);
    for series in list(&answer["series"]) {
        let labels = list(&series["labels"]);
        let name = labels.iter().map(attribute_text).collect::<Vec<_>>().join(" ");
        let value = series["value"].as_f64().map_or_else(String::new, |value| format!("{value}"));
        table.row([if name.is_empty() { "all".to_owned() } else { name }, value]);
    }
    if table.is_empty() {
        return Ok(format!("no span matches between {from} and {to}"));
    }
    Ok(table.draw(Screen::of(None).width()))
}

/// `key=value`, for an attribute as OTLP writes it. Of many values, which come as a JSON list, the first.
fn attribute_text(attribute: &Value) -> String {
    let key = attribute["key"].as_str().unwrap_or_default();
    let value = &attribute["value"];
    let text = value_text(value);
    let several = text.starts_with('[').then(|| serde_json::from_str::<Vec<Value>>(&text).ok()).flatten();
    match several.as_deref() {
        Some([first, rest @ ..]) if !rest.is_empty() => {
            format!("{key}={} and {} more", first.as_str().map_or(first.to_string(), str::to_owned), rest.len())
        }
        _ => format!("{key}={text}"),
    }
}

/// The one value that OTLP's `{"stringValue": …}` holds.
fn value_text(value: &Value) -> String {
    let inner = value.as_object().and_then(|value| value.values().next());
    inner.map_or_else(String::new, |inner| inner.as_str().map_or(inner.to_string(), str::to_owned))
}

/// Seconds since 1970, as Tempo's API takes them, rounded away from the range's middle.
fn seconds(text: &str, up: bool) -> anyhow::Result<String> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    let nanos = hotspan_server::parse_time(text, i64::try_from(now.as_nanos())?)?;
    let second = nanos.div_euclid(1_000_000_000);
    Ok((if up { second + 1 } else { second }).to_string())
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// A number that may be written as text, as 64-bit numbers are.
fn number_in(value: &Value) -> i64 {
    value.as_i64().or_else(|| value.as_str()?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::attribute_text;

    /// Scenario: attributes of a found span: a text, a number, a list as the server writes it, a text like one.
    /// Guarantee: each is one short text; of a list the first and how many more there are.
    #[test]
    fn attributes_are_short() {
        let shown = |value| attribute_text(&json!({"key": "k", "value": value}));
        assert_eq!(shown(json!({"stringValue": "a b"})), "k=a b");
        assert_eq!(shown(json!({"intValue": "7"})), "k=7");
        assert_eq!(shown(json!({"stringValue": r#"["main.tax","json.Unmarshal","x"]"#})), "k=main.tax and 2 more");
        assert_eq!(shown(json!({"stringValue": "[not a list"})), "k=[not a list");
    }
}
