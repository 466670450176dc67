//! Stacks deeper than allowed, in every format.

use hotspan_formats::{
    DecodeOptions, Limits, collapsed, flamebearer, jfr, perf_script, pyroscope_tree, speedscope, v8,
};
use hotspan_model::ProfileSet;

use crate::jfr_writer::{Field, JfrChunk, METHOD, STACK_TRACE, SYMBOL, number, stack_of, text_of};
use crate::support::sums;

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// A JFR recording with one sample of the five frames.
fn recording() -> Vec<u8> {
    let mut chunk = JfrChunk::new(1_700_000_000_000_000_000);
    chunk.constants(SYMBOL, (0u64..5).map(|at| (10 + at, text_of(NAMES[at as usize]))));
    chunk.constants(METHOD, (0u64..5).map(|at| (10 + at, [number(0), number(10 + at)].concat())));
    chunk.constants(STACK_TRACE, [(5, stack_of(&[14, 13, 12, 11, 10]))]);
    let fields = [("startTime", Field::Long(5)), ("stackTrace", Field::Constant(STACK_TRACE, 5))];
    chunk.event("jdk.ExecutionSample", &fields);
    chunk.finish()
}

/// Each format's file with one stack of five frames.
fn read_all(options: &DecodeOptions) -> Vec<(&'static str, ProfileSet<'static>)> {
    let frames = |part: &dyn Fn(&str) -> String| NAMES.map(part).join(",");
    let perf: String = NAMES.iter().rev().map(|name| format!("\t10 {name} (app)\n")).collect();
    let perf = format!("app 1/1 [000] 1.0: 10 cpu-clock:\n{perf}\n");
    let scope = format!(
        r#"{{"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{{"frames":[{}]}},"profiles":[{{"type":"sampled","name":"p","unit":"none","samples":[[0,1,2,3,4]],"weights":[1]}},{{"type":"evented","unit":"bytes","events":[{},{}]}}]}}"#,
        frames(&|name| format!(r#"{{"name":"{name}"}}"#)),
        [0, 1, 2, 3, 4].map(|at| format!(r#"{{"type":"O","at":1,"frame":{at}}}"#)).join(","),
        [4, 3, 2, 1, 0].map(|at| format!(r#"{{"type":"C","at":2,"frame":{at}}}"#)).join(","),
    );
    let tree: Vec<u8> = [0, 0, 1]
        .into_iter()
        .chain(NAMES.iter().enumerate().flat_map(|(at, name)| {
            let last = at + 1 == NAMES.len();
            [1, name.as_bytes()[0], u8::from(last), u8::from(!last)]
        }))
        .collect();
    let trie = b"\0\0\x01\x09a;b;c;d;e\x01\0";
    let levels: Vec<String> = (1..=5).map(|at| format!("[0,1,{},{at}]", i32::from(at == 5))).collect();
    let flames = format!(
        r#"{{"flamebearer":{{"names":["total",{}],"levels":[[0,1,0,0],{}]}}}}"#,
        frames(&|name| format!("\"{name}\"")),
        levels.join(",")
    );
    let node = |at: usize| format!(r#""id":{at},"callFrame":{{"functionName":"{}"}}"#, NAMES[at]);
    let nodes: Vec<String> = (0..5).map(|at| format!(r#"{{{},"children":[{}]}}"#, node(at), at + 1)).collect();
    let cpu = format!(r#"{{"nodes":[{}],"startTime":0,"endTime":9,"samples":[4],"timeDeltas":[1]}}"#, nodes.join(","));
    let mut head = format!(r#"{{{},"selfSize":1}}"#, node(4));
    for at in (0..4).rev() {
        head = format!(r#"{{{},"selfSize":0,"children":[{head}]}}"#, node(at));
    }
    let heap = format!(r#"{{"head":{head}}}"#);
    let own = hotspan_formats::into_owned;
    vec![
        ("collapsed", own(collapsed::decode(b"a;b;c;d;e 1\n", options).unwrap())),
        ("lines", own(collapsed::decode_lines(b"a;b;c;d;e\n", options).unwrap())),
        ("perf", own(perf_script::decode(perf.as_bytes(), options).unwrap())),
        ("speedscope", own(speedscope::decode(scope.as_bytes(), options).unwrap())),
        ("tree", own(pyroscope_tree::decode_tree(&tree, options).unwrap())),
        ("trie", own(pyroscope_tree::decode_trie(trie, options).unwrap())),
        ("flamebearer", own(flamebearer::decode(flames.as_bytes(), options).unwrap())),
        ("cpuprofile", own(v8::decode_cpu(cpu.as_bytes(), options).unwrap())),
        ("heapprofile", own(v8::decode_heap(heap.as_bytes(), options).unwrap())),
        ("jfr", jfr::decode(&recording(), None, options).unwrap()),
    ]
}

/// Scenario: one stack of five frames in each format, where two, five or more are allowed.
/// Guarantee: two stay at the leaf below a frame that says so, and three are counted for each stack; five stay as they are.
#[test]
fn the_leaf_side_stays_in_every_format() {
    for (max_stack_depth, expected, cut) in [(2, "[truncated];d;e", 3), (5, "a;b;c;d;e", 0), (9, "a;b;c;d;e", 0)] {
        let limits = Limits { max_stack_depth, ..Limits::default() };
        let options = DecodeOptions { limits, ..DecodeOptions::default() };
        for (name, set) in read_all(&options) {
            // Lines of code are beside the point.
            let stacks: Vec<String> = set
                .profiles
                .iter()
                .flat_map(|profile| sums(&set, profile).into_keys())
                .map(|stack| {
                    stack.split(';').map(|frame| frame.split(':').next().unwrap()).collect::<Vec<_>>().join(";")
                })
                .collect();
            assert!(!stacks.is_empty(), "{name}");
            assert!(stacks.iter().all(|stack| stack == expected), "{name}: {stacks:?}");
            let stacks = if name == "speedscope" { 2 } else { 1 };
            assert_eq!(set.cut_frames, cut * stacks, "{name}");
        }
    }
}
