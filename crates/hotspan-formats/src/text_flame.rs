//! A flame graph for terminals: functions indented by depth, bars, percentages, the hottest paths marked.

use std::cmp::Reverse;

use hashbrown::HashSet;
use hotspan_model::FlameTree;
use hotspan_model::flame::OTHER;

use crate::shortened::shortened;
use crate::value_text::{column_width, count_text, percent, printable, value_text};

/// How to draw.
#[derive(Debug, Clone)]
pub struct TextFlameOptions {
    /// Columns of the terminal; without, names are whole.
    pub width: Option<usize>,
    /// Whether to colour with ANSI escapes.
    pub colour: bool,
    /// Lines at most; the rest is summed up in the last one.
    pub max_lines: usize,
    /// Functions below this share of the whole are left out, and said to be.
    pub min_percent: f64,
    /// Unit of the values.
    pub unit: String,
    /// Call paths that pruning has folded into `other`; said below, and `other` is then no function.
    pub folded: u64,
}

impl Default for TextFlameOptions {
    fn default() -> Self {
        Self {
            width: Some(COLUMNS),
            colour: false,
            max_lines: 200,
            min_percent: 0.5,
            unit: String::from("count"),
            folded: 0,
        }
    }
}

/// Columns that are drawn for where nobody says how many there are.
const COLUMNS: usize = 100;
/// How many of the hottest functions have their paths marked.
const MARKED_PATHS: usize = 3;
/// A function below this share is not hot, though it be among the hottest.
const HOT_PERCENT: f64 = 5.0;
/// Deeper callees are drawn at this indent: the names matter more than the staircase.
const MOST_INDENT: usize = 40;
/// Names have this many characters at least, if the screen has them.
const LEAST_ROOM: usize = 20;

/// Draws a tree.
pub fn text_flame(tree: &FlameTree, options: &TextFlameOptions) -> String {
    let total = tree.total();
    let mut out = format!("total {}\n", value_text(total, &options.unit));
    if tree.is_empty() || total == 0 {
        return out;
    }
    let (hot_path, hot_leaf) = hottest(tree);
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); tree.nodes().len()];
    for (index, node) in tree.nodes().iter().enumerate().skip(1) {
        children[node.parent].push(index);
    }
    for siblings in &mut children {
        siblings.sort_by_key(|index| Reverse(tree.nodes()[*index].total.abs()));
    }
    let shown = with_a_line(tree, options, |index| hot_leaf.contains(index) || hot_path.contains(index));
    let mut lines: Vec<Line<'_>> = Vec::with_capacity(shown.len());
    let mut stack: Vec<(usize, usize)> = children[0].iter().rev().map(|child| (*child, 0)).collect();
    while let Some((index, depth)) = stack.pop() {
        if !shown.contains(&index) {
            continue;
        }
        let node = &tree.nodes()[index];
        let mark = match (hot_leaf.contains(&index), hot_path.contains(&index)) {
            (true, _) => '*',
            (false, true) => '>',
            _ => ' ',
        };
        let (share, value) = (percent(node.total, total), value_text(node.total, &options.unit));
        lines.push(Line { depth, mark, share, value, name: tree.name(node.name) });
        stack.extend(children[index].iter().rev().map(|child| (*child, depth + 1)));
    }
    let value_width = column_width(lines.iter().map(|line| line.value.as_str()));
    lines.iter().for_each(|line| draw_line(&mut out, options, line, value_width));
    let left_out = tree.nodes().len() - 1 - lines.len();
    if left_out > 0 {
        out.push_str(&format!("  … {} more call paths not shown\n", count_text(left_out as u64)));
    }
    if options.folded > 0 {
        out.push_str(&format!("  … {} small call paths are folded into \"{OTHER}\"\n", count_text(options.folded)));
    }
    out
}

/// The nodes that get a line: those that are large enough, and of them as many as there may be, hot paths first and then the
/// largest. What calls them is at least as large and stands before them, so that it has a line, too.
fn with_a_line(tree: &FlameTree, options: &TextFlameOptions, is_hot: impl Fn(&usize) -> bool) -> HashSet<usize> {
    let size = |index: &usize| tree.nodes()[*index].total.abs();
    let is_large = |index: &usize| percent(size(index), tree.total()).abs() >= options.min_percent;
    let mut shown: Vec<usize> = (1..tree.nodes().len()).filter(is_large).collect();
    if options.max_lines < shown.len() {
        shown.select_nth_unstable_by_key(options.max_lines, |index| (!is_hot(index), Reverse(size(index)), *index));
        shown.truncate(options.max_lines);
    }
    shown.into_iter().collect()
}

struct Line<'l> {
    depth: usize,
    mark: char,
    share: f64,
    value: String,
    name: &'l str,
}

fn draw_line(out: &mut String, options: &TextFlameOptions, line: &Line<'_>, value_width: usize) {
    let Line { depth, mark, share, ref value, name } = *line;
    // Mark, percentage and the spaces between take 12 columns; a fifth of what the value leaves is for bars.
    let free = options.width.unwrap_or(COLUMNS).saturating_sub(12 + value_width).max(20);
    let bar_width = (free / 5).clamp(4, 40);
    let name_width = free - bar_width;
    let indent = (depth * 2).min(MOST_INDENT).min(name_width.saturating_sub(LEAST_ROOM));
    let (start, end) = match (options.colour, mark) {
        (false, _) => ("", ""),
        (true, '*') => ("\x1b[1;31m", "\x1b[0m"),
        (true, '>') => ("\x1b[33m", "\x1b[0m"),
        (true, _) => ("\x1b[2m", "\x1b[0m"),
    };
    out.push_str(&format!("{start}{mark} {share:>6.2}% {value:>value_width$} {} ", bar(share, bar_width)));
    out.extend(std::iter::repeat_n(' ', indent));
    let room = options.width.map_or(usize::MAX, |_| name_width - indent);
    out.push_str(&shortened(&printable(name), room));
    out.push_str(end);
    out.push('\n');
}

/// A bar with steps of an eighth of a column.
fn bar(share: f64, width: usize) -> String {
    const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let eighths = (share.abs().min(100.0) / 100.0 * (width * 8) as f64).round() as usize;
    let mut bar = "█".repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        bar.push(EIGHTHS[eighths % 8]);
    }
    let drawn = bar.chars().count();
    bar.extend(std::iter::repeat_n(' ', width.saturating_sub(drawn)));
    bar
}

/// The nodes on the way to the functions with the largest self values, and those functions' nodes themselves.
fn hottest(tree: &FlameTree) -> (HashSet<usize>, HashSet<usize>) {
    let is_function = |index: &usize| tree.folded_name() != Some(tree.nodes()[*index].name);
    let mut by_self: Vec<usize> = (1..tree.nodes().len()).filter(is_function).collect();
    let count = MARKED_PATHS.min(by_self.len());
    if count < by_self.len() {
        by_self.select_nth_unstable_by_key(count, |index| Reverse(tree.nodes()[*index].self_value));
    }
    let (mut path, mut leaf) = (HashSet::new(), HashSet::new());
    let is_hot = |index: &usize| percent(tree.nodes()[*index].self_value, tree.total()) >= HOT_PERCENT;
    for index in by_self.into_iter().take(count).filter(is_hot) {
        leaf.insert(index);
        let mut at = tree.nodes()[index].parent;
        while at != FlameTree::ROOT {
            path.insert(at);
            at = tree.nodes()[at].parent;
        }
    }
    (path, leaf)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: a tree with one hot path, drawn on a narrow terminal.
    /// Guarantee: the heaviest comes first, hot path and function are marked, no line is wider than asked.
    #[test]
    fn hot_path_is_marked() {
        let mut tree = FlameTree::default();
        tree.add_stack(["main", "serve", "parse"], 90);
        tree.add_stack(["main", "serve", "write"], 8);
        tree.add_stack(["main", "a::very::long::name::that::does::not::fit::into::sixty::columns\u{1b}[31m"], 2);
        let options = TextFlameOptions { width: Some(60), ..TextFlameOptions::default() };
        let text = text_flame(&tree, &options);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "total 100");
        assert!(lines[1].starts_with("> 100.00%") && lines[1].ends_with("main"), "{text}");
        assert!(lines[3].starts_with("*  90.00%") && lines[3].ends_with("    parse"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
        assert!(!text.contains('\u{1b}'));
        let whole = text_flame(&tree, &TextFlameOptions { width: None, ..options });
        assert!(whole.contains("a::very::long::name::that::does::not::fit::into::sixty::columns?"), "{whole}");
    }

    /// Scenario: more call paths than lines: deep ones under the largest caller, and the two hottest functions under others, one
    /// of them small beside its callers' siblings.
    /// Guarantee: the largest have lines wherever they stand, hot paths before all; what has none is counted, each call path once.
    #[test]
    fn lines_go_to_what_is_largest() {
        let mut tree = FlameTree::default();
        let deep: Vec<String> = (0..30).map(|depth| format!("deep{depth}")).collect();
        tree.add_stack(deep.iter().map(String::as_str), 4);
        for number in 0..28 {
            tree.add_stack(deep.iter().take(20).map(String::as_str).chain([format!("leaf{number}").as_str()]), 2);
        }
        tree.add_stack(["second", "hot"], 34);
        tree.add_stack(["third", "warm"], 6);
        let text = text_flame(&tree, &TextFlameOptions { max_lines: 24, ..TextFlameOptions::default() });
        assert!(text.contains("\n*  34.00%") && text.contains("\n*   6.00%"), "{text}");
        assert_eq!(text.lines().filter(|line| line.contains('%')).count(), 24, "{text}");
        // All of the 20 that are as large as what they call, of the 10 below them and the 28 beside those none.
        assert!(text.contains("deep19") && text.ends_with("  … 38 more call paths not shown\n"), "{text}");
    }

    /// Scenario: values of many digits and of a unit with a long name. Guarantee: columns stay straight and lines fit.
    #[test]
    fn long_values_fit() {
        let mut tree = FlameTree::default();
        let name = "shop::tax::".repeat(9);
        tree.add_stack(["main", name.as_str()], 1_234_567_890_123);
        tree.add_stack(["main", "small"], 12_345_678_901);
        for unit in ["count", "cache-misses"] {
            let options = TextFlameOptions { width: Some(80), unit: unit.to_owned(), ..TextFlameOptions::default() };
            let text = text_flame(&tree, &options);
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
            let bars: HashSet<usize> = text.lines().filter_map(|line| line.chars().position(|c| c == '█')).collect();
            assert_eq!(bars.len(), 1, "{text}");
        }
    }

    /// Scenario: a pruned tree, in which what was folded is the largest bar; a tree where `other` is a function.
    /// Guarantee: the folded bar is not marked as hot and its paths are counted below; the function is marked.
    #[test]
    fn what_was_folded_is_not_hot() {
        let mut tree = FlameTree::default();
        let small: Vec<String> = (0..10).map(|number| format!("small{number}")).collect();
        small.iter().for_each(|name| tree.add_stack(["main", name.as_str()], 9));
        tree.add_stack(["main", "parse"], 10);
        let (tree, pruned) = tree.pruned(2);
        let text = text_flame(&tree, &TextFlameOptions { folded: pruned.nodes, ..TextFlameOptions::default() });
        let line = |text: &str, name: &str| text.lines().find(|line| line.ends_with(name)).unwrap().to_owned();
        assert!(line(&text, "other").starts_with("   90.00%"), "{text}");
        assert!(line(&text, "parse").starts_with("*  10.00%"), "{text}");
        assert!(text.ends_with("  … 10 small call paths are folded into \"other\"\n"), "{text}");
        let mut tree = FlameTree::default();
        tree.add_stack(["main", "other"], 90);
        tree.add_stack(["main", "parse"], 10);
        let text = text_flame(&tree, &TextFlameOptions::default());
        assert!(line(&text, "other").starts_with("*  90.00%") && !text.contains("folded"), "{text}");
    }
}
