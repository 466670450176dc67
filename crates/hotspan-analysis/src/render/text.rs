//! An explanation for a terminal: the answer, a short table, where the time goes, and what to know besides.

use super::sentences::{
    called, details, headline, operation, part_name, part_time, place, side_names, sides, too_much,
};
use crate::comparison::{Change, Comparison};
use crate::explanation::Explanation;
use crate::notes::{counted, ms};

/// Steps of the critical path that are shown.
const MOST_STEPS: usize = 25;

/// The explanation as text.
pub fn text(explanation: &Explanation) -> String {
    let names = side_names(explanation);
    let mut out = format!("{}\n\n{}\n", headline(explanation), sides(explanation));
    if let Some(comparison) = &explanation.comparison {
        push_comparison(&mut out, comparison);
    }
    push_causes(&mut out, explanation);
    out.push_str("\nWhere the time goes, a request\n");
    let rows: Vec<[String; 4]> = explanation
        .ledger
        .parts
        .iter()
        .map(|part| {
            let name = part.label.clone().unwrap_or_else(|| part_name(part.kind).to_owned());
            let share = part.ms.max(0.0) / explanation.ledger.duration_ms.max(1e-9) * 100.0;
            let fast = format!("({} {})", part_time(part.fast_ms), names.in_fast);
            [name, part_time(part.ms), format!("{share:.0} %"), fast]
        })
        .collect();
    push_table(&mut out, &rows, &[false, true, true, false]);
    if let Some(meaning) = too_much(explanation) {
        out.push_str(&format!("  {meaning}\n"));
    }
    if !explanation.critical_path.is_empty() {
        out.push_str("\nCritical path, own time of each operation\n");
        let mut steps: Vec<[String; 3]> = explanation
            .critical_path
            .iter()
            .take(MOST_STEPS)
            .map(|step| {
                let calls = if step.calls > 1.05 { format!(" x {:.1}", step.calls) } else { String::new() };
                let operation = called(&step.service, &step.operation, step.callee.as_deref());
                let name = format!("{}{operation}{calls}", "  ".repeat(step.depth.min(12)));
                [name, ms(step.ms), format!("({} {})", ms(step.fast_ms), names.in_fast)]
            })
            .collect();
        let left_out = explanation.critical_path.len().saturating_sub(MOST_STEPS);
        if left_out > 0 {
            steps.push([format!("and {left_out} more"), String::new(), String::new()]);
        }
        push_table(&mut out, &steps, &[false, true, false]);
    }
    for moved in &explanation.moved {
        out.push_str(&format!(
            "\nMoved, not slower: {} a request went from {} to {} within {}.\n",
            ms(moved.ms),
            moved.from,
            moved.to,
            moved.within
        ));
    }
    if !explanation.notes.is_empty() {
        out.push('\n');
        for note in &explanation.notes {
            out.push_str(&format!("- {note}\n"));
        }
    }
    out
}

fn push_causes(out: &mut String, explanation: &Explanation) {
    if explanation.causes.is_empty() {
        return;
    }
    let names = side_names(explanation);
    let title = match &explanation.comparison {
        Some(comparison) if comparison.change == Change::Faster => "What is gone",
        _ => "Causes",
    };
    out.push_str(&format!("\n{title}\n"));
    for (rank, cause) in explanation.causes.iter().enumerate() {
        let name = cause.function.clone().unwrap_or_else(|| operation(cause));
        let inside = if cause.function.is_some() { format!("  in {}", operation(cause)) } else { String::new() };
        let place = place(cause).map_or(String::new(), |place| format!("  {place}"));
        out.push_str(&format!("{:>3}  {name}{place}{inside}\n", rank + 1));
        out.push_str(&format!(
            "     {}: {} {}, {} {}, {} more ({} to {}), {:.0} %; {}, {}\n",
            cause.kind,
            ms(cause.slow_ms),
            names.slow,
            ms(cause.fast_ms),
            names.fast,
            ms(cause.delta_ms),
            ms(cause.interval_ms[0]),
            ms(cause.interval_ms[1]),
            cause.share * 100.0,
            counted(cause.spans as u64, "request"),
            counted(cause.samples, "sample")
        ));
        for line in details(cause, names) {
            out.push_str(&format!("     {line}\n"));
        }
    }
}

fn push_comparison(out: &mut String, comparison: &Comparison) {
    let (before, after) = (&comparison.before, &comparison.after);
    let row = |name: &str, was: f64, is: f64| [name.to_owned(), ms(was), ms(is)];
    out.push('\n');
    let rows = [
        ["".to_owned(), "before".to_owned(), "after".to_owned()],
        ["requests".to_owned(), before.spans.to_string(), after.spans.to_string()],
        row("mean", before.mean_ms, after.mean_ms),
        row("p50", before.p50_ms, after.p50_ms),
        row("p95", before.p95_ms, after.p95_ms),
        row("p99", before.p99_ms, after.p99_ms),
    ];
    push_table(out, &rows, &[false, true, true]);
    if comparison.functions.is_empty() {
        return;
    }
    out.push_str("\nFunctions whose cost changed, a request\n");
    let rows: Vec<[String; 5]> = comparison
        .functions
        .iter()
        .map(|function| {
            [
                format!("{} {}", function.service, function.function),
                ms(function.before_ms),
                ms(function.after_ms),
                format!("{}{}", if function.delta_ms > 0.0 { "+" } else { "" }, ms(function.delta_ms)),
                format!("({} to {})", ms(function.interval_ms[0]), ms(function.interval_ms[1])),
            ]
        })
        .collect();
    push_table(out, &rows, &[false, true, true, true, false]);
}

/// Rows in columns; `right` says which are numbers.
fn push_table<const N: usize>(out: &mut String, rows: &[[String; N]], right: &[bool; N]) {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    for row in rows {
        let mut line = String::from("  ");
        for (column, cell) in row.iter().enumerate() {
            let pad = " ".repeat(widths[column].saturating_sub(cell.chars().count()));
            let (before, after) = if right[column] { (pad.as_str(), "") } else { ("", pad.as_str()) };
            line.push_str(before);
            line.push_str(cell);
            line.push_str(after);
            line.push_str("  ");
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
}
