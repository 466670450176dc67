//! What is known of the functions of a flame graph besides their names: Hotspan's addition to flamebearer.

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
    let trees: Vec<TellingNodes<'_>> = trees.iter().map(|tree| TellingNodes::of(tree)).collect();
    let facts_of = |name: &String| trees.iter().find_map(|tree| tree.facts_of(name)).unwrap_or_default();
    names.iter().map(facts_of).collect()
}

/// For each name of a tree, the node that tells most of the function: of those with a file the one with the largest self
/// value.
struct TellingNodes<'t> {
    tree: &'t FlameTree,
    by_name: Vec<Option<&'t FlameNode>>,
}

impl<'t> TellingNodes<'t> {
    fn of(tree: &'t FlameTree) -> Self {
        let mut by_name: Vec<Option<&FlameNode>> = vec![None; tree.name_count()];
        for node in tree.nodes().iter().skip(1) {
            let told = by_name[node.name as usize].get_or_insert(node);
            if told.file == 0 || node.self_value.max(0) > told.self_value.max(0) {
                *told = node;
            }
        }
        Self { tree, by_name }
    }

    fn facts_of(&self, name: &str) -> Option<FrameFacts> {
        let node = self.by_name[self.tree.find_name(name)? as usize]?;
        let origin = self.tree.origin(node.name);
        Some(FrameFacts {
            file: self.tree.name(node.file).to_owned(),
            line: node.line,
            kind: kind_name(origin.kind),
            module: self.tree.name(origin.module).to_owned(),
        })
    }
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
