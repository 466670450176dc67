//! Laws that hold for any stacks.

use hotspan_formats::change_table::function_changes;
use hotspan_formats::diff_tree::DiffTree;
use hotspan_formats::flamebearer::Flamebearer;
use hotspan_formats::{DecodeOptions, collapsed, pyroscope_tree, speedscope};
use hotspan_model::FlameTree;
use proptest::prelude::*;

use crate::support::{assert_same_through_pprof, sums};

fn stacks() -> impl Strategy<Value = Vec<(Vec<String>, u32)>> {
    let name = prop_oneof!["[a-e]", "[a-z\\.:<>/ ]{1,12}", "\\PC{1,6}"];
    let name = name.prop_map(|name: String| name.replace([';', '\n', '\r'], "_").trim().to_owned());
    let name = name.prop_filter("a frame has a name", |name| !name.is_empty());
    prop::collection::vec((prop::collection::vec(name, 1..6), 1u32..1000), 0..24)
}

fn tree_of(stacks: &[(Vec<String>, u32)]) -> FlameTree {
    let mut tree = FlameTree::default();
    for (stack, value) in stacks {
        tree.add_stack(stack.iter().map(String::as_str), i64::from(*value));
    }
    tree
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Scenario: any stacks, written in one format and read again.
    /// Guarantee: the same sum of every stack, and the same again through pprof.
    #[test]
    fn written_and_read_again(stacks in stacks()) {
        let tree = tree_of(&stacks);
        let options = DecodeOptions::default();
        let text = collapsed::encode(&tree);
        let first = collapsed::decode(text.as_bytes(), &options).unwrap();
        assert_same_through_pprof(&first);
        let bytes = pyroscope_tree::encode_tree(&tree);
        let second = pyroscope_tree::decode_tree(&bytes, &options).unwrap();
        let json = speedscope::encode(&tree, "any", "count");
        let third = speedscope::decode(json.as_bytes(), &options).unwrap();
        let total: i64 = sums(&first, &first.profiles[0]).values().sum();
        prop_assert_eq!(total, tree.total());
        let expected = sums(&second, &second.profiles[0]);
        if !stacks.is_empty() {
            prop_assert_eq!(&sums(&third, &third.profiles[0]), &expected);
        }
        prop_assert_eq!(sums(&first, &first.profiles[0]), expected);
    }

    /// Scenario: any tree as a flame graph.
    /// Guarantee: each level is at most as wide as the whole, callees lie under their callers, totals are whole.
    #[test]
    fn flame_graphs_are_nested(stacks in stacks()) {
        let tree = tree_of(&stacks);
        let graph = Flamebearer::single(&tree);
        let mut above: Vec<(i64, i64)> = vec![(0, tree.total())];
        let mut own = 0;
        for level in &graph.levels {
            let mut end = 0;
            let mut bars = Vec::new();
            for bar in level.chunks(4) {
                prop_assert!(bar[0] >= 0 && bar[1] >= bar[2]);
                let start = end + bar[0];
                end = start + bar[1];
                prop_assert!(above.iter().any(|(from, to)| *from <= start && end <= *to));
                own += bar[2];
                bars.push((start, end));
            }
            above = bars;
        }
        prop_assert_eq!(own, tree.total());
    }

    /// Scenario: any two trees compared, and any tree with itself.
    /// Guarantee: each side keeps its totals; nothing differs from itself.
    #[test]
    fn differences(left in stacks(), right in stacks()) {
        let (left, right) = (tree_of(&left), tree_of(&right));
        let diff = DiffTree::new(&left, &right);
        prop_assert_eq!(diff.nodes()[0].left.total, left.total());
        prop_assert_eq!(diff.nodes()[0].right.total, right.total());
        let sum: i64 = diff.nodes().iter().map(|node| node.right.self_value).sum();
        prop_assert_eq!(sum, right.total());
        for change in function_changes(&DiffTree::new(&left, &left)) {
            prop_assert_eq!(change.left, change.right);
        }
    }
}
