//! `hotspan sql`: read-only SQL from a terminal, answered by a running server.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use serde_json::{Value, json};

use crate::client::{Client, ServerArguments};
use crate::table::{Align, Table};

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
            bytes = drawn(&json).into_bytes();
        } else {
            bytes.push(b'\n');
        }
    }
    match &arguments.output {
        Some(file) => std::fs::write(file, bytes).with_context(|| format!("writing {}", file.display())),
        None => std::io::stdout().write_all(&bytes).context("writing the answer"),
    }
}

fn drawn(answer: &Value) -> String {
    let no_columns = Vec::new();
    let columns = answer["columns"].as_array().unwrap_or(&no_columns);
    let name = |column: &Value| column["name"].as_str().unwrap_or_default().to_owned();
    let names: Vec<String> = columns.iter().map(name).collect();
    let headings: Vec<(&str, Align)> =
        names.iter().zip(columns).map(|(name, column)| (name.as_str(), side_of(&column["type"]))).collect();
    let mut table = Table::new(&headings);
    for row in answer["rows"].as_array().into_iter().flatten() {
        table.cells(names.iter().map(|name| cell(&row[name])).collect());
    }
    let count = answer["row_count"].as_u64().unwrap_or(0);
    format!("{}({count} {})\n", table.draw(), if count == 1 { "row" } else { "rows" })
}

fn side_of(column_type: &Value) -> Align {
    let text = column_type.as_str().unwrap_or_default();
    let is_number = ["Int", "UInt", "Float", "Decimal"].iter().any(|kind| text.starts_with(kind));
    if is_number { Align::Right } else { Align::Left }
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
        assert_eq!(drawn(&answer), "name       n  m\ncheckout  12  {\"a\":\"b\"}\n           5\n(2 rows)\n");
    }
}
