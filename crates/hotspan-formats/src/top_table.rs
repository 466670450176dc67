//! The functions of a flame tree, each once, however many paths lead to it.

use std::fmt::Write as _;
use std::hash::Hash;

use hashbrown::HashMap;
use hotspan_model::FlameTree;
use hotspan_model::flame::Children;

use crate::shortened::shortened;
use crate::value_text::{column_width, count_text, percent, printable, value_text};

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

/// Visits every node with whether what it is called, a function or a call of one by another, is already open above it.
pub(crate) fn visit<N: Eq + Hash>(
    children: &Children,
    name_of: impl Fn(usize) -> N,
    mut each: impl FnMut(usize, bool),
) {
    let mut open: HashMap<N, u32> = HashMap::new();
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

/// Characters before the name of a function, but for the two values.
const NUMBERS: usize = 22;
/// Names have this many characters at least, however narrow the screen is.
const LEAST_ROOM: usize = 20;

/// The first `limit` functions as a text table. Without a width, names and paths of files are whole.
pub fn top_text(tree: &FlameTree, unit: &str, limit: usize, width: Option<usize>) -> String {
    let rows = top_functions(tree);
    let listed = || rows.iter().take(limit);
    let values: Vec<[String; 2]> =
        listed().map(|row| [value_text(row.self_value, unit), value_text(row.total, unit)]).collect();
    let column = column_width(values.iter().flatten().map(String::as_str));
    let room = width.map(|width| width.saturating_sub(NUMBERS + 2 * column).max(LEAST_ROOM));
    let mut out = format!("total {}\n\n", value_text(tree.total(), unit));
    // Writing into a String can't fail.
    let _ = writeln!(out, "{:>column$}        %  {:>column$}        %  function", "self", "total");
    for (row, [own, total]) in listed().zip(&values) {
        let (own_share, total_share) = (percent(row.self_value, tree.total()), percent(row.total, tree.total()));
        let named = named(&printable(&row.name), &printable(&row.place), room);
        let _ = writeln!(out, "{own:>column$}  {own_share:>6.2}%  {total:>column$}  {total_share:>6.2}%  {named}");
    }
    if rows.len() > limit {
        let _ = writeln!(out, "… {} more functions", count_text((rows.len() - limit) as u64));
    }
    out
}

/// A function and its place. Where there is not room for all, the file goes without its folders, and half of the room is
/// enough for either.
fn named(name: &str, place: &str, room: Option<usize>) -> String {
    match (place, room) {
        ("", None) => name.to_owned(),
        ("", Some(room)) => shortened(name, room),
        (place, None) => format!("{name}  {place}"),
        (place, Some(room)) => {
            let file = place.rsplit(['/', '\\']).next().unwrap_or(place);
            let room = room - 2;
            let file = shortened(file, room.saturating_sub(name.chars().count()).max(room / 2));
            format!("{}  {file}", shortened(name, room - file.chars().count()))
        }
    }
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
        let text = top_text(&tree, "count", 2, None);
        assert!(text.contains("parse  tax.go:112\n") && text.contains("e?[31mvil\n"), "{text}");
        assert!(text.ends_with("… 1 more functions\n"), "{text}");
    }

    /// Scenario: a long name in a file far down, for a terminal of 80 columns, a very narrow one, and a pipe.
    /// Guarantee: a terminal gets lines that fit, with the ends of the name and of the path; a pipe gets all of both.
    #[test]
    fn lines_fit_the_screen() {
        let name = "<alloc::vec::Vec<shop::cart::Item> as core::iter::Extend<shop::cart::Item>>::extend_reserve";
        let path = "/home/ci/.cargo/registry/src/index-1949cf8c6b5b557f-and-more/alloc-1.0.0/src/vec/spec_extend.rs";
        let mut tree = FlameTree::default();
        tree.add_stack(["main", name], 9);
        let file = tree.intern(path);
        tree.place(2, file, 112, 9);
        let narrow = top_text(&tree, "count", 9, Some(80));
        assert!(narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
        let line = narrow.lines().nth(3).unwrap();
        assert!(line.contains("<allo…") && line.ends_with("_reserve  spec_extend.rs:112"), "{narrow}");
        assert!(top_text(&tree, "count", 9, Some(10)).contains("eserve  "));
        assert!(top_text(&tree, "count", 9, None).contains(&format!("{name}  {path}:112\n")));
    }

    /// Scenario: a recursive function. Guarantee: its total counts each sample once, its self value all.
    #[test]
    fn recursion_counts_once() {
        let mut tree = FlameTree::default();
        tree.add_stack(["main", "walk", "walk", "walk"], 5);
        tree.add_stack(["main", "walk"], 1);
        let rows = top_functions(&tree);
        assert_eq!(rows[0], TopRow { name: "walk".into(), self_value: 6, total: 6, place: String::new() });
        assert!(top_text(&tree, "count", 1, None).contains("100.00%  walk"));
    }
}
