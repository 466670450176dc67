//! Functions of a comparison: how each changed, absolutely and relatively, however long either side was measured.

use std::fmt::Write as _;

use hashbrown::HashMap;

use crate::diff_tree::{DiffTree, Presence, Side};
use crate::shortened::shortened;
use crate::top_table::visit;
use crate::value_text::{column_width, count_text, printable, rate_text};

/// A function and its values on either side.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionChange {
    /// The function.
    pub name: String,
    /// The baseline, as measured.
    pub left: Side,
    /// What it is compared with, as measured.
    pub right: Side,
    /// Self value for each unit of the measure, baseline and comparison.
    pub own: (f64, f64),
    /// Total for each unit of the measure, baseline and comparison.
    pub total: (f64, f64),
    /// Which sides it was seen on.
    pub presence: Presence,
}

impl FunctionChange {
    /// The change relative to the baseline; none if there was nothing to relate to.
    pub fn relative((before, after): (f64, f64)) -> Option<f64> {
        (before != 0.0).then(|| after / before - 1.0)
    }

    /// Whether a value changed by more than dividing it may: 1 in 0.3 s is as much as 3 in 0.9 s.
    fn differs((before, after): (f64, f64)) -> bool {
        (after - before).abs() > before.abs().max(after.abs()) * 1e-12
    }
}

/// All functions of a comparison, those whose self value changed most first.
pub fn function_changes(tree: &DiffTree) -> Vec<FunctionChange> {
    let mut sums: HashMap<u32, (Side, Side, usize, [bool; 2])> = HashMap::new();
    let nodes = tree.nodes();
    visit(
        &tree.children_by_name(),
        |node| nodes[node].name,
        |index, recursive| {
            let node = &nodes[index];
            let (left, right, _, seen) =
                sums.entry(node.name).or_insert_with(|| (Side::default(), Side::default(), index, [false; 2]));
            for (sum, side) in [(left, node.left), (right, node.right)] {
                sum.self_value = sum.self_value.saturating_add(side.self_value);
                if !recursive {
                    sum.total = sum.total.saturating_add(side.total);
                }
            }
            seen[0] |= node.presence() != Presence::New;
            seen[1] |= node.presence() != Presence::Vanished;
        },
    );
    let measure = tree.measure();
    let mut rows: Vec<FunctionChange> = sums
        .into_values()
        .map(|(left, right, node, seen)| FunctionChange {
            name: tree.name(node).to_owned(),
            own: measure.rates(left.self_value, right.self_value),
            total: measure.rates(left.total, right.total),
            presence: match seen {
                [false, true] => Presence::New,
                [true, false] => Presence::Vanished,
                _ => Presence::Both,
            },
            left,
            right,
        })
        .collect();
    let size = |(before, after): (f64, f64)| (after - before).abs();
    rows.sort_unstable_by(|a, b| {
        size(b.own).total_cmp(&size(a.own)).then(size(b.total).total_cmp(&size(a.total))).then(a.name.cmp(&b.name))
    });
    rows
}

/// Names have this many characters at least, however narrow the screen is.
const LEAST_ROOM: usize = 20;

/// The first `limit` changes as a text table, coloured for terminals if asked. Without a width, names are whole.
pub fn changes_text(rows: &[FunctionChange], unit: &str, limit: usize, width: Option<usize>, colour: bool) -> String {
    let differs = |row: &&FunctionChange| FunctionChange::differs(row.own) || FunctionChange::differs(row.total);
    let changed: Vec<&FunctionChange> = rows.iter().filter(differs).collect();
    if changed.is_empty() {
        return String::from("no function changed\n");
    }
    let listed = &changed[..limit.min(changed.len())];
    let numbers: Vec<[String; 5]> = listed.iter().map(|row| numbers_of(row, unit)).collect();
    let values = numbers.iter().flat_map(|[before, after, change, _, total]| [before, after, change, total]);
    let column = column_width(values.map(String::as_str));
    let relative_column = numbers.iter().map(|[_, _, _, relative, _]| relative.len()).fold(8, usize::max);
    let room =
        width.map_or(usize::MAX, |width| width.saturating_sub(4 * (column + 2) + relative_column + 2).max(LEAST_ROOM));
    let mut out = String::new();
    let mut line = |[before, after, change, relative, total]: [&str; 5], name: &str, (start, end): (&str, &str)| {
        // Writing into a String can't fail.
        let _ = writeln!(
            out,
            "{start}{before:>column$}  {after:>column$}  {change:>column$}  {relative:>relative_column$}  \
             {total:>column$}  {name}{end}"
        );
    };
    line(["before", "after", "change", "%", "total"], "function", ("", ""));
    for (row, numbers) in listed.iter().zip(&numbers) {
        let colours = match (colour, row.own.1 - row.own.0) {
            (true, change) if change > 0.0 => ("\x1b[31m", "\x1b[0m"),
            (true, change) if change < 0.0 => ("\x1b[32m", "\x1b[0m"),
            _ => ("", ""),
        };
        line(numbers.each_ref().map(String::as_str), &shortened(&printable(&row.name), room), colours);
    }
    let left_out = changed.len() - listed.len();
    if left_out > 0 {
        let _ = writeln!(out, "… {} more functions changed", count_text(left_out as u64));
    }
    out
}

/// Self value before and after, its change, the same relatively, and the change of the total.
fn numbers_of(row: &FunctionChange, unit: &str) -> [String; 5] {
    let relative = match (row.presence, FunctionChange::relative(row.own)) {
        (Presence::New, _) => "new".to_owned(),
        (Presence::Vanished, _) => "gone".to_owned(),
        (Presence::Both, Some(change)) => format!("{:+.1}%", change * 100.0),
        (Presence::Both, None) => String::new(),
    };
    let signed = |(before, after): (f64, f64)| {
        let text = rate_text(after - before, unit);
        if after > before { format!("+{text}") } else { text }
    };
    let (before, after) = (rate_text(row.own.0, unit), rate_text(row.own.1, unit));
    [before, after, signed(row.own), relative, signed(row.total)]
}

#[cfg(test)]
mod tests {
    use hotspan_model::FlameTree;

    use super::*;
    use crate::measure::Measure;

    /// Scenario: a comparison in which one function grew, one vanished, one is new, and the right side was measured
    /// three times as long. Guarantee: values are per second, the largest change comes first, new and gone are
    /// marked; comparing a tree with itself shows none, and a list of no length says how many it leaves out.
    #[test]
    fn changes_by_size() {
        let (mut left, mut right) = (FlameTree::default(), FlameTree::default());
        left.add_stack(["main", "vanished"], 20);
        left.add_stack(["main", "steady"], 100);
        right.add_stack(["main", "grown"], 90);
        right.add_stack(["main", "steady"], 300);
        let measure = Measure { left: 10.0, right: 30.0, noun: "second" };
        let rows = function_changes(&DiffTree::new(&left, &right).measured_by(measure));
        let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["grown", "vanished", "main", "steady"]);
        assert_eq!((rows[0].own, rows[3].own), ((0.0, 3.0), (10.0, 10.0)));
        assert_eq!(
            (rows[2].total, FunctionChange::relative(rows[2].total).unwrap()),
            ((12.0, 13.0), 13.0 / 12.0 - 1.0)
        );
        let text = changes_text(&rows, "count", 2, None, false);
        assert!(text.contains("+3.00       new       +3.00  grown") && text.contains("gone"), "{text}");
        assert!(!text.contains("steady") && text.contains("… 1 more functions changed"), "{text}");
        assert!(changes_text(&rows, "count", 1, None, true).contains("\x1b[31m"));
        let none = changes_text(&rows, "count", 0, None, false);
        assert!(none.contains("… 3 more functions changed") && !none.contains("no function"), "{none}");
        let same = function_changes(&DiffTree::new(&left, &left));
        assert_eq!(changes_text(&same, "count", 9, None, false), "no function changed\n");
    }

    /// Scenario: the same values a second, of sides whose lengths divide differently. Guarantee: nothing changed.
    #[test]
    fn rounding_is_no_change() {
        let (mut left, mut right) = (FlameTree::default(), FlameTree::default());
        left.add_stack(["main"], 1);
        right.add_stack(["main"], 3);
        let measure = Measure { left: 0.3, right: 0.9, noun: "second" };
        let rows = function_changes(&DiffTree::new(&left, &right).measured_by(measure));
        assert_ne!(rows[0].own.0, rows[0].own.1);
        assert_eq!(changes_text(&rows, "count", 9, None, false), "no function changed\n");
    }

    /// Scenario: a name that is longer than a line, for a terminal and for a pipe. Guarantee: cut for the former alone.
    #[test]
    fn lines_fit_the_screen() {
        let name = "shop::tax::".repeat(20);
        let mut right = FlameTree::default();
        right.add_stack(["main", name.as_str()], 90);
        let rows = function_changes(&DiffTree::new(&FlameTree::default(), &right));
        let narrow = changes_text(&rows, "count", 9, Some(80), false);
        assert!(narrow.contains('…') && narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
        right.add_stack(["main", "small"], 12_345_678);
        let wide = function_changes(&DiffTree::new(&FlameTree::default(), &right));
        let wide = changes_text(&wide, "cache-misses", 9, Some(140), false);
        let ends: Vec<usize> = wide.lines().map(|line| line.chars().count()).collect();
        assert!(ends.iter().all(|end| *end <= 140), "{wide}");
        assert!(changes_text(&rows, "count", 9, None, false).contains(&name));
    }
}
