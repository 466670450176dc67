//! What perf script writes beside samples and frames, if it is asked to.

use std::collections::BTreeMap;

use hotspan_formats::{DecodeOptions, Fault, FileFormat, decode_file, detect};
use hotspan_model::{FrameKind, ProfileSet};

use crate::support::{assert_same_through_pprof, profile, sums};

const CPU: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";

fn read(text: &str) -> ProfileSet<'_> {
    assert_eq!(detect(text.as_bytes()), Some(FileFormat::PerfScript), "{text}");
    decode_file(text.as_bytes(), &DecodeOptions::default()).unwrap()
}

fn stacks<const N: usize>(expected: [(&str, i64); N]) -> BTreeMap<String, i64> {
    expected.map(|(stack, value)| (stack.to_owned(), value)).into_iter().collect()
}

/// Binary and kind of each function.
fn places<'s>(set: &'s ProfileSet<'_>) -> BTreeMap<String, (String, FrameKind, String)> {
    let place = |frame: hotspan_model::Frame<'s>| {
        (frame.function.into_owned(), (frame.mapping.into_owned(), frame.kind, frame.file.into_owned()))
    };
    set.paths.frames.iter().map(place).collect()
}

/// Scenario: `perf script -F +srcline` of stacks with inlined functions, the kernel, and places that are not known; and of what was
/// recorded without stacks, where perf pads the names of commands.
/// Guarantee: files and lines are those of the frames above them, and no frames of their own.
#[test]
fn lines_of_the_source() {
    let with_stacks = "p 1    10.000001:    1000000 cpu-clock: \n\
        \tffffffff81 schedule+0x23 ([kernel.kallsyms])\n  [kernel.kallsyms][ffffffff81]\n\
        \t            11a5 inl+0x25\n  p.c:3 (inlined)\n\
        \t            11a5 burn+0x25 (/tmp/p)\n  p.c:4\n\
        \t            1063 main+0x23 (/tmp/p)\n  /code of/p.c:5\n\
        \t            10b0 _start+0x20 (/tmp/p)\n  ??:0\n\n";
    let set = read(with_stacks);
    let expected = stacks([("_start:0;main:5;burn:4;inl:3;schedule:0", 1_000_000)]);
    assert_eq!(sums(&set, profile(&set, CPU)), expected);
    let places = places(&set);
    let place = |binary: &str, kind, file: &str| (binary.to_owned(), kind, file.to_owned());
    assert_eq!(places["main"], place("/tmp/p", FrameKind::Native, "/code of/p.c"));
    assert_eq!(places["inl"], place("/tmp/p", FrameKind::Inlined, "p.c"));
    assert_eq!(places["schedule"], place("[kernel.kallsyms]", FrameKind::Kernel, ""));
    assert_same_through_pprof(&set);

    let flat = "               p 1  1.5:    250000 cpu-clock:      55bd burn+0x1e (/tmp/p)\n  p.c:3\n\
                \x20              p 1  2.5:    250000 cpu-clock:  ffffffff81 schedule+0x32 ([kernel.kallsyms])\n\
                \x20 [kernel.kallsyms][ffffffff81]\n\
                \x20              p 1  3.5:    250000 cpu-clock:      55be burn+0x1f (/tmp/p)\n  p.c:3\n";
    let set = read(flat);
    assert_eq!(sums(&set, profile(&set, CPU)), stacks([("burn:3", 500_000), ("schedule:0", 250_000)]));
    // Where a stack is cut, what lies beyond has no place either.
    let limits = hotspan_formats::Limits { max_stack_depth: 2, ..Default::default() };
    let set = decode_file(with_stacks.as_bytes(), &DecodeOptions { limits, ..Default::default() }).unwrap();
    assert_eq!(sums(&set, profile(&set, CPU)), stacks([("[truncated]:0;inl:3;schedule:0", 1_000_000)]));
}

/// Scenario: inlined functions below the one that they are part of, and one that perf names nothing around, in two stacks that
/// share their lines but not the function around them.
/// Guarantee: the first have the binary of that function; the last is a function without a binary; no binary is called inlined.
#[test]
fn inlined_functions() {
    let set = read(
        "p 1  1.5:    10 cpu-clock: \n\
         \t 11a5 deep+0x25 (inlined)\n\t 11a5 inl+0x25 (inlined)\n\t 11a5 burn+0x25 (/tmp/p)\n\
         \t 27304 start_main+0x84 (inlined)\n\t 10b0 _start+0x20 (/tmp/p)\n\n\
         p 1  2.5:    10 cpu-clock: \n\t 11a5 deep+0x25 (inlined)\n\t 11a5 burn+0x25 (/tmp/libq.so)\n\n",
    );
    let expected = stacks([("_start:0;start_main:0;burn:0;inl:0;deep:0", 10), ("burn:0;deep:0", 10)]);
    assert_eq!(sums(&set, profile(&set, CPU)), expected);
    let mut of_inlined: Vec<_> = set
        .paths
        .frames
        .iter()
        .filter(|frame| frame.kind == FrameKind::Inlined)
        .map(|frame| frame.into_owned())
        .collect();
    of_inlined.sort_by(|a, b| (&a.function, &a.mapping).cmp(&(&b.function, &b.mapping)));
    let told: Vec<_> = of_inlined.iter().map(|frame| (frame.function.as_ref(), frame.mapping.as_ref())).collect();
    assert_eq!(told, [("deep", "/tmp/libq.so"), ("deep", "/tmp/p"), ("inl", "/tmp/p")]);
    assert_eq!(places(&set)["start_main"], (String::new(), FrameKind::Native, String::new()));
    assert_same_through_pprof(&set);
}

/// Scenario: `perf script --show-task-events --show-mmap-events --show-namespace-events` and so on, with stacks and without: records
/// before, between and behind the samples, some of several lines, some without a command.
/// Guarantee: they are no samples and no frames, and a file that ends in one is whole, unless it ends inside its line.
#[test]
fn records_are_no_samples() {
    let with_stacks = "       swapper     0     0.000000: PERF_RECORD_MMAP -1/0: [0xff(0x12) @ 0xff]: x [kernel.kallsyms]_text\n\
        p 1    10.000000: PERF_RECORD_COMM exec: p:1/1\n\
        p 1    10.000000: PERF_RECORD_NAMESPACES 1/1 - nr_namespaces: 2\n\t\t[0/net: 3/0xf0, 1/uts: 3/0xef]\n\
        p 1    10.000001:    1000000 cpu-clock: \n\t            11a5 burn+0x25 (/tmp/p)\n\n\
        PERF_RECORD_FINISHED_ROUND\n\
        p 1    10.000002:    1000000 cpu-clock: \n\t            11a5 burn+0x25 (/tmp/p)\n\n\
        p 1    10.000003: PERF_RECORD_EXIT(1:1):(1:1)\n";
    let flat = "               p 1 10.000000: PERF_RECORD_COMM exec: p:1/1\n\
        \x20              p 1 10.000001:    1000000 cpu-clock:  11a5 burn+0x25 (/tmp/p)\n\
        \x20              p 1 10.000002: PERF_RECORD_MMAP2 1/1: [0x7f(0x15) @ 0x26 fe:00 3 0]: r-xp /lib/libc.so.6\n\
        \x20              p 1 10.000003:    1000000 cpu-clock:  11a5 burn+0x25 (/tmp/p)\n\
        \x20              p 1 10.000004: PERF_RECORD_SWITCH OUT preempt\n";
    for text in [with_stacks, flat] {
        let set = read(text);
        assert_eq!((set.profiles.len(), set.sample_count()), (1, 2), "{text}");
        assert_eq!(sums(&set, profile(&set, CPU)), stacks([("burn:0", 2_000_000)]));
        let cut = decode_file(text.trim_end().as_bytes(), &DecodeOptions::default()).unwrap_err();
        assert_eq!(cut.fault, Fault::Truncated, "{cut}");
    }
}

/// Scenario: a program recorded by both clocks at once. Guarantee: its CPU time is that of one of them, and the other's is kept.
#[test]
fn two_clocks() {
    let sample = |clock: &str| format!("p 1  3.5:   10 {clock}: \n\t 119e burn+0x1e (/tmp/p)\n\n");
    let text = ["task-clock", "cpu-clock", "cpu-clock", "task-clock"].map(sample).concat();
    let set = read(&text);
    assert_eq!(sums(&set, profile(&set, CPU)), stacks([("burn:0", 20)]));
    let other = profile(&set, "perf:cpu-clock:nanoseconds:cpu-clock:nanoseconds");
    assert_eq!(sums(&set, other), stacks([("burn:0", 20)]));
    assert_eq!(set.profiles.len(), 2);
}
