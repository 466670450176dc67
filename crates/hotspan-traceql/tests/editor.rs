//! Completion, colours and lenient reading, as the web page and the tag endpoints use them.

#![allow(clippy::unwrap_used)]

use hotspan_traceql::ast::{Field, Intrinsic, Scope};
use hotspan_traceql::editor::{Completion, TokenClass, complete, highlight, lenient_condition};
use hotspan_traceql::{SpanCondition, parse_field};

/// Completions at the `^` of a text.
fn at(marked: &str) -> (Vec<String>, String) {
    let cursor = marked.find('^').unwrap();
    let query = marked.replacen('^', "", 1);
    let found = complete(&query, cursor);
    let items = found
        .items
        .iter()
        .map(|item| match item {
            Completion::Text(text) => text.clone(),
            Completion::Operator(op) => format!("op {op}"),
            Completion::Attribute { scope, of_parent } => format!("attribute {scope:?} {of_parent}"),
            Completion::Value { field } => format!("value of {field}"),
        })
        .collect();
    (items, found.prefix)
}

/// Scenario: the cursor at every kind of place in queries being typed.
/// Guarantee: what fits is offered, with the part already typed.
#[test]
fn completes_in_place() {
    let cases: [(&str, &str, &[&str]); 28] = [
        ("^", "", &["{", "("]),
        ("{ ^", "", &["span.", "duration", "attribute Unscoped false"]),
        ("{ dur^", "dur", &["duration"]),
        ("{ span:^", "span:", &["span:duration", "span:id"]),
        ("{ span.^ }", "", &["attribute Span false"]),
        ("{ span.http.me^ }", "http.me", &["attribute Span false"]),
        ("{ .ht^", "ht", &["attribute Unscoped false"]),
        ("{ parent.resource.s^", "s", &["attribute Resource true"]),
        ("{ resource.service.name ^", "", &["op =", "op =~"]),
        ("{ resource.service.name = ^", "", &["value of resource.service.name", "nil"]),
        ("{ resource.service.name = \"sh^", "sh", &["value of resource.service.name"]),
        ("{ status = ^", "", &["unset", "ok", "error"]),
        ("{ status = e^", "e", &["error"]),
        ("{ kind != ^", "", &["server", "client"]),
        ("{ name = \"x\" ^", "", &["op &&", "op ||", "op }"]),
        ("{ name = \"x\" && ^", "", &["span.", "duration"]),
        ("{ } ^", "", &["op |", "op >>", "op &>>", "with("]),
        ("{ } >> ^", "", &["{"]),
        ("{ } | ^", "", &["count(", "rate(", "by(", "flame("]),
        ("{ } | ra^", "ra", &["rate("]),
        ("{ } | avg(^", "", &["duration", "span."]),
        ("{ } | by(resource.^", "", &["attribute Resource false"]),
        ("{ } | rate() ^", "", &["by(", "op |"]),
        ("{ } | rate() by(^", "", &["name", "span."]),
        ("{ } | rate() | ^", "", &["topk(", "bottomk("]),
        ("{ } | flame(^", "", &["cpu", "wall"]),
        ("{ } | diff(^", "", &["{"]),
        ("{ } with(^", "", &["most_recent=true"]),
    ];
    for (marked, prefix, expected) in cases {
        let (items, found_prefix) = at(marked);
        assert_eq!(found_prefix, prefix, "{marked}");
        for item in expected {
            assert!(items.iter().any(|found| found == item), "{marked}: {item} is not in {items:?}");
        }
    }
}

/// Scenario: a word half typed in the middle of a query.
/// Guarantee: exactly its bytes are replaced.
#[test]
fn replaces_what_was_typed() {
    let found = complete("{ span.http.me = 1 }", 14);
    assert_eq!((found.replace.start, found.replace.end), (7, 14));
    let found = complete("{ é = dur }", 10);
    assert_eq!((found.replace.start, found.replace.end), (7, 10));
}

/// Scenario: one query with a word of every class.
/// Guarantee: each has its class, and broken text is marked instead of stopping the colours.
#[test]
fn colours_every_class() {
    let query = "{ span.x = \"a\" && duration > 1s } | count() > 2 | by(.y) with(foo=true) ; 'x'";
    let classes: Vec<(&str, TokenClass)> =
        highlight(query).iter().map(|token| (&query[token.range.start..token.range.end], token.class)).collect();
    for expected in [
        ("{", TokenClass::Punctuation),
        ("span.x", TokenClass::Attribute),
        ("\"a\"", TokenClass::String),
        ("&&", TokenClass::Operator),
        ("duration", TokenClass::Intrinsic),
        ("1s", TokenClass::Number),
        ("count", TokenClass::Function),
        ("by", TokenClass::Keyword),
        ("foo", TokenClass::Word),
        ("true", TokenClass::Keyword),
        (";", TokenClass::Error),
    ] {
        assert!(classes.contains(&expected), "{expected:?} is not in {classes:?}");
    }
}

/// The condition as text, for comparing.
fn lenient(query: &str) -> String {
    match lenient_condition(query).unwrap() {
        None => "none".to_owned(),
        Some((fields, condition)) => {
            fn write(condition: &SpanCondition, fields: &hotspan_traceql::FieldTable) -> String {
                let list = |parts: &[SpanCondition], name: &str| {
                    let parts: Vec<String> = parts.iter().map(|part| write(part, fields)).collect();
                    format!("{name}({})", parts.join(", "))
                };
                match condition {
                    SpanCondition::All(parts) => list(parts, "all"),
                    SpanCondition::Any(parts) => list(parts, "any"),
                    SpanCondition::Test(test) => {
                        let kind = format!("{:?}", test.test);
                        format!("{} {}", fields.get(test.field).unwrap(), kind.split(['(', ' ']).next().unwrap())
                    }
                    other => format!("{other:?}"),
                }
            }
            write(&condition, &fields)
        }
    }
}

/// Scenario: queries cut off while being typed, as Grafana sends them with a tag-values request.
/// Guarantee: finished matchers filter, unfinished ones are dropped, what is not understood means no filter.
#[test]
fn reads_half_typed_queries() {
    for (query, expected) in [
        ("", "none"),
        ("{", "none"),
        ("{ }", "none"),
        ("nonsense", "none"),
        ("{ name = \"a\" }", "name Compare"),
        ("{ name = \"a\" && .x =", "name Compare"),
        ("{ name = \"a\" && .x = }", "name Compare"),
        ("{ .x = && name = \"a\" }", "name Compare"),
        ("{ name = \"a\" && span.y > 3", "all(name Compare, span.y Compare)"),
        ("{ name = \"a\" && resource.z =~ \"b.*\" && ", "all(name Compare, resource.z Matches)"),
        ("{ name = \"a\" || name = \"b\" }", "name In"),
        ("{ name = \"a\" || .x = }", "none"),
        ("{ name = 3 && status = error }", "status Compare"),
        ("{ name = \"a\" } | rate() by(", "name Compare"),
        ("{ name = \"a\" } >> { status = error }", "any(name Compare, status Compare)"),
        ("{ !(name = \"a\") }", "none"),
        ("{ name = \"a\" || name = \"b\" && .x = 1 }", "none"),
    ] {
        assert_eq!(lenient(query), expected, "{query}");
    }
    let long = format!("{{ name = \"a\"{} }}", " || .x = 1".repeat(100));
    assert!(lenient_condition(&long).unwrap_err().message.contains("more than 100"));
}

/// Scenario: tags as they stand in the path of a request.
/// Guarantee: names of fields are read, anything else is refused.
#[test]
fn parses_tags() {
    assert_eq!(parse_field("resource.service.name").unwrap(), Field::attribute(Scope::Resource, "service.name"));
    assert_eq!(parse_field(".http/path").unwrap(), Field::attribute(Scope::Unscoped, "http/path"));
    assert_eq!(parse_field("span:name").unwrap(), Field::Intrinsic(Intrinsic::Name));
    assert_eq!(parse_field("name").unwrap(), Field::Intrinsic(Intrinsic::Name));
    assert_eq!(parse_field("span.\"a b\"").unwrap(), Field::attribute(Scope::Span, "a b"));
    for bad in ["", "foo", "foo.bar", "1", ".a, .b", ".a) | by(.b", "span."] {
        assert!(parse_field(bad).is_err(), "{bad}");
    }
}
