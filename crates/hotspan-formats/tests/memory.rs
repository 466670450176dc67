//! Memory on hostile input, measured by the allocator itself: what a request makes a reader allocate is bounded by its
//! limits, whatever the request says (R5).

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests, too")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::Write as _;

use bytes::Bytes;
use hotspan_formats::otlp::{decode_profiles, decode_traces};
use hotspan_formats::{DecodeOptions, DecompressError, Encoding, Limits, decode_file, decompress};
use hotspan_model::{Resource, Scope, Span, TraceSink};

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
