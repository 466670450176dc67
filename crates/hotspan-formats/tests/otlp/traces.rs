//! Traces in.

use hotspan_formats::otlp::{Outcome, decode_traces};
use hotspan_formats::{DecodeError, Limits};
use proptest::prelude::*;
use prost::Message as _;

use crate::dice::Dice;
use crate::encode::Message;
use crate::random_traces;
use crate::trace_oracle::{Told, translate};

pub(crate) fn told(bytes: &[u8], limits: &Limits) -> Result<(Told, Outcome), DecodeError> {
    let mut told = Told::default();
    let outcome = decode_traces(bytes, limits, &mut told)?;
    told.accepted = outcome.accepted;
    told.rejected = outcome.rejected;
    Ok((told, outcome))
}

/// A request with these spans in one scope.
pub(crate) fn request(spans: &[Message]) -> Vec<u8> {
    let scope = spans.iter().fold(Message::new(), |scope, span| scope.message(2, span));
    Message::new().message(1, &Message::new().message(2, &scope)).0
}

pub(crate) fn good_span() -> Message {
    Message::new().bytes(1, [1; 16]).bytes(2, [2; 8])
}

proptest! {
    /// Scenario: any request that the generated types can express, and some of its spans with bad ids or times.
    /// Guarantee: the sink sees exactly what a plain translation of the generated types gives.
    #[test]
    fn equals_the_generated_types(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        let request = random_traces::request(&mut Dice::new(&bytes));
        let (told, _) = told(&request.encode_to_vec(), &Limits::default()).unwrap();
        prop_assert_eq!(told, translate(&request));
    }
}

/// Scenario: a span whose fields come in the order of their numbers, backwards, and with others before that they replace.
/// Guarantee: the same span.
#[test]
fn fields_come_in_any_order() {
    let string = |text: &str| Message::new().bytes(1, text);
    let attribute = Message::new().bytes(1, "route").message(2, &string("/cart"));
    let backwards = Message::new().message(2, &string("/cart")).bytes(1, "route");
    let twice = Message::new().bytes(1, "r").message(2, &Message::new().varint(3, 5)).message(2, &string("/cart"));
    let twice = twice.bytes(1, "route");
    let ordered = good_span().bytes(4, [3; 8]).bytes(5, "GET").varint(6, 2).fixed64(7, 10).fixed64(8, 20);
    let reversed = Message::new().message(9, &backwards).fixed64(8, 20).fixed64(7, 10).varint(6, 2).bytes(5, "GET");
    let reversed = reversed.bytes(4, [3; 8]).bytes(2, [2; 8]).bytes(1, [1; 16]);
    let replaced = Message::new().bytes(1, [9; 16]).bytes(5, "POST").varint(6, 1).fixed64(7, 1).fixed64(8, 2);
    let replaced = Message([replaced.0, ordered.0.clone()].concat());
    let expected = told(&request(&[ordered.message(9, &attribute)]), &Limits::default()).unwrap().0;
    assert_eq!(expected.accepted, 1);
    for span in [reversed, replaced.message(9, &twice)] {
        assert_eq!(told(&request(&[span]), &Limits::default()).unwrap().0, expected);
    }
}

/// Scenario: spans with ids of wrong size, zero or missing among good ones.
/// Guarantee: only those are refused, and the answer names the first of each kind by its path.
#[test]
fn bad_ids_are_refused_alone() {
    let spans = [
        good_span(),
        Message::new().bytes(1, [1; 15]).bytes(2, [2; 8]),
        Message::new().bytes(1, [1; 14]).bytes(2, [2; 8]),
        Message::new().bytes(1, [1; 16]).bytes(2, [0; 8]),
        Message::new().bytes(1, [1; 16]),
        good_span().bytes(4, [3; 9]),
        good_span().bytes(4, [0; 8]),
    ];
    let (told, outcome) = told(&request(&spans), &Limits::default()).unwrap();
    assert_eq!((told.accepted, told.rejected), (2, 5));
    assert_eq!(
        outcome.message(),
        "resource_spans[0].scope_spans[0].spans[1].trace_id has 15 bytes, 16 expected (and 1 more like it); \
         resource_spans[0].scope_spans[0].spans[3].span_id is all zeros; \
         resource_spans[0].scope_spans[0].spans[4].span_id has 0 bytes, 8 expected; \
         resource_spans[0].scope_spans[0].spans[5].parent_span_id has 9 bytes, 8 expected"
    );
}

/// Scenario: a name in Latin-1 and an attribute cut in the middle of a character.
/// Guarantee: the span is kept with the wrong bytes replaced, and the answer says so without counting it rejected.
#[test]
fn texts_that_are_not_utf8_are_repaired() {
    let value = Message::new().bytes(1, b"caf\xc3");
    let span = good_span().bytes(5, b"caf\xe9 au lait").message(9, &Message::new().bytes(1, "k").message(2, &value));
    let (told, outcome) = told(&request(&[span]), &Limits::default()).unwrap();
    assert_eq!((outcome.accepted, outcome.rejected, outcome.repaired_texts), (1, 0, 2));
    assert!(told.lines[2].contains("caf\u{fffd} au lait") && told.lines[2].contains("\"caf\u{fffd}\""), "{told:?}");
    assert!(outcome.message().starts_with("resource_spans[0].scope_spans[0].spans[0] has a text that is not UTF-8"));
}

/// Scenario: kinds and outcomes by numbers that OTLP has no name for, and by ones that no byte holds.
/// Guarantee: the first are kept; the span with the others is kept too, and the answer says what it lacks.
#[test]
fn numbers_without_a_name_are_kept() {
    let status = |code: i64| Message::new().varint(3, code as u64);
    let of = |kind: i64, code: i64| good_span().varint(6, kind as u64).message(15, &status(code));
    let (_, outcome) = told(&request(&[of(6, 3), of(127, -128)]), &Limits::default()).unwrap();
    assert!(outcome.is_clean(), "{}", outcome.message());
    let spans = [of(1, 2), of(128, 2), of(2, i64::from(i32::MIN)), of(3, 0)];
    let (told, outcome) = told(&request(&spans), &Limits::default()).unwrap();
    assert_eq!((told.accepted, told.rejected), (4, 0));
    assert_eq!(
        outcome.message(),
        "resource_spans[0].scope_spans[0].spans[1] has a kind or a status code that is neither a name that OTLP has nor a number \
         from -128 to 127; 0 was kept instead (and 1 more like it)"
    );
}

/// Scenario: more broken names than the reader keeps repairs for.
/// Guarantee: those beyond are refused, not the request.
#[test]
fn repairs_are_bounded() {
    let spans = vec![good_span().bytes(5, b"\xff"); 5000];
    let (told, _) = told(&request(&spans), &Limits::default()).unwrap();
    assert_eq!((told.accepted, told.rejected), (4096, 904));
}

/// Scenario: a value nested beyond the limit, in a span, in a scope and in a resource.
/// Guarantee: the span alone is refused, or every span that the scope or resource belongs to.
#[test]
fn deep_nesting_is_refused() {
    let limits = Limits { max_nesting: 8, ..Limits::default() };
    let nested = |levels: usize| {
        let value = (0..levels).fold(Message::new().varint(3, 1), |value, _| {
            Message::new().message(5, &Message::new().message(1, &value))
        });
        Message::new().bytes(1, "deep").message(2, &value)
    };
    let spans = [good_span().message(9, &nested(8)), good_span().message(9, &nested(9)), good_span()];
    let (told_spans, outcome) = told(&request(&spans), &limits).unwrap();
    assert_eq!((told_spans.accepted, told_spans.rejected), (2, 1));
    assert!(outcome.message().contains("spans[1].attributes[0].value.array_value.values[0]"), "{}", outcome.message());

    let scope = Message::new().message(1, &Message::new().message(3, &nested(9))).message(2, &good_span());
    let group = Message::new().message(2, &scope).message(2, &Message::new().message(2, &good_span()));
    let (told_scope, _) = told(&Message::new().message(1, &group).0, &limits).unwrap();
    assert_eq!((told_scope.accepted, told_scope.rejected), (1, 1));

    let group = Message::new().message(1, &Message::new().message(1, &nested(9)));
    let group = group.message(2, &Message::new().message(2, &good_span()).message(2, &good_span()));
    let (told_resource, _) = told(&Message::new().message(1, &group).0, &limits).unwrap();
    assert_eq!((told_resource.accepted, told_resource.rejected), (0, 2));
}

/// Scenario: a value that nests deeper than 32 levels, so that the path to where it does has some eight hundred bytes.
/// Guarantee: the answer says which span it is and which setting is in its way; it is the path that is shortened, in its middle.
#[test]
fn reasons_outlast_long_paths() {
    let entry = |value: Message| Message::new().bytes(1, "k").message(2, &value);
    let list = |value: Message| Message::new().message(6, &Message::new().message(1, &entry(value)));
    let value = (0..33).fold(Message::new().varint(3, 1), |value, _| list(value));
    let (_, outcome) = told(&request(&[good_span().message(9, &entry(value))]), &Limits::default()).unwrap();
    let message = outcome.message();
    assert!(
        message.starts_with("resource_spans[0].scope_spans[0].spans[0].attributes[0].value.kvlist_value."),
        "{message}"
    );
    assert!(message.ends_with(".value.kvlist_value nests deeper than 32 levels (limits.max_nesting)"), "{message}");
    assert!(message.len() < 300, "{message}");
}

/// Scenario: ten thousand levels of nesting.
/// Guarantee: refused without running out of stack.
#[test]
fn nesting_does_not_overflow_the_stack() {
    let value = (0..10_000)
        .fold(Message::new().varint(3, 1), |value, _| Message::new().message(5, &Message::new().message(1, &value)));
    let span = good_span().message(9, &Message::new().message(2, &value));
    let (told, _) = told(&request(&[span]), &Limits::default()).unwrap();
    assert_eq!((told.accepted, told.rejected), (0, 1));
}

/// Scenario: a span of a million empty attributes, two bytes each.
/// Guarantee: refused for the memory it would take, with its neighbours kept.
#[test]
fn one_span_has_bounded_memory() {
    let mut fat = good_span();
    for _ in 0..1_000_000 {
        fat.0.extend_from_slice(&[0x4a, 0x00]);
    }
    let (told, outcome) = told(&request(&[fat, good_span()]), &Limits::default()).unwrap();
    assert_eq!((told.accepted, told.rejected), (1, 1));
    assert!(outcome.message().contains("would take more than 16777216 bytes"), "{}", outcome.message());
}

/// Scenario: a text longer than the limit, cut in the middle of a character.
/// Guarantee: kept up to the last whole character, and counted.
#[test]
fn long_texts_are_cut() {
    let limits = Limits { max_text_bytes: 4, ..Limits::default() };
    let (told, outcome) = told(&request(&[good_span().bytes(5, "abcéf")]), &limits).unwrap();
    assert_eq!(outcome.cut_texts, 1);
    assert!(told.lines[2].contains("name: \"abc\""), "{}", told.lines[2]);
}

/// Scenario: requests that are cut, mistyped or garbage.
/// Guarantee: the error names the field by its path, and the byte.
#[test]
fn broken_bytes_are_located() {
    let error = |bytes: &[u8]| told(bytes, &Limits::default()).unwrap_err().to_string();
    let whole = request(&[good_span(), good_span().bytes(5, "name")]);
    assert_eq!(
        error(&whole[..whole.len() - 1]),
        format!(
            "resource_spans[0] is cut short: {} bytes announced, {} left (byte 2)",
            whole.len() - 2,
            whole.len() - 3
        )
    );
    let mistyped = request(&[good_span(), good_span().varint(5, 7)]);
    assert_eq!(
        error(&mistyped),
        format!(
            "resource_spans[0].scope_spans[0].spans[1].name has wire type 0, length-delimited (2) expected (byte {})",
            mistyped.len() - 1
        )
    );
    assert!(error(b"\x07").starts_with("request is followed by a field number that protobuf does not allow"));
    let too_large = told(&[0; 11], &Limits { max_bytes: 10, ..Limits::default() }).unwrap_err();
    assert_eq!(too_large, DecodeError::TooLarge { found: 11, limit: 10 });
}
