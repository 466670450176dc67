//! `hotspan sql`: read-only SQL from a terminal, answered by a running server.

use std::path::PathBuf;

use clap::Args;
use hotspan_formats::count_text;
use serde_json::{Value, json};

use crate::client::{Client, ServerArguments};
use crate::screen::{Screen, write_answer};
use crate::table::{Column, Table};

/// Ask a server with SQL, read-only
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SqlArguments {
    /// The statement
    #[arg(value_name = "STATEMENT")]
    statement: String,
    /// How to print the answer
    #[arg(long, value_parser = ["table", "json", "csv", "arrow"], default_value = "table")]
    format: String,
    /// Write the answer into a file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    server: ServerArguments,
}

const EXAMPLES: &str = "Examples:
  hotspan sql 'SELECT service, count(*), avg(duration) / 1e6 AS ms FROM spans GROUP BY service ORDER BY ms DESC'
  hotspan sql 'SELECT stack(path), sum(value) FROM samples GROUP BY path ORDER BY 2 DESC LIMIT 10'
  hotspan sql \"SELECT * FROM spans WHERE trace_id = X'0af7651916cd43dd8448eb211c80319c'\" --format json
  hotspan sql 'SELECT \"table\", level, count(*), sum(bytes) FROM hotspan.segments GROUP BY 1, 2 ORDER BY 1, 2'
  hotspan sql 'SHOW TABLES'";

/// Runs the command.
pub(crate) fn run(arguments: &SqlArguments) -> anyhow::Result<()> {
    let client = Client::new(&arguments.server);
    let format = if arguments.format == "table" { "json" } else { &arguments.format };
    let answer = client.post_json("/api/v1/sql", &json!({ "query": arguments.statement, "format": format }))?;
    let mut bytes = answer.body.clone();
    if format == "json" {
        let json = answer.json()?;
        // What went wrong after the first rows stands behind them.
        if let Some(error) = json["error"].as_str() {
            anyhow::bail!("{error}");
        }
        if arguments.format == "table" {
            bytes = drawn(&json, Screen::of(arguments.output.as_deref()).width()).into_bytes();
        } else {
            bytes.push(b'\n');
        }
    }
    write_answer(&bytes, arguments.output.as_deref(), format == "arrow")
}

/// The answer for a screen of this width, if there is one.
fn drawn(answer: &Value, screen: Option<usize>) -> String {
    let no_columns = Vec::new();
    let columns = answer["columns"].as_array().unwrap_or(&no_columns);
    if let Some(text) = single_text(answer, columns) {
        return lines_of(text, screen.is_some());
    }
    let name = |column: &Value| column["name"].as_str().unwrap_or_default().to_owned();
    let names: Vec<String> = columns.iter().map(name).collect();
    let headings: Vec<(&str, Column)> =
        names.iter().zip(columns).map(|(name, column)| (name.as_str(), column_of(&column["type"]))).collect();
    let mut table = Table::new(&headings);
    for row in answer["rows"].as_array().into_iter().flatten() {
        table.cells(names.iter().map(|name| cell(&row[name])));
    }
    let count = answer["row_count"].as_u64().unwrap_or(0);
    format!("{}({} {})\n", table.draw(screen), count_text(count), if count == 1 { "row" } else { "rows" })
}

/// The text that is all of an answer, such as collapsed stacks: a table around it would only be in the way.
fn single_text<'a>(answer: &'a Value, columns: &[Value]) -> Option<&'a str> {
    match (columns, answer["rows"].as_array()?.as_slice()) {
        ([column], [row]) if column["type"].as_str()?.contains("Utf8") => row[column["name"].as_str()?].as_str(),
        _ => None,
    }
}

/// A text as it is. A terminal gets no escape sequences: names come from anybody.
fn lines_of(text: &str, is_terminal: bool) -> String {
    let is_harmless = |character: &char| !is_terminal || !character.is_control() || matches!(character, '\n' | '\t');
    let mut lines: String =
        text.chars().map(|character| if is_harmless(&character) { character } else { '?' }).collect();
    if !lines.ends_with('\n') {
        lines.push('\n');
    }
    lines
}

fn column_of(column_type: &Value) -> Column {
    let text = column_type.as_str().unwrap_or_default();
    let is_number = ["Int", "UInt", "Float", "Decimal"].iter().any(|kind| text.starts_with(kind));
    if is_number { Column::Number } else { Column::Text }
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: an answer with text, numbers, nothing and a map. Guarantee: numbers stand right, the rest left.
    #[test]
    fn answers_are_drawn() {
        let answer = json!({
            "columns": [{"name": "name", "type": "Utf8"}, {"name": "n", "type": "Int64"}, {"name": "m", "type": "Map"}],
            "rows": [{"name": "checkout", "n": 12, "m": {"a": "b"}}, {"name": null, "n": 5, "m": null}],
            "row_count": 2,
        });
        assert_eq!(drawn(&answer, None), "name       n  m\ncheckout  12  {\"a\":\"b\"}\n           5\n(2 rows)\n");
    }

    /// Scenario: collapsed stacks, alone and beside a service, on a terminal and in a pipe.
    /// Guarantee: alone they are lines as they are, without escape sequences on a terminal; in a table they are cut to the
    /// screen, and whole in a pipe.
    #[test]
    fn long_texts_can_be_read() {
        let stacks = "main;serve;pa\u{1b}rse 90\n".repeat(40);
        let columns = json!([{"name": "service", "type": "Utf8"}, {"name": "stacks", "type": "Utf8"}]);
        let alone = json!({ "columns": [columns[1]], "rows": [{"stacks": stacks}], "row_count": 1 });
        assert_eq!(drawn(&alone, None), stacks);
        assert_eq!(drawn(&alone, Some(80)), stacks.replace('\u{1b}', "?"));
        let beside = json!({ "columns": columns, "rows": [{"service": "shop", "stacks": stacks}], "row_count": 1 });
        let narrow = drawn(&beside, Some(80));
        assert!(narrow.contains("shop     main;serve;pa?rse 90↵"), "{narrow}");
        assert!(narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
        assert!(drawn(&beside, None).lines().any(|line| line.chars().count() > 800));
    }
}
