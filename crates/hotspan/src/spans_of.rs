//! `hotspan spans-of FUNCTION`: which operations and traces spend how much in a function.

use clap::Args;
use hotspan_formats::{count_text, counted, duration_text, rate_text, value_text};
use serde_json::Value;

use crate::client::{Client, ServerArguments};
use crate::screen::{Screen, say};
use crate::table::{Column, Table};
use crate::time_arguments::RangeArguments;

/// Show which operations, services and traces spend how much in a function
#[derive(Debug, Args)]
pub(crate) struct SpansOfArguments {
    /// The function's name as flame graphs show it, whole or its last part
    #[arg(value_name = "FUNCTION")]
    function: String,
    /// Read FUNCTION as a regular expression for the whole name
    #[arg(long)]
    regex: bool,
    /// Profile type: cpu, wall, alloc_space, …, or a five-part id
    #[arg(long = "type", value_name = "TYPE", default_value = "cpu")]
    profile_type: String,
    /// Only this service
    #[arg(long, value_name = "NAME")]
    service: Option<String>,
    #[command(flatten)]
    time: RangeArguments,
    /// How many spans to list
    #[arg(long, value_name = "N", default_value = "10")]
    limit: u32,
    /// Print the server's JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerArguments,
}

/// Runs the command.
pub(crate) fn run(arguments: &SpansOfArguments) -> anyhow::Result<()> {
    let client = Client::new(&arguments.server);
    let name = if arguments.regex { "regex" } else { "function" };
    let mut answer = ask(&client, arguments, (name, &arguments.function))?;
    if !arguments.regex && !is_found(&answer) {
        answer = ask(&client, arguments, ("regex", &last_part(&arguments.function)))?;
    }
    say(if arguments.json { format!("{answer:#}") } else { draw(&answer, arguments) }.trim_end());
    Ok(())
}

fn ask(client: &Client, arguments: &SpansOfArguments, name: (&str, &str)) -> anyhow::Result<Value> {
    let limit = arguments.limit.to_string();
    let (from, to) = arguments.time.range();
    let mut query = vec![name, ("type", &arguments.profile_type), ("start", &from), ("end", &to), ("limit", &limit)];
    if let Some(service) = &arguments.service {
        query.push(("service", service));
    }
    client.get("/api/v1/functions/spans", &query)?.json()
}

fn is_found(answer: &Value) -> bool {
    answer["functions"].as_array().is_some_and(|functions| !functions.is_empty())
}

/// A pattern for names that end in this one, whatever module, type or package stands before it.
fn last_part(name: &str) -> String {
    let literal = |character: char| match character {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '_' => character.to_string(),
        other if other.is_ascii() => format!("\\{other}"),
        other => other.to_string(),
    };
    format!("(?:.*[^\\w])?{}", name.chars().map(literal).collect::<String>())
}

fn draw(answer: &Value, arguments: &SpansOfArguments) -> String {
    let unit = answer["unit"].as_str().unwrap_or_default();
    let screen = Screen::of(None).width();
    let value = |value: &Value| match value.as_i64() {
        Some(whole) => value_text(whole, unit),
        None => rate_text(value.as_f64().unwrap_or(0.0), unit),
    };
    if !is_found(answer) {
        let (from, to) = arguments.time.range();
        let service = arguments.service.as_ref().map_or_else(String::new, |service| format!(" in {service}"));
        return format!(
            "no sample of {}{service} between {from} and {to}; names must fit whole or by their last part, --regex takes a pattern",
            arguments.function
        );
    }
    let functions = answer["functions"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let mut text = functions.map(|function| format!("{function}\n")).collect::<String>();
    text.push_str(&format!("{} in all", value(&answer["value"])));
    text.push_str(&format!(", {} of it outside of spans", value(&answer["unlinked_value"])));
    if let Some(unknown @ 1..) = answer["unknown_spans"].as_u64() {
        let spans = counted(unknown, "span");
        text.push_str(&format!(", {} in {spans} not stored here", value(&answer["unknown_value"])));
    }
    text.push('\n');
    let mut operations = Table::new(&[
        ("service", Column::Text),
        ("operation", Column::Text),
        ("in it", Column::Number),
        ("spans", Column::Number),
        ("a span", Column::Number),
        ("example", Column::Id),
    ]);
    for row in answer["operations"].as_array().into_iter().flatten() {
        operations.row([
            row["service"].as_str().unwrap_or_default().to_owned(),
            row["operation"].as_str().unwrap_or_default().to_owned(),
            value(&row["value"]),
            count_text(row["spans"].as_u64().unwrap_or(0)),
            value(&row["value_per_span"]),
            row["traces"][0].as_str().unwrap_or_default().to_owned(),
        ]);
    }
    if !operations.is_empty() {
        text.push('\n');
        text.push_str(&operations.draw(screen));
    }
    let mut spans = Table::new(&[
        ("trace", Column::Id),
        ("span", Column::Id),
        ("service", Column::Text),
        ("name", Column::Text),
        ("duration", Column::Number),
        ("in it", Column::Number),
    ]);
    for row in answer["spans"].as_array().into_iter().flatten() {
        spans.row([
            row["trace_id"].as_str().unwrap_or_default().to_owned(),
            row["span_id"].as_str().unwrap_or_default().to_owned(),
            row["service"].as_str().unwrap_or_default().to_owned(),
            row["name"].as_str().unwrap_or_default().to_owned(),
            duration_text(row["duration_ns"].as_i64().unwrap_or(0)),
            value(&row["value"]),
        ]);
    }
    if !spans.is_empty() {
        text.push('\n');
        text.push_str(&spans.draw(screen));
    }
    text
}
