//! A flame graph as one HTML page that needs nothing else: the graph, the hottest functions, and where to get more.

use std::fmt::Write as _;

use hotspan_model::FlameTree;

use crate::svg::{SvgOptions, escaped, flame_svg};
use crate::top_table::top_functions;
use crate::value_text::{percent, value_text};

/// What stands around the graph.
#[derive(Debug, Clone, Default)]
pub struct PageOptions {
    /// Heading.
    pub title: String,
    /// Unit of the values.
    pub unit: String,
    /// What the numbers rest on, in one line.
    pub evidence: String,
    /// Other forms of the same answer: name and address.
    pub links: Vec<(String, String)>,
    /// What there is instead if there are no samples, in lines.
    pub if_empty: String,
}

/// Functions in the table under the graph.
const TOP_FUNCTIONS: usize = 20;

const STYLE: &str = "body{font:14px/1.5 system-ui,sans-serif;margin:1.5rem auto;max-width:1240px;padding:0 1rem;\
background:#fffdf8;color:#1a1a1a}h1{font-size:1.2rem;margin:0;overflow-wrap:anywhere}p{margin:.3rem 0;color:#555}\
svg{width:100%;height:auto}table{border-collapse:collapse}\
td,th{padding:.1rem .8rem .1rem 0;text-align:right;vertical-align:baseline;white-space:nowrap}\
td:last-child,th:last-child{text-align:left;font-family:ui-monospace,monospace;overflow-wrap:anywhere;\
white-space:normal}a{color:#0550ae}small{color:#777}";

/// Writes the page. What is drawn may be pruned; functions are summed over the whole tree.
pub fn flame_page(drawn: &FlameTree, tree: &FlameTree, options: &PageOptions) -> String {
    let title = escaped(&options.title);
    let total = value_text(tree.total(), &options.unit);
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">\n<title>{title}</title>\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<style>{STYLE}</style>\n\
         <h1>{title}</h1>\n<p>{} in all · {}</p>\n",
        escaped(&total),
        escaped(&options.evidence)
    );
    if !options.links.is_empty() {
        page.push_str("<p>Also as");
        for (name, address) in &options.links {
            // Writing into a String can't fail.
            let _ = write!(page, " <a href=\"{}\">{}</a>", escaped(address), escaped(name));
        }
        page.push_str("</p>\n");
    }
    if tree.total() == 0 {
        for line in std::iter::once("No samples.").chain(options.if_empty.lines()) {
            let _ = writeln!(page, "<p>{}</p>", escaped(line));
        }
        page.push_str("</html>\n");
        return page;
    }
    let svg = SvgOptions { title: options.title.clone(), unit: options.unit.clone(), ..SvgOptions::default() };
    page.push_str(&flame_svg(drawn, &svg));
    page.push_str("<table>\n<tr><th>self<th><th>total<th><th>function</tr>\n");
    for row in top_functions(tree).iter().take(TOP_FUNCTIONS) {
        let _ = writeln!(
            page,
            "<tr><td>{}<td>{:.2}%<td>{}<td>{:.2}%<td>{} <small>{}</small></tr>",
            escaped(&value_text(row.self_value, &options.unit)),
            percent(row.self_value, tree.total()),
            escaped(&value_text(row.total, &options.unit)),
            percent(row.total, tree.total()),
            escaped(&row.name),
            escaped(&row.place),
        );
    }
    page.push_str("</table>\n</html>\n");
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: a page about functions whose names hold markup, and one about nothing.
    /// Guarantee: names, evidence and links are text; the empty page says so.
    #[test]
    fn pages_stand_alone() {
        let mut tree = FlameTree::default();
        tree.add_stack(["main", "<img src=x onerror=alert(1)>"], 7);
        let options = PageOptions {
            title: "shop <b>".into(),
            unit: "count".into(),
            evidence: "7 samples".into(),
            links: vec![("pprof".into(), "?a=\"><script>&format=pprof".into())],
            if_empty: "services that have some: <shop>".into(),
        };
        let page = flame_page(&tree, &tree, &options);
        assert!(page.contains("<svg") && page.contains("7 samples") && page.contains("100.00%"));
        assert_eq!((page.matches("<script>").count(), page.matches("<img").count()), (1, 0), "{page}");
        assert!(!page.contains("http://") || page.matches("http").count() == page.matches("http://www.w3.org").count());
        let nothing = FlameTree::default();
        let page = flame_page(&nothing, &nothing, &options);
        assert!(page.contains("No samples") && page.contains("<p>services that have some: &lt;shop&gt;</p>"), "{page}");
    }
}
