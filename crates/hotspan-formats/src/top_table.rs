//! The functions of a flame tree, each once, however many paths lead to it.

use std::fmt::Write as _;

use hashbrown::HashMap;
use hotspan_model::FlameTree;

use crate::diff_tree::{DiffTree, Side};
use crate::value_text::{percent, value_text};

/// A function and its values over all paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopRow {
    /// The function.
    pub name: String,
    /// Value measured in it.
    pub self_value: i64,
    /// Value measured in it and below it; a recursive call counts once.
    pub total: i64,
}

/// A function and its values on either side of a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionChange {
    /// The function.
    pub name: String,
    /// The baseline.
    pub left: Side,
    /// What it is compared with.
    pub right: Side,
}

/// Visits every node with whether its function is already open above it.
fn visit(children: &[Vec<usize>], name_of: impl Fn(usize) -> u32, mut each: impl FnMut(usize, bool)) {
    let mut open: HashMap<u32, u32> = HashMap::new();
    let mut stack: Vec<(usize, bool)> = children[0].iter().map(|child| (*child, false)).collect();
    while let Some((node, leaving)) = stack.pop() {
        let count = open.entry(name_of(node)).or_insert(0);
        if leaving {
            *count -= 1;
            continue;
        }
        each(node, *count > 0);
        *count += 1;
        stack.push((node, true));
        stack.extend(children[node].iter().map(|child| (*child, false)));
    }
}

/// All functions of a tree, those with the largest self value first.
pub fn top_functions(tree: &FlameTree) -> Vec<TopRow> {
    let mut rows: HashMap<u32, TopRow> = HashMap::new();
    let nodes = tree.nodes();
    visit(
        &tree.children_by_name(),
        |node| nodes[node].name,
        |index, recursive| {
            let node = &nodes[index];
            let new = || TopRow { name: tree.name(node.name).to_owned(), self_value: 0, total: 0 };
            let row = rows.entry(node.name).or_insert_with(new);
            row.self_value = row.self_value.saturating_add(node.self_value);
            if !recursive {
                row.total = row.total.saturating_add(node.total);
            }
        },
    );
    let mut rows: Vec<TopRow> = rows.into_values().collect();
    rows.sort_unstable_by(|a, b| (b.self_value, b.total, &a.name).cmp(&(a.self_value, a.total, &b.name)));
    rows
}

/// All functions of a comparison, those whose self value changed most first.
pub fn function_changes(tree: &DiffTree) -> Vec<FunctionChange> {
    let mut rows: HashMap<u32, FunctionChange> = HashMap::new();
    let nodes = tree.nodes();
    visit(
        &tree.children_by_name(),
        |node| nodes[node].name,
        |index, recursive| {
            let node = &nodes[index];
            let row = rows.entry(node.name).or_insert_with(|| FunctionChange {
                name: tree.name(index).to_owned(),
                left: Side::default(),
                right: Side::default(),
            });
            for (sum, side) in [(&mut row.left, node.left), (&mut row.right, node.right)] {
                sum.self_value = sum.self_value.saturating_add(side.self_value);
                if !recursive {
                    sum.total = sum.total.saturating_add(side.total);
                }
            }
        },
    );
    let mut rows: Vec<FunctionChange> = rows.into_values().collect();
    let change = |row: &FunctionChange| row.right.self_value.saturating_sub(row.left.self_value).unsigned_abs();
    rows.sort_unstable_by(|a, b| (change(b), &a.name).cmp(&(change(a), &b.name)));
    rows
}

/// The first `limit` functions as a text table.
pub fn top_text(tree: &FlameTree, unit: &str, limit: usize) -> String {
    let mut out = String::from("      self        %       total        %  function\n");
    for row in top_functions(tree).iter().take(limit) {
        let (own, total) = (value_text(row.self_value, unit), value_text(row.total, unit));
        let (own_share, total_share) = (percent(row.self_value, tree.total()), percent(row.total, tree.total()));
        // Writing into a String can't fail.
        let _ = writeln!(out, "{own:>10}  {own_share:>6.2}%  {total:>10}  {total_share:>6.2}%  {}", row.name);
    }
    out
}

/// The first `limit` changes as a text table. Values are divided by `per`, left and right: by the seconds or the
/// requests of each side, so that sides of different length compare.
pub fn changes_text(tree: &DiffTree, unit: &str, per: (f64, f64), limit: usize) -> String {
    let mut out = String::from("    before       after      change        %  function\n");
    let scaled = |value: i64, per: f64| if per > 0.0 { (value as f64 / per).round() as i64 } else { value };
    let mut rows: Vec<(i64, i64, String)> = function_changes(tree)
        .into_iter()
        .map(|row| (scaled(row.left.self_value, per.0), scaled(row.right.self_value, per.1), row.name))
        .collect();
    rows.sort_by_key(|(left, right, _)| std::cmp::Reverse(right.saturating_sub(*left).unsigned_abs()));
    for (left, right, name) in rows.into_iter().take(limit) {
        let relative = match left {
            _ if left == right => String::new(),
            0 => "new".to_owned(),
            _ if right == 0 => "gone".to_owned(),
            _ => format!("{:+.1}%", (right as f64 / left as f64 - 1.0) * 100.0),
        };
        let (before, after) = (value_text(left, unit), value_text(right, unit));
        let change = value_text(right.saturating_sub(left), unit);
        // Writing into a String can't fail.
        let _ = writeln!(out, "{before:>10}  {after:>10}  {change:>10}  {relative:>7}  {name}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: a recursive function. Guarantee: its total counts each sample once, its self value all.
    #[test]
    fn recursion_counts_once() {
        let mut tree = FlameTree::default();
        tree.add_stack(["main", "walk", "walk", "walk"], 5);
        tree.add_stack(["main", "walk"], 1);
        let rows = top_functions(&tree);
        assert_eq!(rows[0], TopRow { name: "walk".into(), self_value: 6, total: 6 });
        assert!(top_text(&tree, "count", 1).contains("100.00%  walk"));
    }

    /// Scenario: a comparison in which one function grew and one vanished.
    /// Guarantee: the largest change comes first; comparing a tree with itself shows none.
    #[test]
    fn changes_by_size() {
        let (mut left, mut right) = (FlameTree::default(), FlameTree::default());
        left.add_stack(["main", "gone"], 2);
        right.add_stack(["main", "grown"], 9);
        let rows = function_changes(&DiffTree::new(&left, &right));
        let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["grown", "gone", "main"]);
        let text = changes_text(&DiffTree::new(&left, &right), "count", (2.0, 3.0), 2);
        assert!(text.contains("new  grown") && text.contains("gone  gone"), "{text}");
        assert!(text.lines().nth(1).is_some_and(|line| line.split_whitespace().nth(1) == Some("3")), "{text}");
        assert!(function_changes(&DiffTree::new(&left, &left)).iter().all(|row| row.left == row.right));
    }
}
