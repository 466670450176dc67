//! The call graph in Graphviz's language: functions as nodes, calls as edges.

use std::fmt::Write as _;

use hashbrown::HashMap;
use hotspan_model::FlameTree;

use crate::top_table::{top_functions, visit};
use crate::value_text::{percent, value_text};

/// Writes the call graph of the `max_functions` functions with the largest totals, and says how many there are besides.
pub fn encode(tree: &FlameTree, unit: &str, max_functions: usize) -> String {
    let mut functions = top_functions(tree);
    functions.sort_by(|a, b| (b.total, &a.name).cmp(&(a.total, &b.name)));
    let left_out = functions.len().saturating_sub(max_functions);
    functions.truncate(max_functions);
    let number: HashMap<&str, usize> =
        functions.iter().enumerate().map(|(index, row)| (row.name.as_str(), index)).collect();

    let mut out = String::from("digraph calls {\n  node [shape=box, fontname=\"sans-serif\"];\n");
    if left_out > 0 {
        // Writing into a String can't fail.
        let _ = writeln!(out, "  label=\"{left_out} smaller functions not shown\";");
    }
    for (index, row) in functions.iter().enumerate() {
        let share = percent(row.total, tree.total());
        let label = format!(
            "{}\n{} of {} ({share:.2}%)",
            row.name,
            value_text(row.self_value, unit),
            value_text(row.total, unit)
        );
        let size = 8.0 + 16.0 * (percent(row.self_value, tree.total()) / 100.0).max(0.0).sqrt();
        let _ = writeln!(out, "  n{index} [label={}, fontsize={size:.1}];", quoted(&label));
    }

    let mut edges: HashMap<(usize, usize), i64> = HashMap::new();
    let nodes = tree.nodes();
    visit(
        &tree.children_by_name(),
        |node| (nodes[nodes[node].parent].name, nodes[node].name),
        |index, recursive| {
            let node = &nodes[index];
            let ends = (number.get(tree.name(nodes[node.parent].name)), number.get(tree.name(node.name)));
            // As in a function's total, what a recursion makes of one call counts once.
            if let (Some(from), Some(to), false) = (ends.0, ends.1, recursive) {
                let sum = edges.entry((*from, *to)).or_insert(0i64);
                *sum = sum.saturating_add(node.total);
            }
        },
    );
    let mut edges: Vec<((usize, usize), i64)> = edges.into_iter().collect();
    edges.sort_unstable_by_key(|(ends, value)| (std::cmp::Reverse(*value), *ends));
    for ((from, to), value) in edges {
        let width = 1.0 + 5.0 * (percent(value, tree.total()) / 100.0).max(0.0);
        let _ = writeln!(out, "  n{from} -> n{to} [label={}, penwidth={width:.1}];", quoted(&value_text(value, unit)));
    }
    out.push_str("}\n");
    out
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: a tree whose names hold quotes. Guarantee: one node a function, one edge a call, quoted.
    #[test]
    fn nodes_and_edges() {
        let mut tree = FlameTree::default();
        tree.add_stack(["main", "say \"hi\""], 3);
        tree.add_stack(["main", "other path", "say \"hi\""], 1);
        let text = encode(&tree, "count", 10);
        assert_eq!(text.matches(" -> ").count(), 3);
        assert!(text.contains(r#"label="say \"hi\"\n4 of 4 (100.00%)""#), "{text}");
        assert!(!text.contains("not shown"));
        assert!(encode(&tree, "count", 2).contains("  label=\"1 smaller functions not shown\";\n"));
    }

    /// Scenario: a function that calls itself, and two that call each other. Guarantee: no call has more than its function.
    #[test]
    fn recursive_calls_count_once() {
        let mut tree = FlameTree::default();
        tree.add_stack(["main", "walk", "walk", "walk"], 5);
        tree.add_stack(["main", "even", "odd", "even", "odd"], 7);
        let text = encode(&tree, "count", 10);
        let labels: Vec<&str> = text.lines().filter(|line| line.contains(" -> ")).collect();
        assert_eq!(labels.iter().filter(|line| line.contains("label=\"7\"")).count(), 3, "{text}");
        assert_eq!(labels.iter().filter(|line| line.contains("label=\"5\"")).count(), 2, "{text}");
        assert_eq!(labels.len(), 5, "{text}");
    }
}
