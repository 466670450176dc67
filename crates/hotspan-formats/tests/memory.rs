//! Memory on hostile input, measured by the allocator itself: what a request makes a reader allocate is bounded by its
//! limits, whatever the request says (R5).

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests, too")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::Write as _;

use bytes::Bytes;
use hotspan_formats::otlp::{decode_profiles, decode_traces};
use hotspan_formats::push::{PushError, PushedProfile, each_profile, each_profile_json};
use hotspan_formats::{DecodeOptions, DecompressError, Encoding, Fault, Limits, decode_file, decompress};
use hotspan_formats::{jfr, pyroscope_tree};
use hotspan_model::{Resource, Scope, Span, TraceSink};

use crate::jfr_writer::{CLASS, Field, JfrChunk, METHOD, STACK_TRACE, SYMBOL, TEXT, THREAD, number, stack_of, text_of};

#[path = "support/jfr_writer.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod jfr_writer;

/// Counts what each thread holds, and the most it ever held.
struct Measured;

#[global_allocator]
static ALLOCATOR: Measured = Measured;

thread_local! {
    /// Bytes held now, and at most.
    static HELD: Cell<(isize, isize)> = const { Cell::new((0, 0)) };
}

fn note(change: isize) {
    // A thread that is ending has no counter any more.
    let _ = HELD.try_with(|held| {
        let (now, most) = held.get();
        held.set((now + change, most.max(now + change)));
    });
}

// SAFETY: everything is handed to the system's allocator as it came; counting touches nothing else.
unsafe impl GlobalAlloc for Measured {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size() as isize);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(layout.size() as isize);
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        note(-(layout.size() as isize));
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Old and new may both be there for a moment.
        note(size as isize);
        note(-(layout.size() as isize));
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { System.realloc(place, layout, size) }
    }
}

/// What some work gives, and the most bytes that it held beyond what was held before.
fn peak_of<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.get().0;
    HELD.set((before, before));
    let result = work();
    (result, (HELD.get().1 - before) as usize)
}

const MIB: usize = 1 << 20;

/// Scenario: 256 MiB of zeros in a few kilobytes of gzip and zstd, to a reader that allows one.
/// Guarantee: refused, and the buffer never grew past the limit and its last doubling.
#[test]
fn bombs() {
    let zeros = vec![0u8; 256 * MIB];
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&zeros).unwrap();
    let gzip = Bytes::from(gzip.finish().unwrap());
    let zstd = Bytes::from(zstd::encode_all(&zeros[..], 3).unwrap());
    drop(zeros);
    for (encoding, bomb) in [(Encoding::Gzip, gzip), (Encoding::Zstd, zstd)] {
        let (result, peak) = peak_of(|| decompress(encoding, bomb, MIB));
        assert_eq!(result, Err(DecompressError::TooLarge { limit: MIB }), "{encoding:?}");
        assert!(peak < 4 * MIB, "{encoding:?} took {peak} bytes");
    }
}

/// A field of bytes.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![number << 3 | 2];
    let mut length = content.len();
    while length >= 0x80 {
        bytes.push(length as u8 | 0x80);
        length >>= 7;
    }
    bytes.push(length as u8);
    bytes.extend_from_slice(content);
    bytes
}

/// A profile request with this dictionary, and these samples in one profile.
fn profiles_of(dictionary: &[u8], samples: &[u8]) -> Vec<u8> {
    let scope = field(2, samples);
    [field(1, &field(2, &scope)), field(2, dictionary)].concat()
}

/// Small limits, so that what is not bounded shows.
fn tight() -> Limits {
    Limits { max_decoded_bytes: 8 * MIB, max_item_bytes: MIB, ..Limits::default() }
}

/// Scenario: requests whose few bytes stand for much: tables of millions of empty entries, a resource that thousands
/// of profiles share, a stack of thousands of inlined frames, a sample with a million times, indices out of range.
/// Guarantee: an answer, after at most three times the memory that a decoded request may take.
#[test]
fn hostile_profiles() {
    let many = |number: u8| [number << 3 | 2, 0].repeat(4_000_000);
    let numbers = |number: u8, value: u8, count: usize| field(number, &vec![value; count]);
    let mut requests: Vec<(String, Vec<u8>)> =
        (1..=7).map(|table| (format!("table {table}"), profiles_of(&many(table), &[]))).collect();
    requests.push(("samples".to_owned(), profiles_of(&[], &many(2))));
    let times = field(2, &field(5, &vec![1; 8_000_000]));
    requests.push(("times".to_owned(), profiles_of(&[], &times)));
    let shared = field(1, &field(1, &[field(1, b"key"), field(2, &field(1, &vec![b'a'; 60_000]))].concat()));
    let profiles = field(2, &[0x12, 0].repeat(100_000));
    requests.push(("resource".to_owned(), field(1, &[shared, profiles].concat())));
    // Location 1 has 100,000 lines; each of a thousand stacks names it 512 times.
    let inlined = [field(2, &[]), field(2, &[0x1a, 0].repeat(100_000)), field(3, &[])].concat();
    let stacks = field(7, &numbers(1, 1, 512)).repeat(1000);
    let samples: Vec<u8> = (0..1000u32)
        .flat_map(|index| field(2, &[8, index as u8 & 0x7f | 0x80, (index >> 7) as u8, 0x22, 1, 1]))
        .collect();
    requests.push(("inlined".to_owned(), profiles_of(&[inlined, stacks].concat(), &samples)));
    let beyond = field(2, &[8, 0xff, 0xff, 0xff, 0xff, 7, 0x18, 0xff, 0xff, 0xff, 0xff, 7, 0x22, 1, 1]).repeat(200_000);
    requests.push(("indices".to_owned(), profiles_of(&[], &beyond)));
    for (name, request) in requests {
        let limits = tight();
        let (accepted, peak) = peak_of(|| decode_profiles(&request, &limits, 0).is_ok());
        assert!(peak < 3 * limits.max_decoded_bytes + MIB, "{name}: {peak} bytes, accepted: {accepted}");
    }
}

/// Keeps nothing.
struct Nowhere;

impl TraceSink for Nowhere {
    fn resource(&mut self, _: &Resource<'_>) {}
    fn scope(&mut self, _: &Scope<'_>) {}
    fn span(&mut self, _: &Span<'_>) {}
}

/// Scenario: spans, events and links with millions of empty attributes, and values nested without end.
/// Guarantee: such a span is refused, after at most a few times the memory that a span may take.
#[test]
fn hostile_traces() {
    let of_span = |span: &[u8]| field(1, &field(2, &field(2, span)));
    let empty = [0x4a, 0].repeat(4_000_000);
    let event = field(11, &[0x1a, 0].repeat(4_000_000));
    let link = field(13, &[0x22, 0].repeat(4_000_000));
    let events = [0x5a, 0].repeat(4_000_000);
    let mut nested = Vec::new();
    for _ in 0..5000 {
        // An array whose one value is an array.
        nested = field(5, &field(1, &nested));
    }
    let nested = field(9, &[field(1, b"key"), field(2, &nested)].concat());
    let spans = [("attributes", empty), ("event", event), ("link", link), ("events", events), ("nested", nested)];
    for (name, span) in spans {
        let limits = tight();
        let request = of_span(&span);
        let (outcome, peak) = peak_of(|| decode_traces(&request, &limits, &mut Nowhere).unwrap());
        assert_eq!((outcome.accepted, outcome.rejected), (0, 1), "{name}");
        assert!(peak < 5 * limits.max_item_bytes, "{name}: {peak} bytes");
    }
}

/// Scenario: a pprof file of millions of empty samples, locations and functions, and gzip of 256 MiB of such.
/// Guarantee: refused, after at most three times the memory that a decoded file may take.
#[test]
fn hostile_files() {
    for table in [2u8, 4, 5, 6] {
        let bytes = [table << 3 | 2, 0].repeat(8_000_000);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&bytes).unwrap();
        let packed = gzip.finish().unwrap();
        drop(bytes);
        let limits = Limits { max_bytes: 32 * MIB, ..tight() };
        let bound = 3 * limits.max_decoded_bytes + 2 * limits.max_bytes + MIB;
        let options = DecodeOptions { limits, ..DecodeOptions::default() };
        let (accepted, peak) = peak_of(|| decode_file(&packed, &options).is_ok());
        assert!(peak < bound, "table {table}: {peak} bytes, accepted: {accepted}");
    }
}

/// A pprof file with one sample type and these further fields.
fn pprof_with(fields: &[u8]) -> Vec<u8> {
    [field(1, &[0x08, 1, 0x10, 1]), field(6, b""), fields.to_vec()].concat()
}

/// Files that ask for much more than they are, in each format.
fn hostile_files_of_each_format() -> Vec<(&'static str, Vec<u8>)> {
    let long = "x".repeat(MIB);
    let numbered = |count: usize, line: &dyn Fn(usize) -> String| (0..count).map(line).collect::<String>();
    let list = |element: &str, count: usize| vec![element; count].join(",");
    let scope = |frames: &str, profile: &str| {
        let schema = "https://www.speedscope.app/file-format-schema.json";
        format!(r#"{{"$schema":"{schema}","shared":{{"frames":[{frames}]}},"profiles":[{{"unit":"none",{profile}}}]}}"#)
    };
    let name = r#"{"name":"f"}"#;
    let opens = list(r#"{"type":"O","frame":0,"at":1}"#, 150_000);
    let rising: Vec<String> = (0..200_000).map(|at| format!(r#"{{"type":"O","frame":0,"at":{at}}}"#)).collect();
    let flames = |names: &str, levels: &str| format!(r#"{{"flamebearer":{{"names":[{names}],"levels":[{levels}]}}}}"#);
    let chain: Vec<String> = (0..60_000)
        .map(|at| format!(r#"{{"id":{at},"callFrame":{{"functionName":"f{at}"}},"children":[{}]}}"#, at + 1))
        .collect();
    let deep_heap = r#"{"callFrame":{"functionName":"f"},"selfSize":1,"children":["#.repeat(60_000);
    let texts: Vec<(&'static str, String)> = vec![
        ("collapsed names", numbered(400_000, &|at| format!("f{at} 1\n"))),
        ("collapsed names in a line", format!("{} 1\n", numbered(400_000, &|at| format!("f{at};")))),
        ("collapsed samples", "a 1\n".repeat(2_000_000)),
        ("collapsed stacks", numbered(8000, &|at| format!("{at};{} 1\n", "a;".repeat(500)))),
        ("perf frames", numbered(150_000, &|at| format!("a 1/1 1.0: 1 e:\n\t{at:x} f{at} (b)\n\n"))),
        ("perf threads", numbered(150_000, &|at| format!("a{at} 1/{at} 1.0: 1 e:\n\t1 f (b)\n\n"))),
        ("perf stack", format!("a 1/1 1.0: 1 e:\n{}\n", "\t1 f (b)\n".repeat(400_000))),
        (
            "speedscope samples",
            scope(name, &format!(r#""type":"sampled","samples":[{}],"weights":[]"#, list("[]", 3_000_000))),
        ),
        (
            "speedscope stack",
            scope(name, &format!(r#""type":"sampled","samples":[[{}]],"weights":[1]"#, list("0", 3_000_000))),
        ),
        (
            "speedscope weights",
            scope(name, &format!(r#""type":"sampled","samples":[],"weights":[{}]"#, list("1", 3_000_000))),
        ),
        ("speedscope frames", scope(&list(name, 400_000), r#""type":"sampled","samples":[],"weights":[]"#)),
        ("speedscope opened", scope(name, &format!(r#""type":"evented","events":[{opens}]"#))),
        ("speedscope events", scope(name, &format!(r#""type":"evented","events":[{}]"#, rising.join(",")))),
        ("flamebearer names", flames(&list(r#""""#, 3_000_000), "")),
        ("flamebearer levels", flames(r#""total""#, &list("[]", 3_000_000))),
        ("flamebearer bars", flames(r#""total""#, &format!("[{}]", list("0", 3_000_000)))),
        ("cpuprofile nodes", format!(r#"{{"nodes":[{}]}}"#, list("{}", 2_000_000))),
        ("cpuprofile children", format!(r#"{{"nodes":[{{"children":[{}]}}]}}"#, list("1", 3_000_000))),
        ("cpuprofile samples", format!(r#"{{"nodes":[{{}}],"samples":[{}]}}"#, list("0", 3_000_000))),
        ("cpuprofile times", format!(r#"{{"nodes":[{{}}],"timeDeltas":[{}]}}"#, list("0", 3_000_000))),
        ("cpuprofile depth", format!(r#"{{"nodes":[{}]}}"#, chain.join(","))),
        ("heapprofile nodes", format!(r#"{{"head":{{"children":[{}]}}}}"#, list("{}", 2_000_000))),
        ("heapprofile samples", format!(r#"{{"head":{{}},"samples":[{}]}}"#, list(r#"{"size":1}"#, 400_000))),
        ("heapprofile depth", format!(r#"{{"head":{deep_heap}{}}}"#, "]}".repeat(60_000))),
        ("otlp json", format!(r#"{{"resourceProfiles":[{}]}}"#, list("{}", 2_000_000))),
    ];
    let many = |number: u8, content: &[u8], count: usize| field(number, content).repeat(count);
    let string = field(6, long.as_bytes());
    let sample = |labels: &[u8]| field(2, &[&[0x10, 1][..], labels].concat());
    let label = |key: u8| field(3, &[0x08, key, 0x10, 2]);
    let binaries = vec![
        ("pprof types", many(1, &[], 2_000_000)),
        ("pprof comments", pprof_with(&field(13, &vec![0; 3_000_000]))),
        ("pprof long comments", pprof_with(&[field(6, b""), string.clone(), field(13, &vec![2; 1000])].concat())),
        ("pprof columns", pprof_with(&[many(1, &[0x08, 1], 20_000), many(2, &[], 100_000)].concat())),
        ("pprof values", pprof_with(&field(2, &field(2, &vec![1; 3_000_000])))),
        ("pprof locations", pprof_with(&field(2, &[vec![0x10, 1], many(1, &vec![1; 1_500_000], 2)].concat()))),
        ("pprof lines", pprof_with(&field(4, &[vec![0x08, 1], [0x22, 0].repeat(2_000_000)].concat()))),
        ("pprof mappings", pprof_with(&[field(6, b""), string.clone(), many(3, &[0x28, 2], 1000)].concat())),
        ("pprof labels", pprof_with(&[field(6, b"k"), string.clone(), sample(&label(1).repeat(1000))].concat())),
        (
            "pprof label sets",
            pprof_with(
                &[field(6, b"k"), string, (0..100).flat_map(|key| sample(&label(1).repeat(key))).collect()].concat(),
            ),
        ),
    ];
    let texts = texts.into_iter().map(|(name, text)| (name, text.into_bytes()));
    texts.chain(binaries).chain(hostile_recordings()).collect()
}

/// Recordings whose constants name long texts again and again, and one of many events.
fn hostile_recordings() -> Vec<(&'static str, Vec<u8>)> {
    let start = 1_700_000_000_000_000_000;
    let long = text_of(&"x".repeat(MIB));
    let at = ("startTime", Field::Long(1));
    let mut methods = JfrChunk::new(start);
    methods.constants(SYMBOL, [(10, long.clone())]);
    methods.constants(CLASS, [(10, number(10))]);
    methods.constants(METHOD, (100..400).map(|key| (key, [number(10), number(2)].concat())));
    methods.constants(STACK_TRACE, [(10, stack_of(&(100..400).collect::<Vec<u64>>()))]);
    methods.event("jdk.ExecutionSample", &[at, ("stackTrace", Field::Constant(STACK_TRACE, 10))]);
    let mut threads = JfrChunk::new(start);
    threads.constants(TEXT, [(10, long)]);
    let thread = |key: u64| [vec![2], number(10), number(key), vec![1], number(key)].concat();
    threads.constants(THREAD, (100..400).map(|key| (key, thread(key))));
    let mut classes = JfrChunk::new(start);
    classes.constants(SYMBOL, (100..140).map(|key| (key, text_of(&format!("{key}{}", "x".repeat(MIB / 2))))));
    classes.constants(CLASS, (100..140).map(|key| (key, number(key))));
    let mut mallocs = JfrChunk::new(start);
    for key in 100..400 {
        threads.event("jdk.MethodTrace", &[at, ("eventThread", Field::Constant(THREAD, key))]);
        classes.event("jdk.MethodTrace", &[at, ("objectClass", Field::Constant(CLASS, key))]);
    }
    for address in 0..300_000 {
        mallocs.event("profiler.Malloc", &[at, ("address", Field::Long(address)), ("size", Field::Long(8))]);
    }
    let mut spans = JfrChunk::new(start);
    for number in 0..200_000 {
        spans.event("profiler.Span", &[at, ("tag", Field::Text(&number.to_string()))]);
    }
    vec![
        ("jfr methods", methods.finish()),
        ("jfr threads", threads.finish()),
        ("jfr classes", classes.finish()),
        ("jfr mallocs", mallocs.finish()),
        ("jfr spans", spans.finish()),
    ]
}

/// Scenario: in each format, files of a few megabytes with millions of empty, short or repeated entries, very deep trees,
/// and long texts that are named again and again.
/// Guarantee: an answer, after at most three times the memory that a decoded file may take.
#[test]
fn hostile_files_of_every_format() {
    for (name, file) in hostile_files_of_each_format() {
        let limits = Limits { max_bytes: 64 * MIB, ..tight() };
        // Text of OTLP is translated before it is read.
        let translated = if name == "otlp json" { 2 * file.len() } else { 0 };
        let bound = 3 * limits.max_decoded_bytes + translated + 2 * MIB;
        let options = DecodeOptions { limits, ..DecodeOptions::default() };
        let (accepted, peak) = peak_of(|| decode_file(&file, &options).map(drop));
        assert!(peak < bound, "{name}: {peak} bytes of {bound}, and then {accepted:?}");
        if let Err(error) = accepted {
            assert_ne!(error.fault, Fault::UnknownFormat, "{name}: {error}");
        }
    }
    let tree = [vec![0, 0, 1], [1, b'a', 1, 1].repeat(1_000_000)].concat();
    let wide: Vec<u8> =
        (0..1_000_000u32).flat_map(|at| [[4].as_slice(), &at.to_le_bytes(), &[1, 0]].concat()).collect();
    let wide = [vec![0, 0, 0xc0, 0x84, 0x3d], wide].concat();
    for bytes in [tree, wide] {
        let limits = tight();
        let bound = 3 * limits.max_decoded_bytes + 2 * MIB;
        let options = DecodeOptions { limits, ..DecodeOptions::default() };
        let (_, peak) = peak_of(|| drop(pyroscope_tree::decode_tree(&bytes, &options)));
        assert!(peak < bound, "tree: {peak} bytes");
        let (_, peak) = peak_of(|| drop(pyroscope_tree::decode_trie(&bytes, &options)));
        assert!(peak < bound, "trie: {peak} bytes");
    }
}

/// Scenario: what the Pyroscope agent sends beside a recording, with millions of empty contexts or strings, and with one long
/// string as the value of every label of many contexts.
/// Guarantee: refused, after at most three times the memory that a decoded file may take.
#[test]
fn hostile_labels() {
    let text = field(2, &[vec![8, 1], field(2, "x".repeat(MIB).as_bytes())].concat());
    let label = field(1, &[8, 1, 16, 1]);
    let context = |key: u8| field(1, &[vec![8, key], field(2, &label)].concat());
    let contexts: Vec<u8> = (0..100).flat_map(context).collect();
    let labels = field(1, &[vec![8, 1], field(2, &label.repeat(100_000))].concat());
    let recording = JfrChunk::new(1_700_000_000_000_000_000).finish();
    for (name, part) in [
        ("contexts", [0x0a, 0].repeat(4_000_000)),
        ("strings", [0x12, 0].repeat(4_000_000)),
        ("long labels", [text, contexts].concat()),
        ("many labels", labels),
    ] {
        let limits = tight();
        let bound = 3 * limits.max_decoded_bytes + 2 * MIB;
        let options = DecodeOptions { limits, ..DecodeOptions::default() };
        let (result, peak) = peak_of(|| jfr::decode(&recording, Some(&part), &options).map(drop));
        assert!(peak < bound, "{name}: {peak} bytes");
        assert_eq!(result.unwrap_err().fault, Fault::TooLarge, "{name}");
    }
}

/// Scenario: a pprof file with one location of 500 inlined frames and 200,000 samples that each reach it from another
/// caller: 1.6 GB of steps if each path keeps them all.
/// Guarantee: refused, after at most three times the memory that a decoded file may take.
#[test]
fn hostile_paths() {
    let number = |field: u8, value: u32| {
        let low = [field << 3, value as u8 | 0x80, (value >> 7) as u8 | 0x80, (value >> 14) as u8];
        low.to_vec()
    };
    let mut file = field(1, &[0x08, 1, 0x10, 2]);
    file.extend(field(6, b""));
    file.extend(field(6, b"cpu"));
    file.extend(field(6, b"nanoseconds"));
    file.extend(field(5, &[number(1, 1), number(2, 1)].concat()));
    let lines = field(4, &[0x08, 1]).repeat(500);
    file.extend(field(4, &[number(1, 1), lines].concat()));
    for caller in 2..200_002 {
        file.extend(field(4, &[number(1, caller), number(3, caller)].concat()));
        file.extend(field(2, &[number(1, 1), number(1, caller), number(2, 1)].concat()));
    }
    let limits = Limits { max_decoded_bytes: 64 * MIB, ..tight() };
    let bound = 3 * limits.max_decoded_bytes + file.len() + MIB;
    let options = DecodeOptions { limits, ..DecodeOptions::default() };
    let (result, peak) = peak_of(|| decode_file(&file, &options));
    let error = result.unwrap_err().to_string();
    assert!(error.contains("call paths"), "{error}");
    assert!(peak < bound, "{peak} bytes");
}

/// Scenario: pushes of a megabyte that consist of empty series, empty samples and labels of one name, in protobuf and in
/// JSON. Guarantee: nothing is built of what holds nothing.
#[test]
fn pushes_of_nothing() {
    let list = |item: &str| vec![item; MIB / (item.len() + 1)].join(",");
    let label = field(1, &[field(1, b"a"), field(2, b"b")].concat());
    let messages =
        [field(1, &[]).repeat(MIB / 2), field(1, &field(2, &[]).repeat(MIB / 2)), field(1, &label.repeat(MIB / 8))];
    let texts = [
        format!(r#"{{"series": [{}]}}"#, list("{}")),
        format!(r#"{{"series": [{{"samples": [{}]}}]}}"#, list("{}")),
        format!(r#"{{"series": [{{"labels": [{}]}}]}}"#, list(r#"{"name":"a"}"#)),
    ];
    let limits = Limits::default();
    let mut take = |_: PushedProfile<'_>| Ok::<_, PushError>(());
    for message in &messages {
        let (result, peak) = peak_of(|| each_profile(message, &limits, &mut take));
        assert!(result.is_ok() && peak < MIB / 16, "{result:?}, {peak} bytes");
    }
    for text in &texts {
        let (result, peak) = peak_of(|| each_profile_json(text.as_bytes(), &limits, &mut take));
        assert!(result.is_ok() && peak < MIB / 16, "{result:?}, {peak} bytes for {:?}", &text[..40]);
    }
}
