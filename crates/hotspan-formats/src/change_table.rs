//! Functions of a comparison: how each changed, absolutely and relatively, however long either side was measured.

use std::fmt::Write as _;

use hashbrown::HashMap;

use crate::diff_tree::{DiffTree, Presence, Side};
use crate::shortened::shortened;
use crate::top_table::visit;
use crate::value_text::{count_text, printable, rate_text};

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

/// Characters before the name of a function.
const NUMBERS: usize = 58;
/// Names have this many characters at least, however narrow the screen is.
const LEAST_ROOM: usize = 20;

/// The first `limit` changes as a text table, coloured for terminals if asked. Without a width, names are whole.
pub fn changes_text(rows: &[FunctionChange], unit: &str, limit: usize, width: Option<usize>, colour: bool) -> String {
    let room = width.map_or(usize::MAX, |width| width.saturating_sub(NUMBERS).max(LEAST_ROOM));
    let mut out = String::from("    before       after      change         %       total  function\n");
    let changed = rows.iter().filter(|row| FunctionChange::differs(row.own) || FunctionChange::differs(row.total));
    let (mut shown, mut left_out) = (0, 0u64);
    for row in changed {
        if shown == limit {
            left_out += 1;
            continue;
        }
        shown += 1;
        let relative = match (row.presence, FunctionChange::relative(row.own)) {
            (Presence::New, _) => "new".to_owned(),
            (Presence::Vanished, _) => "gone".to_owned(),
            (Presence::Both, Some(change)) => format!("{:+.1}%", change * 100.0),
            (Presence::Both, None) => String::new(),
        };
        let change = row.own.1 - row.own.0;
        let signed = |value: f64| {
            let text = rate_text(value, unit);
            if value > 0.0 { format!("+{text}") } else { text }
        };
        let (start, end) = match (colour, change) {
            (true, change) if change > 0.0 => ("\x1b[31m", "\x1b[0m"),
            (true, change) if change < 0.0 => ("\x1b[32m", "\x1b[0m"),
            _ => ("", ""),
        };
        // Writing into a String can't fail.
        let _ = writeln!(
            out,
            "{start}{:>10}  {:>10}  {:>10}  {relative:>8}  {:>10}  {}{end}",
            rate_text(row.own.0, unit),
            rate_text(row.own.1, unit),
            signed(change),
            signed(row.total.1 - row.total.0),
            shortened(&printable(&row.name), room),
        );
    }
    if left_out > 0 {
        let _ = writeln!(out, "… {} more functions changed", count_text(left_out));
    }
    if shown == 0 && left_out == 0 {
        out = String::from("no function changed\n");
    }
    out
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
        assert!(changes_text(&rows, "count", 9, None, false).contains(&name));
    }
}
