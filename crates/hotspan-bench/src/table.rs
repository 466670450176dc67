//! The table of figures: what was measured, what was budgeted, what the peers took.

use std::fmt::Write as _;
use std::time::Duration;

use crate::measure::Timing;
use crate::questions::Budget;

/// What a figure is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Microseconds,
    Milliseconds,
    Bytes,
    Megabytes,
    PerSecond,
    Times,
}

impl Unit {
    fn text(self, value: f64) -> String {
        let digits = match value {
            value if value >= 100.0 => 0,
            value if value >= 10.0 => 1,
            _ => 2,
        };
        match self {
            Self::Microseconds => format!("{value:.digits$} us"),
            Self::Milliseconds => format!("{value:.digits$} ms"),
            Self::Bytes => format!("{value:.digits$} B"),
            Self::Megabytes => format!("{value:.0} MB"),
            Self::PerSecond => format!("{value:.0} /s"),
            Self::Times => format!("{value:.digits$} x"),
        }
    }
}

#[derive(Debug, Clone)]
struct Row {
    work: String,
    measured: String,
    budget: String,
    peer: String,
    ratio: String,
    verdict: &'static str,
}

/// Rows in the order in which they were measured.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    rows: Vec<Row>,
}

const NONE: &str = "-";

impl Table {
    /// A figure that is good when it is small.
    pub(crate) fn figure(&mut self, work: &str, unit: Unit, value: f64, budget: Option<f64>, peer: Option<f64>) {
        let show = |value: Option<f64>| value.map_or(NONE.to_owned(), |value| unit.text(value));
        let verdict = match budget {
            None => "",
            Some(budget) if value <= budget => "ok",
            Some(_) => "over",
        };
        self.rows.push(Row {
            work: work.to_owned(),
            measured: unit.text(value),
            budget: show(budget),
            peer: show(peer),
            ratio: peer.filter(|_| value > 0.0).map_or(NONE.to_owned(), |peer| format!("1/{:.1}", peer / value)),
            verdict,
        });
    }

    /// A row that says something instead of a figure.
    pub(crate) fn note(&mut self, work: &str, text: &str, verdict: &'static str) {
        let none = || NONE.to_owned();
        let (work, measured) = (work.to_owned(), text.to_owned());
        self.rows.push(Row { work, measured, budget: none(), peer: none(), ratio: none(), verdict });
    }

    /// The rows of a question. Says whether the answer was wrong.
    pub(crate) fn question(&mut self, name: &str, timing: &Timing, budget: &Budget) -> bool {
        match timing {
            Timing::NotAvailable(status) => self.note(name, &format!("not available ({status})"), ""),
            Timing::Wrong(why) => self.note(name, &format!("WRONG: {why}"), "wrong"),
            Timing::Right(times) => {
                let unit = Unit::Milliseconds;
                let cold_budget = budget.cold.or(budget.warm);
                self.figure(&format!("{name}: cold"), unit, millis(times.cold), cold_budget, budget.peer);
                self.figure(&format!("{name}: warm"), unit, millis(times.warm), budget.warm, budget.peer);
                self.figure(&format!("{name}: CPU"), unit, millis(times.warm_cpu), None, budget.peer_cpu);
            }
        }
        matches!(timing, Timing::Wrong(_))
    }

    fn lines(&self) -> Vec<[&str; 6]> {
        let head = ["work", "measured", "budget", "peer", "of peer", ""];
        let rows = self
            .rows
            .iter()
            .map(|row| [row.work.as_str(), &row.measured, &row.budget, &row.peer, &row.ratio, row.verdict]);
        std::iter::once(head).chain(rows).collect()
    }

    pub(crate) fn text(&self) -> String {
        let lines = self.lines();
        let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0).min(60);
        let widths: Vec<usize> = (0..6).map(width).collect();
        let mut out = String::new();
        for line in lines {
            for (cell, width) in line.iter().zip(&widths) {
                // Writing to a String can't fail.
                let _ = write!(out, "{cell:width$}  ");
            }
            out.truncate(out.trim_end().len());
            out.push('\n');
        }
        out
    }

    pub(crate) fn markdown(&self) -> String {
        let mut out = String::new();
        for (number, line) in self.lines().into_iter().enumerate() {
            let cells: Vec<String> = line.iter().map(|cell| cell.replace('|', "\\|").replace('\n', " ")).collect();
            let _ = writeln!(out, "| {} |", cells.join(" | "));
            if number == 0 {
                out.push_str("|---|---:|---:|---:|---:|---|\n");
            }
        }
        out
    }
}

pub(crate) fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

pub(crate) fn micros_each(time: Duration, count: u64) -> f64 {
    time.as_secs_f64() * 1e6 / count.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: a figure inside its budget, one over it, a wrong answer. Guarantee: each says so, in text and Markdown.
    #[test]
    fn verdicts() {
        let mut table = Table::default();
        table.figure("trace by id", Unit::Milliseconds, 2.0, Some(3.6), Some(72.0));
        table.figure("peak memory", Unit::Megabytes, 900.0, Some(800.0), None);
        assert!(table.question("search", &Timing::Wrong("found 3, not 4".to_owned()), &Budget::default()));
        assert!(!table.question("series", &Timing::NotAvailable(404), &Budget::default()));
        let text = table.text();
        for part in ["2.00 ms", "1/36.0", "ok", "over", "WRONG: found 3, not 4", "not available (404)"] {
            assert!(text.contains(part), "{text}");
        }
        assert_eq!(table.markdown().lines().count(), 6);
    }
}
