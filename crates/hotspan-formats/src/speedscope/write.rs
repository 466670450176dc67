//! speedscope out.

use hashbrown::HashMap;
use hotspan_model::FlameTree;
use hotspan_model::attribute::write_json_string;

use super::SCHEMA;

/// Writes a tree as one sampled profile: a sample for each call path with a value of its own.
pub fn encode(tree: &FlameTree, name: &str, unit: &str) -> String {
    let unit = match unit {
        "nanoseconds" | "microseconds" | "milliseconds" | "seconds" | "bytes" => unit,
        _ => "none",
    };
    let mut frames = String::new();
    let mut index: HashMap<(u32, u32), usize> = HashMap::new();
    let mut frame_of: Vec<usize> = vec![0];
    for node in &tree.nodes()[1..] {
        let next = index.len();
        let frame = *index.entry((node.name, node.file)).or_insert_with(|| {
            frames.push_str(if next == 0 { "{\"name\":" } else { ",{\"name\":" });
            write_json_string(tree.name(node.name), &mut frames);
            if node.file != 0 {
                frames.push_str(",\"file\":");
                write_json_string(tree.name(node.file), &mut frames);
            }
            frames.push('}');
            next
        });
        frame_of.push(frame);
    }
    let (mut samples, mut weights) = (String::new(), String::new());
    let mut stack = Vec::new();
    for (at, node) in tree.nodes().iter().enumerate() {
        if node.self_value == 0 {
            continue;
        }
        stack.clear();
        let mut up = at;
        while up != FlameTree::ROOT {
            stack.push(frame_of[up].to_string());
            up = tree.nodes()[up].parent;
        }
        stack.reverse();
        if !weights.is_empty() {
            samples.push(',');
            weights.push(',');
        }
        samples.push('[');
        samples.push_str(&stack.join(","));
        samples.push(']');
        weights.push_str(&node.self_value.to_string());
    }
    let mut quoted = String::new();
    write_json_string(name, &mut quoted);
    format!(
        "{{\"$schema\":\"{SCHEMA}\",\"exporter\":\"hotspan\",\"name\":{quoted},\"activeProfileIndex\":0,\
         \"shared\":{{\"frames\":[{frames}]}},\"profiles\":[{{\"type\":\"sampled\",\"name\":{quoted},\
         \"unit\":\"{unit}\",\"startValue\":0,\"endValue\":{},\"samples\":[{samples}],\"weights\":[{weights}]}}]}}",
        tree.total()
    )
}
