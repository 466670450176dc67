//! Random traces and queries: the compiled evaluator against the obvious one, and the promises of the planner.

#![allow(clippy::unwrap_used)]

mod support;

use hotspan_traceql::ast::{Query, QueryBody};
use hotspan_traceql::memory::MemoryTrace;
use hotspan_traceql::{MetricsLimits, Program, Spanset, TimeGrid, TraceView, editor, parse, parse_syntax};
use proptest::prelude::*;
use support::{generate, reference};

fn run(program: &Program, trace: &MemoryTrace) -> Vec<Spanset> {
    let source = trace.bind(program.fields());
    let view = program.view(&source);
    program.search().unwrap().evaluate(&view)
}

/// Cases for each property; `PROPTEST_CASES` overrides.
fn config() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(1500);
    ProptestConfig { cases, max_global_rejects: 100_000, failure_persistence: None, ..ProptestConfig::default() }
}

/// The query, unless the checker refuses it (a split spanset under a structural operator).
fn checked(text: &str) -> Option<Query> {
    let query = parse_syntax(text).unwrap_or_else(|error| panic!("{}", error.render(text)));
    parse(text).ok().map(|_| query)
}

proptest! {
    #![proptest_config(config())]

    /// Scenario: any pipeline over any trace, with orphans, cycles, repeated ids and values of every type.
    /// Guarantee: spansets and their attributes are those of the reference evaluator.
    #[test]
    fn search_agrees_with_the_reference(trace in generate::trace(), text in generate::pipeline()) {
        let Some(query) = checked(&text) else { return Ok(()) };
        let program = Program::compile(&query).unwrap();
        prop_assert_eq!(run(&program, &trace), reference::search(&query, &trace), "{}", text);
    }

    /// Scenario: any pipeline over any trace, asked of the prefilter first.
    /// Guarantee: a trace that gives a result is never skipped.
    #[test]
    fn the_prefilter_loses_nothing(trace in generate::trace(), text in generate::pipeline()) {
        let Some(query) = checked(&text) else { return Ok(()) };
        let program = Program::compile(&query).unwrap();
        let passes = program.prefilter().may_match(&trace.bind(program.fields()));
        prop_assert!(passes || reference::search(&query, &trace).is_empty(), "{}", text);
    }

    /// Scenario: a single condition, which needs no whole trace unless it asks for structure.
    /// Guarantee: judging spans one by one gives the search's spans; the condition to push down contains them, and is
    /// equal to them when it says so.
    #[test]
    fn span_filters_agree(trace in generate::trace(), condition in generate::condition()) {
        let text = format!("{{ {condition} }}");
        let Some(query) = checked(&text) else { return Ok(()) };
        let program = Program::compile(&query).unwrap();
        let source = trace.bind(program.fields());
        let Some(filter) = program.search().unwrap().span_filter() else {
            prop_assert!(program.needs().whole_trace);
            return Ok(());
        };
        let batch = TraceView::of_batch(&source);
        let mut selected = Vec::new();
        filter.select(&batch, 0..trace.spans.len(), &mut selected);
        let found = reference::search(&query, &trace).pop().map_or(vec![], |set| set.spans);
        prop_assert_eq!(&selected, &found, "{}", text);
        let pushed: Vec<u32> =
            (0..trace.spans.len() as u32).filter(|span| filter.condition().holds(&source, *span as usize)).collect();
        prop_assert!(found.iter().all(|span| pushed.contains(span)), "{}", text);
        prop_assert!(!filter.is_exact() || pushed == found, "{}", text);
    }

    /// Scenario: any generated query, written out and read back.
    /// Guarantee: the tree is the same, and so is the second writing.
    #[test]
    fn display_reads_back(text in generate::pipeline(), tail in prop::sample::select(vec![
        "", " | flame(cpu)", " | top(10, \"a b\")", " | diff({ .x = 1 } | count() > 2, process_cpu:cpu:nanoseconds:cpu:nanoseconds)",
        " | rate() by(.x, name) | topk(3) > 2", " | quantile_over_time(duration, .5, 0.99) with(exemplars=3)",
        " | compare({ status = error }, 5, 1, 2)", " | histogram_over_time(span.\"a b\") >= 1.5s",
    ])) {
        let text = format!("{text}{tail}");
        let query = parse_syntax(&text).unwrap();
        let written = query.to_string();
        let again = parse_syntax(&written).map_err(|error| TestCaseError::fail(error.render(&written)))?;
        prop_assert_eq!(&query, &again, "{}", written);
        prop_assert_eq!(again.to_string(), written);
    }

    /// Scenario: a trace whose spans arrive in another order.
    /// Guarantee: the same spans are found, since nothing depends on the order (rule R3).
    #[test]
    fn order_of_spans_does_not_matter(
        trace in generate::trace(),
        text in generate::pipeline(),
        shuffle in prop::collection::vec(any::<u32>(), 14),
    ) {
        let mut ids: Vec<_> = trace.spans.iter().map(|span| span.id).collect();
        ids.sort();
        ids.dedup();
        prop_assume!(ids.len() == trace.spans.len());
        let Some(query) = checked(&text) else { return Ok(()) };
        let program = Program::compile(&query).unwrap();
        let mut order: Vec<usize> = (0..trace.spans.len()).collect();
        order.sort_by_key(|at| shuffle[*at]);
        let mut shuffled = trace.clone();
        shuffled.spans = order.iter().map(|at| trace.spans[*at].clone()).collect();
        let found = |trace: &MemoryTrace| {
            let mut sets: Vec<Vec<_>> = run(&program, trace)
                .into_iter()
                .map(|set| {
                    let mut ids: Vec<_> = set.spans.iter().map(|span| trace.spans[*span as usize].id).collect();
                    ids.sort();
                    ids
                })
                .collect();
            sets.sort();
            sets
        };
        // Sums of floats depend on order in their last digit; counting them equal is not what this is about.
        prop_assume!(!text.contains("sum(") && !text.contains("avg("));
        prop_assert_eq!(found(&trace), found(&shuffled), "{}", text);
    }

    /// Scenario: spans of several traces folded by two workers that split the traces, and merged in either order.
    /// Guarantee: counts equal the reference's, and merging gives what one worker alone would have given.
    #[test]
    fn metrics_merge(
        traces in prop::collection::vec(generate::trace(), 1..4),
        cut in 0usize..4,
        text in generate::pipeline(),
        by in prop::sample::select(vec!["", " by(name)", " by(span.x, resource.service.name)", " by(event.x)"]),
        function in prop::sample::select(vec![
            "rate()", "count_over_time()", "min_over_time(duration)", "max_over_time(.x)", "sum_over_time(duration)",
            "avg_over_time(span.y)", "quantile_over_time(duration, .5, .9)", "histogram_over_time(.x)",
        ]),
    ) {
        let text = format!("{text} | {function}{by}");
        let Some(query) = checked(&text) else { return Ok(()) };
        let program = Program::compile(&query).unwrap();
        let metrics = program.metrics().unwrap();
        let grid = TimeGrid::range(0, 8_000_000, 3_000_000).unwrap();
        let fold = |traces: &[MemoryTrace]| {
            let mut state = metrics.start(grid, MetricsLimits::default());
            for trace in traces {
                let source = trace.bind(program.fields());
                metrics.observe_trace(&mut state, &program.view(&source)).unwrap();
                if !program.needs().whole_trace {
                    let mut streamed = metrics.start(grid, MetricsLimits::default());
                    metrics.observe_batch(&mut streamed, &TraceView::of_batch(&source), 0..trace.spans.len()).unwrap();
                    let mut alone = metrics.start(grid, MetricsLimits::default());
                    metrics.observe_trace(&mut alone, &program.view(&source)).unwrap();
                    assert_eq!(format!("{:?}", metrics.finish(streamed)), format!("{:?}", metrics.finish(alone)));
                }
            }
            state
        };
        let whole = metrics.finish(fold(&traces));
        let cut = cut.min(traces.len());
        let (left, right) = (fold(&traces[..cut]), fold(&traces[cut..]));
        let mut first = left.clone();
        first.merge(&right).unwrap();
        let mut second = right;
        second.merge(&left).unwrap();
        for merged in [metrics.finish(first), metrics.finish(second)] {
            prop_assert_eq!(merged.len(), whole.len());
            for (one, other) in merged.iter().zip(&whole) {
                prop_assert_eq!(&one.labels, &other.labels);
                prop_assert_eq!(one.points.len(), other.points.len());
                for (a, b) in one.points.iter().zip(&other.points) {
                    prop_assert!((a.value - b.value).abs() <= 1e-9 * a.value.abs(), "{} {}", a.value, b.value);
                }
            }
        }
        if function == "count_over_time()" {
            let QueryBody::Metrics(hotspan_traceql::ast::MetricsExpr::Query(leaf)) = &query.body else { panic!() };
            let expected: usize =
                traces.iter().map(|trace| reference::observed(&leaf.pipeline.stages, trace).len()).sum();
            let counted: f64 = whole.iter().flat_map(|series| &series.points).map(|point| point.value).sum();
            prop_assert_eq!(counted, expected as f64, "{}", text);
        }
    }

    /// Scenario: a finished condition read leniently, as the tag endpoints do.
    /// Guarantee: every span the query matches passes.
    #[test]
    fn lenient_conditions_are_wider(trace in generate::trace(), condition in generate::condition()) {
        let text = format!("{{ {condition} }}");
        let Some(query) = checked(&text) else { return Ok(()) };
        let Ok(Some((fields, wider))) = editor::lenient_condition(&text) else { return Ok(()) };
        let source = trace.bind(&fields);
        for set in reference::search(&query, &trace) {
            for span in set.spans {
                prop_assert!(wider.holds(&source, span as usize), "{}", text);
            }
        }
    }

    /// Scenario: random characters, and random words of the language in random order.
    /// Guarantee: nothing panics; an error lies inside the text and renders; the editor answers at every cursor.
    #[test]
    fn any_text_is_survived(text in prop_oneof![
        any::<String>(),
        prop::collection::vec(prop::sample::select(vec![
            "{", "}", "(", ")", "|", "&&", "||", ">", "<", ">>", "!>>", "&~", "!~", "=~", "=", "!=", "!", "-", "+", "^",
            "*", "/", ".x", "span.y", "span.\"", "resource.", "parent.span.x", "duration", "span:id", "event:", "name",
            "\"a\"", "\"\\", "`b`", "`", "1", "1.5", "10ms", "1h30", "99999999999999999999", "nil", "true", "error",
            "client", "count()", "avg(", "by(", "coalesce()", "select(", "rate()", "quantile_over_time(", "compare(",
            "topk(2)", "with(", "sample=true", ",", "flame(cpu)", "diff(", "//", "\n", "é", "profile.cpu", "profile.x",
        ]), 0..24).prop_map(|words| words.join(" ")),
        prop::collection::vec(prop::sample::select(vec!["{", "(", "!", "-", "}", ")", ".a", "1", "|", "&"]), 0..400)
            .prop_map(|words| words.concat()),
    ]) {
        match parse(&text) {
            Ok(query) => {
                Program::compile(&query).unwrap();
                prop_assert_eq!(parse(&query.to_string()).unwrap(), query);
            }
            Err(error) => {
                prop_assert!(error.range.start <= text.len() && error.range.end <= text.len().max(error.range.start));
                prop_assert!(!error.render(&text).is_empty());
                prop_assert!(!error.message.is_empty());
            }
        }
        let classes = editor::highlight(&text);
        prop_assert!(classes.windows(2).all(|pair| pair[0].range.end <= pair[1].range.start));
        let _ = editor::lenient_condition(&text);
        for cursor in 0..=text.len().min(60) {
            let completions = editor::complete(&text, cursor);
            prop_assert!(completions.replace.end <= text.len());
        }
    }
}

/// Scenario: deep nesting of every kind, and chains of every operator as long as the text limit allows.
/// Guarantee: deep trees are refused by name; flat chains of `&&` and `||` work at any length; nothing overflows.
#[test]
fn depth_is_bounded_and_chains_are_not() {
    let deep = [
        format!("{{ {}.a{} }}", "(".repeat(5000), ")".repeat(5000)),
        format!("{{ {}.a }}", "!".repeat(5000)),
        format!("{{ {}.a > 1 }}", "- ".repeat(5000)),
        format!("{}{{ }}{}", "(".repeat(5000), ")".repeat(5000)),
        format!("{{ .a{} > 1 }}", " + 1".repeat(5000)),
        format!("{{ .a{} > 1 }}", " ^ 1".repeat(5000)),
        format!("{{ .a{} }}", " = 1".repeat(5000)),
        format!("{{ .a{} }}", " && .b || .c".repeat(5000)),
        format!("{{ }}{}", " > { }".repeat(5000)),
        format!("{{ }}{}", " && { }".repeat(5000)),
        format!("{{ }} | count(){} > 1", " + 1".repeat(5000)),
        format!("{}{{ }} | rate(){}", "(".repeat(5000), ")".repeat(5000)),
        format!("({{ }} | rate()){}", " * 2".repeat(5000)),
        format!("{{ }} | rate(){}", " > 2".repeat(5000)),
        format!("{{ }} | {}", "diff({ } | ".repeat(5000)),
    ];
    for text in &deep {
        let error = parse(text).unwrap_err();
        assert!(!error.render(text).is_empty());
    }
    for op in ["&&", "||"] {
        let long = format!("{{ .a = 1{} }}", format!(" {op} .a = 1").repeat(10_000));
        assert!(long.len() < hotspan_traceql::MAX_QUERY_BYTES);
        let program = Program::new(&long).unwrap();
        assert_eq!(program.fields().len(), 1);
    }
    let too_long = format!("{{ .a = \"{}\" }}", "x".repeat(hotspan_traceql::MAX_QUERY_BYTES));
    assert!(parse(&too_long).unwrap_err().message.contains("at most 131072"));
}

/// Scenario: a trace of 250,000 spans in one chain, and one where all have the same parent.
/// Guarantee: structural operators answer in time, without recursion.
#[test]
fn large_traces_are_survived() {
    use hotspan_model::SpanId;
    use hotspan_traceql::memory::MemorySpan;
    let id = |at: u32| SpanId((u64::from(at) + 1).to_be_bytes());
    for is_chain in [true, false] {
        let spans = (0..250_000u32)
            .map(|at| MemorySpan {
                id: id(at),
                parent_id: at.checked_sub(1).map(|before| if is_chain { id(before) } else { id(0) }),
                name: if at % 2 == 0 { "a".into() } else { "b".into() },
                start_nanos: i64::from(at),
                ..MemorySpan::default()
            })
            .collect();
        let trace = MemoryTrace { spans, ..MemoryTrace::default() };
        for (op, chain, star) in
            [(">", 125_000, 125_000), (">>", 125_000, 125_000), ("~", 0, 125_000), ("&<<", 249_998, 1)]
        {
            let program = Program::new(&format!("{{ name = \"a\" }} {op} {{ name = \"b\" }}")).unwrap();
            let count = run(&program, &trace).first().map_or(0, |set| set.spans.len());
            // A star's root is an ancestor, but it is an "a"; its children have none below them.
            let expected = if is_chain {
                chain
            } else if op == "&<<" {
                0
            } else {
                star
            };
            assert_eq!(count, expected, "{op} {is_chain}");
        }
        let program = Program::new("{ } | by(span:id) | { name = \"a\" } > { name = \"b\" }").unwrap();
        assert!(run(&program, &trace).is_empty());
    }
}
