//! What is known of the functions of a flame graph besides their names: Hotspan's addition to flamebearer.

use hashbrown::HashMap;
use hotspan_model::flame::FlameNode;
use hotspan_model::{FlameTree, FrameKind};
use serde::Serialize;

/// A function: where it stands and where it comes from. What is not known is left out.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct FrameFacts {
    /// The file.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub file: String,
    /// The line that carries the most.
    #[serde(skip_serializing_if = "is_zero")]
    pub line: u32,
    /// What kind of code it is.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub kind: &'static str,
    /// The binary or library.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub module: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks this way")]
fn is_zero(line: &u32) -> bool {
    *line == 0
}

/// The facts of each name, in the order of `names`; those of a name that no tree has are empty. Of several trees, the
/// first that knows a function tells.
pub fn frame_facts(names: &[String], trees: &[&FlameTree]) -> Vec<FrameFacts> {
    let mut known: HashMap<&str, (&FlameTree, &FlameNode)> = HashMap::with_capacity(names.len());
    for tree in trees {
        // The node that tells most of each function: of those with a file the one with the largest self value.
        let mut telling: HashMap<u32, &FlameNode> = HashMap::new();
        for node in tree.nodes().iter().skip(1) {
            let told = telling.entry(node.name).or_insert(node);
            if told.file == 0 || node.self_value.max(0) > told.self_value.max(0) {
                *told = node;
            }
        }
        for (name, node) in telling {
            known.entry(tree.name(name)).or_insert((tree, node));
        }
    }
    let facts_of = |name: &String| {
        let Some((tree, node)) = known.get(name.as_str()) else { return FrameFacts::default() };
        let origin = tree.origin(node.name);
        FrameFacts {
            file: tree.name(node.file).to_owned(),
            line: node.line,
            kind: kind_name(origin.kind),
            module: tree.name(origin.module).to_owned(),
        }
    };
    names.iter().map(facts_of).collect()
}

/// A kind as the page and OTLP name it; empty if not known.
fn kind_name(kind: FrameKind) -> &'static str {
    match kind {
        FrameKind::Unknown => "",
        FrameKind::Native => "native",
        FrameKind::Kernel => "kernel",
        FrameKind::Managed => "managed",
        FrameKind::Jit => "jit",
        FrameKind::Inlined => "inlined",
        FrameKind::Runtime => "runtime",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: a function that is called from two places, one without anything known, a name that is no function.
    /// Guarantee: facts stand at the name's place; the heaviest line counts; what is not known is left out of JSON.
    #[test]
    fn facts_stand_beside_names() {
        let mut tree = FlameTree::default();
        tree.add_stack(["main", "parse"], 9);
        tree.add_stack(["parse"], 2);
        let file = tree.intern("tax.go");
        tree.place(2, file, 112, 9);
        tree.place(3, file, 7, 2);
        let parse = tree.intern("parse");
        let shop = tree.intern("shop");
        tree.describe(parse, FrameKind::Native, shop);
        let names = ["total", "parse", "main"].map(str::to_owned);
        let facts = serde_json::to_value(frame_facts(&names, &[&tree])).unwrap();
        let expected = r#"[{},{"file":"tax.go","line":112,"kind":"native","module":"shop"},{}]"#;
        assert_eq!(facts, serde_json::from_str::<serde_json::Value>(expected).unwrap());
    }
}
