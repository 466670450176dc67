//! A flame graph as columns of numbers that a reader takes over as they are: a million nodes in seven megabytes.
//!
//! ```text
//! "HOTFLAME"  u32 length of the text  the text  zeros up to a multiple of 8
//! self values, names, numbers of children: each a column with a number for each node, padded to a multiple of 8
//! ```
//!
//! Everything is little endian. Nodes come level by level, each from left to right, so the numbers of children tell the
//! tree. The text is JSON: what is asked for besides, the `names`, their `frames`, and `packed`, which says how many nodes
//! there are and how many bytes a number of each column has: 1, 2 or 4 for unsigned integers, 8 for floats.

use hashbrown::HashMap;
use hotspan_model::FlameTree;
use serde_json::{Value, json};

use crate::flame_frames::frame_facts;

/// What such a file begins with.
pub const MAGIC: &[u8; 8] = b"HOTFLAME";

/// Writes a tree, with what else a reader is to be told: an object, to which the graph's own keys are added.
pub fn encode(tree: &FlameTree, mut told: Value) -> Vec<u8> {
    let nodes = tree.nodes();
    let children = tree.children_by_name();
    let mut order = Vec::with_capacity(nodes.len());
    if !tree.is_empty() {
        order.push(FlameTree::ROOT);
    }
    let mut next = 0;
    while let Some(node) = order.get(next) {
        order.extend_from_slice(&children[*node]);
        next += 1;
    }

    let mut names: Vec<String> = Vec::new();
    let mut known: HashMap<&str, usize> = HashMap::new();
    let mut name_of = |node: usize| {
        let name = if node == FlameTree::ROOT { "total" } else { tree.name(nodes[node].name) };
        *known.entry(name).or_insert_with(|| {
            names.push(name.to_owned());
            names.len() - 1
        }) as i64
    };
    let name_column: Vec<i64> = order.iter().map(|node| name_of(*node)).collect();
    let self_column: Vec<i64> = order.iter().map(|node| nodes[*node].self_value).collect();
    let children_column: Vec<i64> = order.iter().map(|node| children[*node].len() as i64).collect();
    let columns = [&self_column, &name_column, &children_column];
    let [self_bytes, name_bytes, children_bytes] = columns.map(|column| width(column));
    told["frames"] = json!(frame_facts(&names, &[tree]));
    told["names"] = json!(names);
    told["packed"] =
        json!({ "nodes": order.len(), "self": self_bytes, "name": name_bytes, "children": children_bytes });

    let text = told.to_string();
    let bytes_a_node = self_bytes + name_bytes + children_bytes;
    let mut bytes = Vec::with_capacity(text.len() + order.len() * bytes_a_node + 64);
    bytes.extend_from_slice(MAGIC);
    // Names are bounded by the nodes that are asked for; a text of four gigabytes can't come about.
    bytes.extend_from_slice(&u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes());
    bytes.extend_from_slice(text.as_bytes());
    pad(&mut bytes);
    for (column, width) in columns.into_iter().zip([self_bytes, name_bytes, children_bytes]) {
        write_column(&mut bytes, column, width);
        pad(&mut bytes);
    }
    bytes
}

/// The fewest bytes that hold every number of a column.
fn width(column: &[i64]) -> usize {
    let all = |most: i64| column.iter().all(|value| (0..=most).contains(value));
    let widths = [(1, i64::from(u8::MAX)), (2, i64::from(u16::MAX)), (4, i64::from(u32::MAX))];
    widths.into_iter().find(|(_, most)| all(*most)).map_or(8, |(width, _)| width)
}

fn write_column(bytes: &mut Vec<u8>, column: &[i64], width: usize) {
    for value in column {
        match width {
            8 => bytes.extend_from_slice(&(*value as f64).to_le_bytes()),
            _ => bytes.extend_from_slice(&value.to_le_bytes()[..width]),
        }
    }
}

fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(8), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(bytes: &[u8]) -> (Value, usize) {
        assert_eq!(&bytes[..8], MAGIC);
        let length = u32::from_le_bytes(bytes[8..12].try_into().unwrap()) as usize;
        (serde_json::from_slice(&bytes[12..12 + length]).unwrap(), (12 + length).next_multiple_of(8))
    }

    fn tree(stacks: &[(&[&str], i64)]) -> FlameTree {
        let mut tree = FlameTree::default();
        stacks.iter().for_each(|(stack, value)| tree.add_stack(stack.iter().copied(), *value));
        tree.sum_totals();
        tree
    }

    /// Scenario: a small tree in which a function has its own value and two callees.
    /// Guarantee: nodes come level by level from left to right; columns are as narrow as they can be, and padded.
    #[test]
    fn nodes_come_level_by_level() {
        let tree = tree(&[(&["main", "b"], 300), (&["main", "a"], 2), (&["main"], 1), (&["other", "a"], 7)]);
        let bytes = encode(&tree, json!({ "unit": "bytes" }));
        let (told, at) = text_of(&bytes);
        assert_eq!(told["unit"], "bytes");
        assert_eq!(told["names"], json!(["total", "main", "other", "a", "b"]));
        assert_eq!(told["frames"].as_array().unwrap().len(), 5);
        assert_eq!(told["packed"], json!({ "nodes": 6, "self": 2, "name": 1, "children": 1 }));
        let own: Vec<u16> =
            bytes[at..at + 12].chunks(2).map(|pair| u16::from_le_bytes(pair.try_into().unwrap())).collect();
        assert_eq!(own, [0, 1, 0, 2, 300, 7]);
        assert_eq!(bytes[at + 16..at + 24], [0, 1, 2, 3, 4, 3, 0, 0]);
        assert_eq!(bytes[at + 24..], [2, 2, 1, 0, 0, 0, 0, 0]);
    }

    /// Scenario: no samples; a value that no 32 bits hold; a value below zero.
    /// Guarantee: nothing is nothing; large and negative values are floats.
    #[test]
    fn columns_hold_what_they_must() {
        assert_eq!(text_of(&encode(&FlameTree::default(), json!({}))).0["packed"]["nodes"], 0);
        for value in [1 << 40, -5] {
            let bytes = encode(&tree(&[(&["main"], value)]), json!({}));
            let (told, at) = text_of(&bytes);
            assert_eq!(told["packed"]["self"], 8);
            assert_eq!(f64::from_le_bytes(bytes[at + 8..at + 16].try_into().unwrap()), value as f64);
        }
    }
}
