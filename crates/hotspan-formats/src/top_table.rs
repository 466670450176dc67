//! The functions of a flame tree, each once, however many paths lead to it.

use std::fmt::Write as _;

use hashbrown::HashMap;
use hotspan_model::FlameTree;
use hotspan_model::flame::Children;

use crate::value_text::{percent, printable, value_text};

/// A function and its values over all paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopRow {
    /// The function.
    pub name: String,
    /// Value measured in it.
    pub self_value: i64,
    /// Value measured in it and below it; a recursive call counts once.
    pub total: i64,
    /// The file and line that carry the most of it; empty if not known.
    pub place: String,
}

/// Visits every node with whether its function is already open above it.
pub(crate) fn visit(children: &Children, name_of: impl Fn(usize) -> u32, mut each: impl FnMut(usize, bool)) {
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
    let mut rows: HashMap<u32, (TopRow, i64)> = HashMap::new();
    let nodes = tree.nodes();
    visit(
        &tree.children_by_name(),
        |node| nodes[node].name,
        |index, recursive| {
            let node = &nodes[index];
            let name = tree.name(node.name).to_owned();
            let new = || (TopRow { name, self_value: 0, total: 0, place: String::new() }, i64::MIN);
            let (row, place_weight) = rows.entry(node.name).or_insert_with(new);
            row.self_value = row.self_value.saturating_add(node.self_value);
            if !recursive {
                row.total = row.total.saturating_add(node.total);
            }
            if node.self_value > *place_weight {
                *place_weight = node.self_value;
                row.place = place_text(tree.name(node.file), node.line);
            }
        },
    );
    let mut rows: Vec<TopRow> = rows.into_values().map(|(row, _)| row).collect();
    rows.sort_unstable_by(|a, b| (b.self_value, b.total, &a.name).cmp(&(a.self_value, a.total, &b.name)));
    rows
}

/// `file:line`, as far as either is known.
pub(crate) fn place_text(file: &str, line: u32) -> String {
    match (file, line) {
        ("", _) => String::new(),
        (file, 0) => file.to_owned(),
        (file, line) => format!("{file}:{line}"),
    }
}

/// The first `limit` functions as a text table.
pub fn top_text(tree: &FlameTree, unit: &str, limit: usize) -> String {
    let rows = top_functions(tree);
    let mut out = format!("total {}\n\n", value_text(tree.total(), unit));
    out.push_str("      self        %       total        %  function\n");
    for row in rows.iter().take(limit) {
        let (own, total) = (value_text(row.self_value, unit), value_text(row.total, unit));
        let (own_share, total_share) = (percent(row.self_value, tree.total()), percent(row.total, tree.total()));
        // Writing into a String can't fail.
        let _ = write!(out, "{own:>10}  {own_share:>6.2}%  {total:>10}  {total_share:>6.2}%  {}", printable(&row.name));
        let _ = if row.place.is_empty() { writeln!(out) } else { writeln!(out, "  {}", printable(&row.place)) };
    }
    if rows.len() > limit {
        let _ = writeln!(out, "… {} more functions", rows.len() - limit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: a function that is hot on one line, more functions than are asked for, a name with escapes.
    /// Guarantee: the line is named, the rest is counted, and no control character reaches the terminal.
    #[test]
    fn places_and_the_rest() {
        let mut tree = FlameTree::default();
        tree.add_stack(["main", "parse"], 9);
        tree.add_stack(["main", "e\u{1b}[31mvil"], 5);
        let file = tree.intern("tax.go");
        tree.place(2, file, 112, 9);
        let text = top_text(&tree, "count", 2);
        assert!(text.contains("parse  tax.go:112\n") && text.contains("e?[31mvil\n"), "{text}");
        assert!(text.ends_with("… 1 more functions\n"), "{text}");
    }

    /// Scenario: a recursive function. Guarantee: its total counts each sample once, its self value all.
    #[test]
    fn recursion_counts_once() {
        let mut tree = FlameTree::default();
        tree.add_stack(["main", "walk", "walk", "walk"], 5);
        tree.add_stack(["main", "walk"], 1);
        let rows = top_functions(&tree);
        assert_eq!(rows[0], TopRow { name: "walk".into(), self_value: 6, total: 6, place: String::new() });
        assert!(top_text(&tree, "count", 1).contains("100.00%  walk"));
    }
}
