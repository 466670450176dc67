//! Other numberings of the same messages, written by hand.

use hotspan_formats::otlp::{WireVersion, decode_profiles};
use hotspan_formats::{DecodeError, Limits};
use hotspan_model::{Link, ProfileId, ProfileSet, SpanId, TraceId};

use crate::encode::Message;

const STRINGS: [&str; 8] = ["", "samples", "count", "cpu", "nanoseconds", "main", "route", "made by hand"];

/// Strings, one function, one location, one stack, one link and two attributes; the same in all versions.
fn dictionary() -> Message {
    dictionary_of(&[(6, "/a"), (6, "/b")])
}

/// The same with these attributes: the index of the key, and a text.
fn dictionary_of(attributes: &[(u64, &str)]) -> Message {
    let mut dictionary = Message::new().message(1, &Message::new());
    let line = Message::new().varint(1, 1).varint(2, 10);
    dictionary = dictionary.message(2, &Message::new()).message(2, &Message::new().message(3, &line));
    dictionary = dictionary.message(3, &Message::new()).message(3, &Message::new().varint(1, 5));
    let link = Message::new().bytes(1, [7; 16]).bytes(2, [9; 8]);
    dictionary = dictionary.message(4, &Message::new()).message(4, &link);
    for text in STRINGS {
        dictionary = dictionary.bytes(5, text);
    }
    dictionary = dictionary.message(6, &Message::new());
    for (key, text) in attributes {
        dictionary = dictionary.message(6, &Message::new().varint(1, *key).message(2, &Message::new().bytes(1, text)));
    }
    dictionary.message(7, &Message::new()).message(7, &Message::new().packed(1, &[1]))
}

fn request(profile: &Message) -> Vec<u8> {
    request_with(profile, &dictionary())
}

fn request_with(profile: &Message, dictionary: &Message) -> Vec<u8> {
    let scope = Message::new().message(2, profile);
    Message::new().message(1, &Message::new().message(2, &scope)).message(2, dictionary).0
}

/// A profile of these samples with fields 1 to 6, which have been the same since v1.8.
fn profile(samples: &[Message]) -> Message {
    let mut profile = Message::new().message(1, &Message::new().varint(1, 1).varint(2, 2));
    for sample in samples {
        profile = profile.message(2, sample);
    }
    profile.fixed64(3, 1_000).varint(4, 500).message(5, &Message::new().varint(1, 3).varint(2, 4)).varint(6, 10)
}

/// A full sample in the numbering of v1.9.
pub(crate) fn sample_request() -> Vec<u8> {
    let sample = Message::new().varint(1, 1).packed(2, &[3]).packed(3, &[1]).varint(4, 1).packed_fixed64(5, &[1_100]);
    request(&profile(&[sample]))
}

/// Value, time, trace byte and route of each row.
fn rows(set: &ProfileSet<'_>) -> Vec<(i64, i64, u8, Option<String>)> {
    let row = |sample: &hotspan_model::Sample| {
        let route = set.label_sets[sample.labels as usize].get("route").map(str::to_owned);
        (sample.value, sample.time, set.links[sample.link as usize].trace_id.0[0], route)
    };
    set.profiles[0].samples.iter().map(row).collect()
}

fn decoded(bytes: &[u8]) -> (ProfileSet<'_>, WireVersion) {
    let (set, outcome, version) = decode_profiles(bytes, &Limits::default(), 0).unwrap();
    assert!(outcome.is_clean(), "{}", outcome.message());
    (set, version)
}

/// Scenario: the same full sample in the numbering of v1.9 and of v1.10.
/// Guarantee: told apart, and read as the same.
#[test]
fn full_samples() {
    let old = Message::new().varint(1, 1).packed(2, &[3]).packed(3, &[1]).varint(4, 1).packed_fixed64(5, &[1_100]);
    let new = Message::new().varint(1, 1).packed(2, &[1]).varint(3, 1).packed(4, &[3]).packed_fixed64(5, &[1_100]);
    for (sample, expected) in [(old, WireVersion::V1_9), (new, WireVersion::V1_10)] {
        let bytes = request(&profile(&[sample]));
        let (set, version) = decoded(&bytes);
        assert_eq!(version, expected);
        assert_eq!(rows(&set), [(30, 1_100, 7, Some("/a".to_owned()))]);
        assert_eq!(set.links[1], Link { trace_id: TraceId([7; 16]), span_id: SpanId([9; 8]) });
    }
}

/// Scenario: numbers that are not packed.
/// Guarantee: read all the same.
#[test]
fn unpacked_numbers() {
    let new = Message::new().varint(1, 1).varint(2, 1).varint(3, 1).varint(4, 3).fixed64(5, 1_100);
    let bytes = request(&profile(&[new]));
    // Field 2 as a plain number looks like v1.7, which nothing newer ever writes.
    assert!(matches!(decode_profiles(&bytes, &Limits::default(), 0), Err(DecodeError::UnsupportedVersion { .. })));
    let (set, ..) =
        hotspan_formats::otlp::decode_profiles_as(Some(WireVersion::V1_10), &bytes, &Limits::default(), 0).unwrap();
    assert_eq!(rows(&set), [(30, 1_100, 7, Some("/a".to_owned()))]);
}

/// Scenario: samples of fields 1, 2 and 5 only, which both versions have with different meanings.
/// Guarantee: values if they match the timestamps and are no attributes; attributes if it is the other way round.
#[test]
fn ambiguous_samples() {
    let with = |numbers: &[u64], times: &[u64]| Message::new().varint(1, 1).packed(2, numbers).packed_fixed64(5, times);
    let bytes = request(&profile(&[with(&[1], &[10]), with(&[500, 600], &[20, 30])]));
    let (set, version) = decoded(&bytes);
    assert_eq!(version, WireVersion::V1_9);
    assert_eq!(rows(&set), [(10, 10, 0, None), (5_000, 20, 0, None), (6_000, 30, 0, None)]);

    let bytes = request(&profile(&[with(&[1], &[10]), with(&[2], &[20, 30])]));
    let (set, version) = decoded(&bytes);
    assert_eq!(version, WireVersion::V1_10);
    let routes: Vec<Option<String>> = rows(&set).into_iter().map(|(.., route)| route).collect();
    assert_eq!(routes, [Some("/a".to_owned()), Some("/b".to_owned()), Some("/b".to_owned())]);
}

/// A sample of only those fields that both versions have, with times from 10 on.
fn bare_sample(numbers: &[u64], timestamps: u64) -> Message {
    let times: Vec<u64> = (0..timestamps).map(|at| 10 + at).collect();
    Message::new().varint(1, 1).packed(2, numbers).packed_fixed64(5, &times)
}

fn values(set: &ProfileSet<'_>) -> Vec<i64> {
    rows(set).into_iter().map(|(value, ..)| value).collect()
}

/// Scenario: samples of v1.9 with as many values as timestamps, all of them small enough to be numbers of attributes: some
/// repeated, others numbers of attributes with the same key.
/// Guarantee: read as values, since a sample has each attribute once.
#[test]
fn repeated_numbers_are_values() {
    let attributes = [(6, "/a"), (6, "/b"), (1, "x"), (2, "y"), (3, "z"), (4, "u")];
    let repeated = profile(&[bare_sample(&[2, 2], 2), bare_sample(&[3, 3, 3], 3)]);
    let of_one_key = profile(&[bare_sample(&[1, 2], 2), bare_sample(&[5], 1)]);
    for (profile, expected) in [(repeated, [20, 20, 30, 30, 30].as_slice()), (of_one_key, &[10, 20, 50])] {
        let bytes = request_with(&profile, &dictionary_of(&attributes));
        let (set, version) = decoded(&bytes);
        assert_eq!((version, values(&set)), (WireVersion::V1_9, expected.to_vec()));
        assert!(rows(&set).iter().all(|(.., route)| route.is_none()), "{:?}", rows(&set));
    }
}

/// Scenario: samples of which each can be read either way, in a profile with an id as v1.8 numbers it and in one as later.
/// Guarantee: read as the profile's own fields say, also where there are more samples than are looked at.
#[test]
fn fields_of_the_profile_break_ties() {
    for count in [1, 5000] {
        let samples = vec![bare_sample(&[2], 1); count];
        for (id_field, expected, value) in [(8, WireVersion::V1_9, 20), (7, WireVersion::V1_10, 10)] {
            let bytes = request(&profile(&samples).bytes(id_field, [4; 16]));
            let (set, version) = decoded(&bytes);
            assert_eq!((version, set.profiles[0].id), (expected, Some(ProfileId([4; 16]))));
            assert!(values(&set).iter().all(|found| *found == value));
        }
    }
}

/// Scenario: samples with values alone, which only v1.9 has in field 2.
/// Guarantee: read as values.
#[test]
fn values_alone() {
    let bytes = request(&profile(&[Message::new().varint(1, 1).packed(2, &[2])]));
    let (set, version) = decoded(&bytes);
    assert_eq!(version, WireVersion::V1_9);
    assert_eq!(rows(&set), [(20, 1_000, 0, None)]);
}

/// Scenario: the fields behind the samples as v1.8 and as v1.9 number them.
/// Guarantee: id, dropped count, payload and attributes land in their places; comments are kept.
#[test]
fn moved_profile_fields() {
    let sample = Message::new().varint(1, 1).packed(2, &[3]).packed(3, &[1]);
    let old = profile(std::slice::from_ref(&sample))
        .packed(7, &[7])
        .bytes(8, [4; 16])
        .varint(9, 6)
        .bytes(10, "pprof")
        .bytes(11, b"raw")
        .packed(12, &[1]);
    let new = profile(&[sample]).bytes(7, [4; 16]).varint(8, 6).bytes(9, "pprof").bytes(10, b"raw").packed(11, &[1]);
    let comment = ",\"pprof.profile.comment\":[\"made by hand\"]";
    for (profile, comment) in [(old, comment), (new, "")] {
        let bytes = request(&profile);
        let (set, version) = decoded(&bytes);
        assert_eq!(version, WireVersion::V1_9);
        let profile = &set.profiles[0];
        assert_eq!(profile.id, Some(ProfileId([4; 16])));
        assert_eq!(profile.context.dropped_attributes_count, 6);
        assert_eq!(profile.context.original_payload_format, "pprof");
        assert_eq!(profile.context.original_payload.as_ref(), b"raw");
        assert_eq!(profile.context.attributes, format!("{{\"route\":\"/a\"{comment}}}"));
    }
}

/// Scenario: the numbering of v1.7.
/// Guarantee: refused, with advice.
#[test]
fn v1_7_is_refused() {
    let sample = Message::new().varint(1, 0).varint(2, 3).packed(3, &[1]).packed(6, &[1_000]);
    let profile = Message::new().message(2, &sample).packed(3, &[1, 1, 1]).varint(4, 1_000);
    let wrong = decode_profiles(&request(&profile), &Limits::default(), 0).unwrap_err();
    assert!(wrong.to_string().contains("v1.8 or later"), "{wrong}");
}
