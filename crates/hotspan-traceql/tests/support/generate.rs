//! Random traces and random queries over a small vocabulary, so that conditions are met about half the time.

use hotspan_model::{SpanId, TraceId};
use hotspan_traceql::Value;
use hotspan_traceql::ast::*;
use hotspan_traceql::memory::*;
use proptest::prelude::*;

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        (0i64..4).prop_map(Value::Int),
        prop::sample::select(vec![0.5, 1.0, 2.0, -1.5]).prop_map(Value::Float),
        any::<bool>().prop_map(Value::Bool),
        prop::sample::select(vec!["a", "b", "ab", "nil", ""]).prop_map(|text| Value::Str(text.to_owned())),
        prop::collection::vec((0i64..4).prop_map(Value::Int), 0..3).prop_map(Value::Array),
        prop::collection::vec(prop::sample::select(vec!["a", "b"]).prop_map(|t| Value::Str(t.to_owned())), 0..3)
            .prop_map(Value::Array),
    ]
}

fn attributes() -> impl Strategy<Value = Attributes> {
    prop::collection::btree_map(prop::sample::select(vec!["x", "y", "z"]).prop_map(str::to_owned), value(), 0..3)
        .prop_map(|map| map.into_iter().collect())
}

fn id(number: u8) -> SpanId {
    SpanId([0, 0, 0, 0, 0, 0, 0, number])
}

prop_compose! {
    fn event()(name in prop::sample::select(vec!["a", "b"]), at in 0i64..4, attributes in attributes()) -> MemoryEvent {
        MemoryEvent { name: name.to_owned(), since_start_nanos: at * 1_000_000, attributes }
    }
}

prop_compose! {
    fn link()(span in 1u8..4, attributes in attributes()) -> MemoryLink {
        MemoryLink { trace_id: TraceId([1; 16]), span_id: id(span), attributes }
    }
}

prop_compose! {
    fn profile()(cpu in 0i64..4, samples in 0i64..4, functions in prop::collection::vec("[ab]", 0..3)) -> MemoryProfile {
        MemoryProfile { cpu_nanos: cpu * 1_000_000, wall_nanos: 2_000_000, samples, files: functions.clone(), functions }
    }
}

prop_compose! {
    /// Parent links point anywhere: to earlier and later spans, to the span itself, to nothing. Ids may repeat.
    fn span()(
        number in 1u8..14,
        parent in prop::option::weighted(0.85, 1u8..15),
        name in prop::sample::select(vec!["a", "b", "c"]),
        // One more of each than has a name.
        kind in 0i8..7,
        status in 0i8..4,
        start in 0i64..8,
        duration in 0i64..5,
        own in attributes(),
        resource in attributes(),
        service in prop::option::of(prop::sample::select(vec!["a", "b"])),
        instrumentation in attributes(),
        events in prop::collection::vec(event(), 0..3),
        links in prop::collection::vec(link(), 0..2),
        profile in prop::option::of(profile()),
    ) -> MemorySpan {
        let mut resource = resource;
        if let Some(service) = service {
            resource.push(("service.name".to_owned(), Value::Str(service.to_owned())));
        }
        MemorySpan {
            id: id(number),
            parent_id: parent.map(id),
            name: name.to_owned(),
            kind: Kind::from_number(kind),
            status: Status::from_number(status),
            status_message: if status == 2 { "a".to_owned() } else { String::new() },
            start_nanos: start * 1_000_000,
            duration_nanos: duration * 1_000_000,
            attributes: own,
            resource,
            instrumentation_name: "a".to_owned(),
            instrumentation_version: "b".to_owned(),
            instrumentation,
            events,
            links,
            profile,
        }
    }
}

/// Any trace, sound or broken.
pub fn trace() -> impl Strategy<Value = MemoryTrace> {
    prop::collection::vec(span(), 1..14).prop_map(|spans| MemoryTrace { id: TraceId([2; 16]), spans })
}

fn attribute_name() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        ".x",
        ".y",
        "span.x",
        "span.y",
        "span.z",
        "resource.x",
        "resource.service.name",
        "event.x",
        "link.y",
        "instrumentation.x",
        "parent.x",
        "parent.span.y",
        "parent.resource.service.name",
    ])
    .prop_map(str::to_owned)
}

fn numeric_field() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => attribute_name(),
        2 => prop::sample::select(vec![
            "duration", "span:childCount", "nestedSetLeft", "nestedSetRight", "nestedSetParent", "traceDuration",
            "event:timeSinceStart", "profile.cpu", "profile.samples",
        ])
        .prop_map(str::to_owned),
    ]
}

fn text_field() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => attribute_name(),
        2 => prop::sample::select(vec![
            "name", "statusMessage", "rootName", "rootServiceName", "event:name", "link:spanID", "span:id",
            "span:parentID", "instrumentation:name", "profile.function", "profile.file",
        ])
        .prop_map(str::to_owned),
    ]
}

fn numeric_expr() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        numeric_field(),
        (-3i64..4).prop_map(|number| number.to_string()),
        prop::sample::select(vec!["0.5", "2.0", "1ms", "3ms"]).prop_map(str::to_owned),
    ];
    leaf.prop_recursive(2, 6, 2, |inner| {
        prop_oneof![
            (inner.clone(), prop::sample::select(vec!["+", "-", "*"]), inner.clone())
                .prop_map(|(left, op, right)| format!("({left} {op} {right})")),
            (inner.clone(), prop::sample::select(vec!["/", "%"]), 1i64..4)
                .prop_map(|(left, op, right)| format!("({left} {op} {right})")),
            inner.prop_map(|of| format!("-({of})")),
        ]
    })
}

fn comparison() -> impl Strategy<Value = String> {
    let order = || prop::sample::select(vec!["=", "!=", "<", "<=", ">", ">="]);
    let equal = || prop::sample::select(vec!["=", "!="]);
    let text = || prop::sample::select(vec!["a", "b", "ab", "nil", "", "0000000000000002", "3"]);
    prop_oneof![
        3 => (numeric_expr(), order(), numeric_expr()).prop_map(|(left, op, right)| format!("{left} {op} {right}")),
        3 => (text_field(), order(), text()).prop_map(|(left, op, right)| format!("{left} {op} \"{right}\"")),
        1 => (text(), order(), text_field()).prop_map(|(left, op, right)| format!("\"{left}\" {op} {right}")),
        2 => (text_field(), prop::sample::select(vec!["=~", "!~"]),
            prop::sample::select(vec!["a", "a|b", "a.*", ".*b", ".*", "[ab]+", ""]))
            .prop_map(|(left, op, right)| format!("{left} {op} \"{right}\"")),
        1 => (equal(), prop::sample::select(vec!["ok", "error", "unset", "2"])).prop_map(|(op, of)| format!("status {op} {of}")),
        1 => (equal(), prop::sample::select(vec!["server", "client"])).prop_map(|(op, of)| format!("kind {op} {of}")),
        1 => (attribute_name(), equal(), any::<bool>()).prop_map(|(left, op, right)| format!("{left} {op} {right}")),
        2 => (prop::sample::select(vec![
                ".x", "span.x", "resource.y", "event.x", "link.x", "instrumentation.z", "parent", "parent.x",
                "event:name", "profile.cpu", "profile.function",
            ]), equal()).prop_map(|(left, op)| format!("{left} {op} nil")),
        1 => attribute_name(),
        1 => attribute_name().prop_map(|name| format!("!{name}")),
        1 => any::<bool>().prop_map(|truth| truth.to_string()),
    ]
}

/// The text of a condition.
pub fn condition() -> impl Strategy<Value = String> {
    comparison().prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            (prop::collection::vec(inner.clone(), 2..4), prop::sample::select(vec![" && ", " || "]))
                .prop_map(|(parts, op)| format!("({})", parts.join(op))),
            (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| format!("{a} || {b} && {c}")),
            inner.prop_map(|of| format!("!({of})")),
        ]
    })
}

fn scalar() -> impl Strategy<Value = String> {
    let aggregate = prop_oneof![
        Just("count()".to_owned()),
        (prop::sample::select(vec!["avg", "min", "max", "sum"]), numeric_field())
            .prop_map(|(op, of)| format!("{op}({of})")),
    ];
    let literal = prop_oneof![(0i64..5).prop_map(|n| n.to_string()), Just("2ms".to_owned()), Just("1.5".to_owned())];
    (
        aggregate.clone(),
        prop::option::of((prop::sample::select(vec!["+", "-", "*"]), aggregate)),
        prop::sample::select(vec!["=", "!=", "<", ">", ">="]),
        literal,
    )
        .prop_map(|(first, second, op, literal)| match second {
            Some((arithmetic, second)) => format!("{first} {arithmetic} {second} {op} {literal}"),
            None => format!("{first} {op} {literal}"),
        })
}

fn spanset() -> impl Strategy<Value = String> {
    let filter =
        prop_oneof![4 => condition().prop_map(|condition| format!("{{ {condition} }}")), 1 => Just("{ }".to_owned())];
    filter.prop_recursive(3, 8, 2, |inner| {
        let op = prop::sample::select(vec![
            "&&", "||", ">", "<", ">>", "<<", "~", "!>", "!<", "!>>", "!<<", "!~", "&>", "&<", "&>>", "&<<", "&~",
        ]);
        prop_oneof![
            4 => (inner.clone(), op, inner.clone()).prop_map(|(left, op, right)| format!("({left} {op} {right})")),
            1 => (inner.clone(), scalar()).prop_map(|(spans, scalar)| format!("({spans} | {scalar})")),
            1 => (inner.clone(), inner.clone(), prop::sample::select(vec!["=", ">", "<="]))
                .prop_map(|(left, right, op)| format!("(({left} | count()) {op} ({right} | count()))")),
            1 => (inner.clone(), inner).prop_map(|(first, second)| format!("({first} | {second})")),
        ]
    })
}

/// The text of a pipeline without metrics or sink.
pub fn pipeline() -> impl Strategy<Value = String> {
    let stage = prop_oneof![
        2 => spanset(),
        2 => scalar(),
        1 => prop_oneof![numeric_expr().prop_filter("depends on the span", |e| e.contains(|c: char| c.is_alphabetic() && c != 'm' && c != 's')), text_field()]
            .prop_map(|of| format!("by({of})")),
        1 => Just("coalesce()".to_owned()),
        1 => attribute_name().prop_map(|name| format!("select({name}, nestedSetParent)")),
    ];
    (spanset(), prop::collection::vec(stage, 0..3)).prop_map(|(first, stages)| {
        let mut all = vec![first];
        all.extend(stages);
        all.join(" | ")
    })
}
