//! An explanation for a ticket.

use super::sentences::{details, headline, operation, part_name, part_time, side_names, sides, subject, too_much};
use crate::explanation::Explanation;
use crate::notes::ms;

/// The explanation as Markdown.
pub fn markdown(explanation: &Explanation, target: &str, link: &str) -> String {
    let names = side_names(explanation);
    let title = if explanation.comparison.is_some() { "Did the change help?" } else { "Why is it slow?" };
    let mut out = format!("## {title}\n\n**{}**\n\n{}\n\n", escaped(&headline(explanation)), sides(explanation));
    out.push_str(&format!("Target: `{}`  \nHotspan: <{link}>\n", target.replace('`', "'")));
    if let Some(comparison) = &explanation.comparison
        && !comparison.functions.is_empty()
    {
        out.push_str("\n| function | before | after | difference |\n|---|---:|---:|---:|\n");
        for function in &comparison.functions {
            out.push_str(&format!(
                "| `{}` {} | {} | {} | {} ({} to {}) |\n",
                code(&function.function),
                escaped(&function.service),
                ms(function.before_ms),
                ms(function.after_ms),
                ms(function.delta_ms),
                ms(function.interval_ms[0]),
                ms(function.interval_ms[1])
            ));
        }
    }
    if !explanation.causes.is_empty() {
        out.push_str(&format!(
            "\n| # | cause | where | kind | {} | {} | difference | share | samples |\n|---|---|---|---|---:|---:|---:|---:|---:|\n",
            names.slow, names.fast
        ));
        for (rank, cause) in explanation.causes.iter().enumerate() {
            out.push_str(&format!(
                "| {} | `{}` | {} | {} | {} | {} | {} ({} to {}) | {:.0} % | {} |\n",
                rank + 1,
                code(&subject(cause)),
                escaped(&operation(cause)),
                cause.kind,
                ms(cause.slow_ms),
                ms(cause.fast_ms),
                ms(cause.delta_ms),
                ms(cause.interval_ms[0]),
                ms(cause.interval_ms[1]),
                cause.share * 100.0,
                cause.samples
            ));
        }
        for (rank, cause) in explanation.causes.iter().enumerate() {
            let lines = details(cause, names);
            if !lines.is_empty() {
                out.push_str(&format!("\n{}. `{}`\n", rank + 1, code(&subject(cause))));
                for line in lines {
                    out.push_str(&format!("   - {}\n", escaped(&line)));
                }
            }
        }
    }
    let (slow, fast) = (names.one_slow, names.one_fast);
    out.push_str(&format!("\n| where the time goes | {slow} | {fast} |\n|---|---:|---:|\n"));
    for part in &explanation.ledger.parts {
        let name = part.label.as_deref().unwrap_or_else(|| part_name(part.kind));
        out.push_str(&format!("| {} | {} | {} |\n", escaped(name), part_time(part.ms), part_time(part.fast_ms)));
    }
    if let Some(meaning) = too_much(explanation) {
        out.push_str(&format!("\n{meaning}\n"));
    }
    if !explanation.notes.is_empty() {
        out.push('\n');
        for note in &explanation.notes {
            out.push_str(&format!("- {}\n", escaped(note)));
        }
    }
    out
}

/// Names come from outside: they must not end a table cell, or begin a tag.
fn escaped(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;").replace(['\n', '\r'], " ")
}

fn code(text: &str) -> String {
    text.replace('`', "'").replace('|', "\\|").replace(['\n', '\r'], " ")
}
