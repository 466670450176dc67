//! Flame graphs as one SVG file that answers clicks and searches without anything else.

use std::fmt::Write as _;
use std::str::FromStr;

use hotspan_model::FlameTree;
use hotspan_model::flame::{Children, OTHER};

use crate::change_table::FunctionChange;
use crate::diff_tree::{DiffTree, Presence};
use crate::top_table::place_text;
use crate::value_text::{counted, percent, rate_text, value_text};

/// How to draw.
#[derive(Debug, Clone)]
pub struct SvgOptions {
    /// Heading.
    pub title: String,
    /// Width in pixels.
    pub width: u32,
    /// Unit of the values.
    pub unit: String,
    /// Bars narrower than this many pixels are left out; zooming can't bring them back.
    pub min_width: f64,
    /// Whose values decide how wide a bar of a comparison is.
    pub layout: DiffLayout,
    /// Call paths that pruning has folded into `other`; said beside the graph.
    pub folded: u64,
}

/// Which side of a comparison the widths come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DiffLayout {
    /// The baseline: shows what vanished.
    Left,
    /// What is compared with it: shows what is new.
    Right,
    /// The sum of both: shows everything.
    #[default]
    Both,
}

impl Default for SvgOptions {
    fn default() -> Self {
        let (title, unit) = (String::from("Flame graph"), String::from("count"));
        Self { title, width: 1200, unit, min_width: 0.2, layout: DiffLayout::Both, folded: 0 }
    }
}

const ROW: usize = 17;
const TOP: usize = 46;
const SCRIPT: &str = include_str!("svg_script.js");

/// Draws one tree.
pub fn flame_svg(tree: &FlameTree, options: &SvgOptions) -> String {
    let nodes = tree.nodes();
    let total = tree.total();
    draw(&tree.children_by_name(), options, |index| {
        let node = &nodes[index];
        let name = if index == 0 { "all" } else { tree.name(node.name) };
        let place = match place_text(tree.name(node.file), node.line) {
            place if place.is_empty() => place,
            place => format!("\n{place}"),
        };
        let (value, own) = (value_text(node.total, &options.unit), value_text(node.self_value, &options.unit));
        let share = percent(node.total, total);
        Bar {
            width: node.total.max(0) as f64,
            own: node.self_value.max(0) as f64,
            name,
            title: format!("{name}\n{value} ({share:.2}%), self {own}{place}"),
            fill: warm(name),
        }
    })
}

impl FromStr for DiffLayout {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "baseline" | "left" => Ok(Self::Left),
            "comparison" | "right" => Ok(Self::Right),
            "both" => Ok(Self::Both),
            other => Err(format!("layout {other:?} is not known; use baseline, comparison or both")),
        }
    }
}

/// Draws a comparison: red is more on the right, blue is less, strong green is new, violet has vanished. Values are those
/// of one unit of what the tree is measured by, as the table of functions has them.
pub fn diff_svg(tree: &DiffTree, options: &SvgOptions) -> String {
    let nodes = tree.nodes();
    let measure = tree.measure();
    draw(&tree.children_by_name(), options, |index| {
        let node = &nodes[index];
        let name = if index == 0 { "all" } else { tree.name(index) };
        let total = measure.rates(node.left.total, node.right.total);
        let own = measure.rates(node.left.self_value, node.right.self_value);
        let drawn = |(left, right): (f64, f64)| match options.layout {
            DiffLayout::Left => left,
            DiffLayout::Right => right,
            DiffLayout::Both => left + right,
        };
        let mark = match node.presence() {
            Presence::Both => "",
            Presence::New => "\nnew",
            Presence::Vanished => "\nvanished",
        };
        let (before, after) = (rate_text(total.0, &options.unit), rate_text(total.1, &options.unit));
        let relative = FunctionChange::relative(total).map(|change| format!(" ({:+.1}%)", change * 100.0));
        Bar {
            width: drawn(total).max(0.0),
            own: drawn(own).max(0.0),
            name,
            title: format!("{name}\n{before} -> {after}{}{mark}", relative.unwrap_or_default()),
            fill: change_colour(node.presence(), total),
        }
    })
}

struct Bar<'b> {
    width: f64,
    own: f64,
    name: &'b str,
    title: String,
    fill: String,
}

fn draw<'b>(children: &Children, options: &SvgOptions, bar: impl Fn(usize) -> Bar<'b>) -> String {
    let width = f64::from(options.width.max(200));
    let root = bar(0).width;
    let scale = if root > 0.0 { (width - 20.0) / root } else { 0.0 };
    let mut bars = String::new();
    let mut deepest = 0;
    let mut left_out = 0usize;
    let mut stack = vec![(0, 0, 0.0)];
    while let Some((index, depth, from)) = stack.pop() {
        let this = bar(index);
        let bar_width = this.width * scale;
        if bar_width < options.min_width {
            left_out += 1;
            continue;
        }
        deepest = deepest.max(depth);
        let (x, y) = (10.0 + from * scale, TOP + depth * ROW);
        // Writing into a String can't fail.
        let _ = write!(bars, "<g data-x=\"{x:.2}\" data-w=\"{bar_width:.2}\"><title>{}</title>", escaped(&this.title));
        let _ = write!(
            bars,
            "<rect x=\"{x:.2}\" y=\"{y}\" width=\"{bar_width:.2}\" height=\"{}\" fill=\"{}\"/>",
            ROW - 1,
            this.fill
        );
        let label = fitting(this.name, bar_width);
        let _ = writeln!(bars, "<text x=\"{:.2}\" y=\"{}\">{}</text></g>", x + 3.0, y + 12, escaped(&label));
        let mut next = from + this.own;
        for child in &children[index] {
            stack.push((*child, depth + 1, next));
            next += bar(*child).width;
        }
    }
    let height = TOP + (deepest + 2) * ROW;
    let mut note = String::from(if root > 0.0 { "click to zoom, / to search" } else { "no samples" });
    if root > 0.0 && left_out > 0 {
        let _ = write!(note, " · {} too narrow to draw", counted(left_out as u64, "bar"));
    }
    if options.folded > 0 {
        let _ = write!(note, " · {} folded into \"{OTHER}\"", counted(options.folded, "small call path"));
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"ui-monospace,monospace\" font-size=\"12\">\n\
         <style>rect{{stroke:none}}g{{cursor:pointer}}g:hover rect{{stroke:#000;stroke-width:.5}}\
         text{{pointer-events:none;fill:#1a1a1a}}.dim rect{{opacity:.35}}.hit rect{{fill:#c05cff}}\
         #search,#reset{{cursor:pointer;fill:#0550ae;pointer-events:all}}</style>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fffdf8\"/>\n\
         <text x=\"10\" y=\"20\" font-size=\"15\">{}</text>\n\
         <text x=\"10\" y=\"37\" id=\"note\">{}</text>\n\
         <text id=\"reset\" x=\"{}\" y=\"20\">reset</text><text id=\"search\" x=\"{}\" y=\"20\">search</text>\n\
         <g id=\"bars\">\n{bars}</g>\n<script><![CDATA[\n{SCRIPT}]]></script>\n</svg>\n",
        escaped(&options.title),
        escaped(&note),
        width - 110.0,
        width - 60.0,
    )
}

/// As much of a name as fits; the script does the same after zooming.
fn fitting(name: &str, width: f64) -> String {
    let room = ((width - 6.0) / 7.2).max(0.0) as usize;
    if room < 3 {
        String::new()
    } else if name.chars().count() <= room {
        name.to_owned()
    } else {
        name.chars().take(room - 1).chain("…".chars()).collect()
    }
}

pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push('\n'),
            // XML allows no control characters, not even escaped.
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('?'),
            c => out.push(c),
        }
    }
    out
}

/// A warm colour that depends on the name alone, so that a function has the same one in every graph.
fn warm(name: &str) -> String {
    let hash = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    format!("hsl({} {}% {}%)", 10 + hash % 45, 75 + (hash >> 8) % 20, 62 + (hash >> 16) % 12)
}

fn change_colour(presence: Presence, (left, right): (f64, f64)) -> String {
    match presence {
        Presence::New => "hsl(130 60% 65%)".to_owned(),
        Presence::Vanished => "hsl(265 75% 75%)".to_owned(),
        Presence::Both => {
            // Half of it gone, or twice as much, is full strength.
            let change = if left + right > 0.0 { (right - left) / (right + left) * 3.0 } else { 0.0 };
            let strength = change.abs().min(1.0);
            format!(
                "hsl({} {:.0}% {:.0}%)",
                if change >= 0.0 { 5 } else { 215 },
                80.0 * strength,
                90.0 - 25.0 * strength
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Measure;

    /// Scenario: names that hold markup and control characters.
    /// Guarantee: they are text in the file, and nothing else.
    #[test]
    fn names_cannot_break_out() {
        let mut tree = FlameTree::default();
        tree.add_stack(["<script>alert(1)</script>", "a&b\u{0}"], 3);
        let svg = flame_svg(&tree, &SvgOptions::default());
        assert!(svg.contains("&lt;script&gt;alert(1)&lt;/script&gt;") && svg.contains("a&amp;b?"));
        assert_eq!(svg.matches("<script>").count(), 1);
        assert_eq!(svg.matches("<g ").count(), 4);
        assert!(!svg.contains("folded"));
        let pruned = flame_svg(&tree, &SvgOptions { folded: 7, ..SvgOptions::default() });
        assert!(pruned.contains("7 small call paths folded into &quot;other&quot;"), "{pruned}");
    }

    /// Scenario: a comparison with a new and a vanished function. Guarantee: both are marked.
    #[test]
    fn new_and_vanished_are_marked() {
        let (mut left, mut right) = (FlameTree::default(), FlameTree::default());
        left.add_stack(["main", "old"], 1);
        right.add_stack(["main", "young"], 1);
        let svg = diff_svg(&DiffTree::new(&left, &right), &SvgOptions::default());
        assert!(svg.contains("\nnew</title>") && svg.contains("\nvanished</title>"));
        let right_only = SvgOptions { layout: DiffLayout::Right, ..SvgOptions::default() };
        assert!(!diff_svg(&DiffTree::new(&left, &right), &right_only).contains("vanished</title>"));
    }
    /// Scenario: 200 small functions, the same in ten times as long.
    /// Guarantee: each and all of them are told and drawn as a tenth, none as nothing.
    #[test]
    fn comparisons_are_drawn_by_the_measure() {
        let mut tree = FlameTree::default();
        for number in 0..200 {
            tree.add_stack(["main", format!("h{number:03}").as_str()], 4);
        }
        let measure = Measure { left: 60.0, right: 600.0, noun: "second" };
        let svg = diff_svg(&DiffTree::new(&tree, &tree).measured_by(measure), &SvgOptions::default());
        assert!(svg.contains("all\n13.33 -&gt; 1.33 (-90.0%)</title>"), "{svg}");
        assert!(svg.contains("h000\n0.07 -&gt; 0.01 (-90.0%)</title>"), "{svg}");
        let right = SvgOptions { layout: DiffLayout::Right, ..SvgOptions::default() };
        let svg = diff_svg(&DiffTree::new(&tree, &tree).measured_by(measure), &right);
        assert_eq!((svg.matches("<g data-x").count(), svg.matches("data-w=\"5.90\"").count()), (202, 200), "{svg}");
    }
}
