//! What a server relies on beyond the numbers: limits, exemplars, steps and hints.

#![allow(clippy::unwrap_used)]

use hotspan_model::{SpanId, TraceId};
use hotspan_traceql::ast::Sink;
use hotspan_traceql::memory::{MemorySpan, MemoryTrace};
use hotspan_traceql::{MetricsError, MetricsLimits, Program, Series, TimeGrid};

fn trace(spans: u64) -> MemoryTrace {
    let spans = (0..spans)
        .map(|at| MemorySpan {
            id: SpanId((at + 1).to_be_bytes()),
            name: format!("operation {at}"),
            start_nanos: at as i64 * 1_000_000,
            duration_nanos: (at as i64 + 1) * 1_000_000,
            ..MemorySpan::default()
        })
        .collect();
    MemoryTrace { id: TraceId([7; 16]), spans }
}

fn run(text: &str, trace: &MemoryTrace, limits: MetricsLimits) -> Result<Vec<Series>, MetricsError> {
    let program = Program::new(text).unwrap();
    let metrics = program.metrics().unwrap();
    let mut state = metrics.start(TimeGrid::range(0, 1_000_000_000, 100_000_000)?, limits);
    let source = trace.bind(program.fields());
    metrics.observe_trace(&mut state, &program.view(&source))?;
    Ok(metrics.finish(state))
}

/// Scenario: groups and points beyond what a server allows.
/// Guarantee: an error that names the limit, never a partial answer that looks whole.
#[test]
fn limits_are_named() {
    let limits = MetricsLimits { max_series: 10, ..MetricsLimits::default() };
    let error = run("{ } | rate() by(name)", &trace(11), limits).unwrap_err();
    assert_eq!(error, MetricsError::TooManySeries { limit: 10 });
    assert!(error.to_string().contains("max series"));
    assert!(run("{ } | rate() by(name)", &trace(10), limits).is_ok());
    let limits = MetricsLimits { max_points: 50, ..MetricsLimits::default() };
    let error = run("{ } | rate() by(name)", &trace(11), limits).unwrap_err();
    assert_eq!(error, MetricsError::TooManyPoints { limit: 50 });
}

/// Scenario: more spans than exemplars are wanted, folded at once and in two halves.
/// Guarantee: as many as allowed, with ids, times and values of real spans, the same however the work was split.
#[test]
fn exemplars_do_not_depend_on_the_split() {
    let whole = trace(500);
    let limits = MetricsLimits { exemplars: 20, ..MetricsLimits::default() };
    let series = run("{ } | max_over_time(duration)", &whole, limits).unwrap();
    let exemplars = &series[0].exemplars;
    assert_eq!(exemplars.len(), 20);
    for exemplar in exemplars {
        let at = u64::from_be_bytes(exemplar.span_id.0) - 1;
        assert_eq!(exemplar.timestamp_nanos, at as i64 * 1_000_000);
        assert!((exemplar.value - (at as f64 + 1.0) / 1e3).abs() < 1e-12);
    }
    let program = Program::new("{ } | max_over_time(duration)").unwrap();
    let metrics = program.metrics().unwrap();
    let grid = TimeGrid::range(0, 1_000_000_000, 100_000_000).unwrap();
    let mut states = [(0, 250), (250, 500)].map(|(from, to)| {
        let half = MemoryTrace { spans: whole.spans[from..to].to_vec(), ..whole.clone() };
        let source = half.bind(program.fields());
        let mut state = metrics.start(grid, limits);
        metrics.observe_trace(&mut state, &program.view(&source)).unwrap();
        state
    });
    let second = states[1].clone();
    states[0].merge(&second).unwrap();
    assert_eq!(metrics.finish(states[0].clone()), series);
    assert_eq!(run("{ } | rate() with(exemplars=3)", &whole, limits).unwrap()[0].exemplars.len(), 3);
    assert!(run("{ } | rate() with(exemplars=false)", &whole, limits).unwrap()[0].exemplars.is_empty());
}

/// Scenario: the hint for better quantiles on evenly spread durations of 1 to 500 ms.
/// Guarantee: within half a percent, where the default is as coarse as Tempo's.
#[test]
fn precise_quantiles_are_a_hint() {
    let whole = trace(500);
    let program = |text: &str| {
        let program = Program::new(text).unwrap();
        let metrics = program.metrics().unwrap();
        let mut state = metrics.start(TimeGrid::instant(0, 1_000_000_000).unwrap(), MetricsLimits::default());
        let source = whole.bind(program.fields());
        metrics.observe_trace(&mut state, &program.view(&source)).unwrap();
        metrics.finish(state)[0].points[0].value
    };
    let coarse = program("{ } | quantile_over_time(duration, .5)");
    let precise = program("{ } | quantile_over_time(duration, .5) with(precise_quantiles=true)");
    assert!((precise / 0.25 - 1.0).abs() < 0.005, "{precise}");
    assert!((coarse / 0.25 - 1.0).abs() > 0.005, "{coarse}");
}

/// Scenario: states of different ranges.
/// Guarantee: they do not merge.
#[test]
fn different_ranges_do_not_merge() {
    let program = Program::new("{ } | rate()").unwrap();
    let metrics = program.metrics().unwrap();
    let mut one = metrics.start(TimeGrid::range(0, 10, 1).unwrap(), MetricsLimits::default());
    let other = metrics.start(TimeGrid::range(0, 20, 1).unwrap(), MetricsLimits::default());
    assert_eq!(one.merge(&other), Err(MetricsError::Mismatch));
}

/// Scenario: the questions an engine asks before it plans.
/// Guarantee: single-span queries stream, structure and trace fields need whole traces, sinks and baselines are told.
#[test]
fn plans_say_what_is_needed() {
    for (text, whole_trace, structure) in [
        ("{ name = \"a\" } | rate() by(resource.service.name)", false, false),
        ("{ name = \"a\" } || { name = \"b\" } | rate()", false, false),
        ("{ name = \"a\" } | by(.x) | rate()", false, false),
        ("{ name = \"a\" } && { name = \"b\" } | rate()", true, false),
        ("{ rootName = \"a\" } | rate()", true, false),
        ("{ } | rate() by(parent.span.x)", true, true),
        ("{ } > { } | rate()", true, true),
        ("{ .x = 1 }", false, false),
        ("{ .x = 1 } | select(span.y)", false, false),
        ("{ .x = 1 } | by(.y)", true, false),
        ("{ .x = 1 } | count() > 1", true, false),
        ("{ .x = 1 } | select(nestedSetLeft)", true, true),
    ] {
        let needs = Program::new(text).unwrap().needs();
        assert_eq!((needs.whole_trace, needs.structure), (whole_trace, structure), "{text}");
    }
    let program = Program::new("{ status = error } | diff({ status = ok } | count() > 1, cpu)").unwrap();
    assert!(matches!(program.sink(), Some(Sink::Diff { profile_type, .. }) if profile_type == "cpu"));
    let baseline = program.baseline().unwrap().unwrap();
    assert!(baseline.needs().whole_trace && baseline.sink().is_none());
    assert_eq!(program.fields().len(), 1);
}
