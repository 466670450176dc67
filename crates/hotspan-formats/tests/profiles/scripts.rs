//! Text and JSON formats: collapsed, speedscope, perf script, V8, Pyroscope's tree and trie.

use hotspan_formats::profile_tree::flame_tree;
use hotspan_formats::{DecodeOptions, TextType, collapsed, decode_file, perf_script, pyroscope_tree, speedscope, v8};

use crate::support::{assert_same_through_pprof, fixture, flamebearer_of, profile, share_of, sums};

const CPU: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";

fn near(share: f64, expected: f64) -> bool {
    (share - expected).abs() < 0.15
}

/// Scenario: py-spy's collapsed output of a program that burns 3 to 1 in two functions.
/// Guarantee: the shares are right, and files and lines are taken out of the names.
#[test]
fn py_spy_collapsed() {
    let bytes = fixture("py-spy.collapsed");
    let options = DecodeOptions { sample_rate: Some(50), ..DecodeOptions::default() };
    let set = collapsed::decode(&bytes, &options).unwrap();
    let cpu = profile(&set, CPU);
    assert!(near(share_of(&set, cpu, "burn_hot"), 0.73) && near(share_of(&set, cpu, "burn_cool"), 0.24));
    assert!(set.paths.frames.iter().any(|frame| frame.function == "spin" && frame.file == "burn.py" && frame.line > 0));
    let total: i64 = cpu.samples.iter().map(|sample| sample.value).sum();
    assert!((1_500_000_000..2_500_000_000).contains(&total), "{total}");
    assert_same_through_pprof(&set);
}

/// Scenario: py-spy's speedscope output of the same program.
/// Guarantee: the shares are right, samples have their own times when the start is known.
#[test]
fn py_spy_speedscope() {
    let bytes = fixture("py-spy.speedscope.json");
    let from = 1_700_000_000_000_000_000;
    let options = DecodeOptions { from, ..DecodeOptions::default() };
    let set = speedscope::decode(&bytes, &options).unwrap();
    let cpu = profile(&set, CPU);
    assert!(near(share_of(&set, cpu, "burn_hot"), 0.75));
    assert!(cpu.samples.iter().all(|sample| sample.timed && sample.time >= from && sample.time < from + 3_000_000_000));
    assert_same_through_pprof(&set);
}

/// Scenario: perf script of a Go program. Guarantee: shares, kernel frames and threads are there, in nanoseconds.
#[test]
fn perf_script_text() {
    let bytes = fixture("perf-script.txt");
    let set = perf_script::decode(&bytes, &DecodeOptions::default()).unwrap();
    let cpu = profile(&set, CPU);
    assert!(near(share_of(&set, cpu, "main.burnInSpan"), 0.75), "{}", share_of(&set, cpu, "main.burnInSpan"));
    assert!(set.threads.iter().any(|thread| thread.name == "burn-go" && thread.id.is_some()));
    assert_same_through_pprof(&set);
}

/// Scenario: perf script of what was recorded without call stacks; one such sample among others that have a stack; and samples
/// of which not even the place is told.
/// Guarantee: a sample for each line, of the one function that the line names or else of none, with its period and time.
#[test]
fn perf_script_without_stacks() {
    let options = DecodeOptions { from: 1_700_000_000_000_000_000, ..DecodeOptions::default() };
    let bytes = fixture("perf-script-flat.txt");
    let set = perf_script::decode(&bytes, &options).unwrap();
    let cpu = profile(&set, CPU);
    assert_eq!(sums(&set, cpu)["main.spin:0"], 15 * 40_000_000);
    assert_eq!((cpu.samples.len(), sums(&set, cpu).len()), (16, 2));
    assert!(cpu.samples.iter().all(|sample| sample.timed) && cpu.samples[0].time < cpu.samples[15].time);
    assert!(set.threads.iter().any(|thread| thread.name == "burn-go" && thread.id.is_some()));
    assert_same_through_pprof(&set);

    let mixed =
        b"app 1 1.0: 10 cpu-clock:\n\t1 leaf (app)\n\t2 main (app)\n\n   app 1 2.0: 10 cpu-clock:  3 lone+0x1 (app)\n";
    let set = perf_script::decode(mixed, &options).unwrap();
    let expected = [("main:0;leaf:0".to_owned(), 10), ("lone:0".to_owned(), 10)];
    assert_eq!(sums(&set, &set.profiles[0]), expected.into_iter().collect());
    let placeless = b"     app  1 1.0: cpu-clock: \n     app  1 2.0: cpu-clock: \n";
    assert_eq!(perf_script::decode(placeless, &options).unwrap().sample_count(), 2);
}

/// Scenario: Node's `--cpu-prof`. Guarantee: shares from the times between samples, idle time only as wall time.
#[test]
fn node_cpu_profile() {
    let bytes = fixture("node.cpuprofile");
    let from = 1_700_000_000_000_000_000;
    let set = v8::decode_cpu(&bytes, &DecodeOptions { from, ..DecodeOptions::default() }).unwrap();
    let cpu = profile(&set, CPU);
    let wall = profile(&set, "wall:wall:nanoseconds:wall:nanoseconds");
    let (hot, cool) = (share_of(&set, cpu, "burnHot"), share_of(&set, cpu, "burnCool"));
    assert!(hot > 0.5 && near(hot / (hot + cool), 0.75), "{hot} {cool}");
    assert!(wall.samples.len() >= cpu.samples.len());
    assert!(cpu.samples.iter().all(|sample| sample.timed && sample.time >= from));
    assert!(set.paths.frames.iter().any(|frame| frame.function == "burnHot" && frame.file.ends_with("burn.js")));
    assert_same_through_pprof(&set);
}

/// Scenario: CPU profiles with samples that were written later than those after them, before the start and after the end.
/// Guarantee: a sample stands for the time until the next one by the clock, and all of them for no more than the recording.
#[test]
fn samples_of_v8_in_order_of_time() {
    let read = |samples: &str, deltas: &str| {
        let names = ["a", "b", "c", "d"].map(|name| format!(r#"{{"functionName":"{name}"}}"#));
        let nodes: Vec<_> =
            (1..).zip(names).map(|(id, frame)| format!(r#"{{"id":{id},"callFrame":{frame}}}"#)).collect();
        let text = format!(
            r#"{{"nodes":[{}],"startTime":1000000,"endTime":1004000,"samples":{samples},"timeDeltas":{deltas}}}"#,
            nodes.join(",")
        );
        let from = 1_700_000_000_000_000_000;
        let set = v8::decode_cpu(text.as_bytes(), &DecodeOptions { from, ..DecodeOptions::default() }).unwrap();
        let cpu = profile(&set, CPU);
        assert!(cpu.samples.is_sorted_by_key(|sample| sample.time) && cpu.samples[0].time >= from);
        sums(&set, cpu)
            .into_iter()
            .map(|(name, nanos)| format!("{name} {}", nanos / 1000))
            .collect::<Vec<_>>()
            .join(", ")
    };
    assert_eq!(read("[1,2,3,4]", "[0,2000,-1000,2000]"), "a:0 1000, b:0 1000, c:0 1000, d:0 1000");
    assert_eq!(read("[1,2,3,4]", "[-500,100,1000,1000]"), "b:0 600, c:0 1000, d:0 2400");
    assert_eq!(read("[1,2,3,4]", "[0,1000,5000,1000]"), "a:0 1000, b:0 5000, c:0 1000");
}

/// Scenario: Node's `--heap-prof`. Guarantee: what was kept is charged to the function that allocated it.
#[test]
fn node_heap_profile() {
    let bytes = fixture("node.heapprofile");
    let set = v8::decode_heap(&bytes, &DecodeOptions::default()).unwrap();
    let space = profile(&set, "memory:inuse_space:bytes:space:bytes");
    assert!(share_of(&set, space, "allocateKept") > 0.6);
    assert_same_through_pprof(&set);
}

/// Scenario: async-profiler's OTLP file, and Pyroscope's tree and trie. Guarantee: equal sums through pprof.
#[test]
fn other_formats_through_pprof() {
    let otlp = fixture("async-itimer.otlp");
    let set = hotspan_formats::decode_file(&otlp, &DecodeOptions::default()).unwrap();
    let cpu = profile(&set, CPU);
    assert!(near(share_of(&set, cpu, "Burn.burnHot"), 0.7), "{}", share_of(&set, cpu, "Burn.burnHot"));
    assert_same_through_pprof(&set);
    let options = DecodeOptions { text_type: TextType::from_app_name("shop.cpu", 100), ..DecodeOptions::default() };
    let tree = b"\x00\x00\x01\x04main\x00\x02\x01x\x03\x00\x01y\x05\x00";
    assert_same_through_pprof(&pyroscope_tree::decode_tree(tree, &options).unwrap());
    let trie = b"\x00\x00\x01\x05main;\x00\x02\x01x\x03\x00\x01y\x05\x00";
    assert_same_through_pprof(&pyroscope_tree::decode_trie(trie, &options).unwrap());
}

/// Scenario: a tree written and read back as Pyroscope's tree, as collapsed stacks, as speedscope and as flamebearer.
/// Guarantee: equal sums of every stack each time.
#[test]
fn trees_come_back() {
    let bytes = fixture("async-itimer.collapsed");
    let set = collapsed::decode(&bytes, &DecodeOptions::default()).unwrap();
    let tree = flame_tree(&set, &set.profiles);
    let expected = sums(&set, &set.profiles[0]);
    let tree_bytes = pyroscope_tree::encode_tree(&tree);
    let collapsed_text = collapsed::encode(&tree);
    let speedscope_text = speedscope::encode(&tree, "burn", "count");
    let exported = flamebearer_of("async-itimer.collapsed");
    let options = DecodeOptions::default();
    for again in [
        pyroscope_tree::decode_tree(&tree_bytes, &options).unwrap(),
        collapsed::decode(collapsed_text.as_bytes(), &options).unwrap(),
        speedscope::decode(speedscope_text.as_bytes(), &options).unwrap(),
        decode_file(&exported, &options).unwrap(),
    ] {
        assert_eq!(sums(&again, &again.profiles[0]), expected);
    }
}

/// Scenario: a trie as old agents send it, names cut in the middle, and stacks one a line.
/// Guarantee: stacks are put together from prefixes, counts become time by the sample rate.
#[test]
fn trie_and_lines() {
    let mut trie = vec![0, 0, 1];
    trie.extend([b"\x07main;se".as_slice(), &[0, 2], b"\x03rve", &[3, 0], b"\x02nd", &[5, 0]].concat());
    let options = DecodeOptions { text_type: TextType::from_app_name("shop.cpu", 100), ..DecodeOptions::default() };
    let set = pyroscope_tree::decode_trie(&trie, &options).unwrap();
    let cpu = profile(&set, CPU);
    let expected = [("main:0;send:0".to_owned(), 50_000_000), ("main:0;serve:0".to_owned(), 30_000_000)];
    assert_eq!(sums(&set, cpu), expected.into_iter().collect());

    let set = collapsed::decode_lines(b"a;b\na;b\na\n", &DecodeOptions::default()).unwrap();
    let expected = [("a:0;b:0".to_owned(), 2), ("a:0".to_owned(), 1)];
    assert_eq!(sums(&set, &set.profiles[0]), expected.into_iter().collect());
}

/// Scenario: files that are cut short or wrong. Guarantee: the error names the byte and what was expected.
#[test]
fn errors_name_the_place() {
    let options = DecodeOptions::default();
    let error = collapsed::decode(b"a;b 3\na;c x\n", &options).unwrap_err();
    let expected = "collapsed: at byte 10: expected a whole number at the end of the line, found \"x\"";
    assert_eq!(error.to_string(), expected);
    let error = pyroscope_tree::decode_tree(&[0, 0, 2, 1, b'a', 0, 0], &options).unwrap_err();
    assert!(error.to_string().contains("at byte 7"), "{error}");
    let bytes = fixture("node.cpuprofile");
    let error = v8::decode_cpu(&bytes[..bytes.len() / 2], &options).unwrap_err();
    assert_eq!(error.offset, bytes.len() as u64 / 2, "{error}");
    let bytes = fixture("py-spy.speedscope.json");
    let error = speedscope::decode(&bytes[..1000], &options).unwrap_err();
    assert!(error.offset >= 990 && error.offset <= 1000, "{error}");
    assert!(perf_script::decode(b"what is this\n", &options).unwrap_err().to_string().contains("a line such as"));
}
