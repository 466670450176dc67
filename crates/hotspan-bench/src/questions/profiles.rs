//! Flame graphs, samples of spans and traces, and CPU over time.

use hotspan_generator::{SampleKind, Workload};
use hotspan_model::{SpanId, TraceId};
use serde_json::json;

use super::{Budget, Question, json, number};
use crate::expected::{Expected, SERVICE, SlowestSpans};
use crate::measure::{Call, Check};

const DAY: i64 = 24 * 3_600_000_000_000;
/// How many different spans or traces are asked for.
const PROBES: usize = 24;

pub(crate) fn profile_questions<'e>(workload: &'e Workload, expected: &'e Expected) -> Vec<Question<'e>> {
    let service = service_name(workload, SERVICE);
    let (from, until) = (expected.from, expected.hour_end);
    let flame = |name: &str, app: Option<&str>, until: i64, budget: Budget| {
        let sum: i64 = (0..workload.settings().services)
            .filter(|number| app.is_none() || *number == SERVICE)
            .map(|number| sum_until(expected, number, until))
            .sum();
        let app = app.map_or(String::new(), |app| format!("app={app}&"));
        let path = format!("/api/v1/profile?{app}type=cpu&from={from}&until={until}&format=json&max_nodes=8192");
        Question { name: name.to_owned(), calls: vec![(Call::get(path), ticks_are(sum))], budget }
    };
    let one_hour = Budget { peer: Some(80.0), peer_cpu: Some(135.0), cold: Some(16.0), warm: Some(4.0) };
    let all = Budget { peer_cpu: Some(4700.0), ..Budget::share(2400.0, 10.0) };
    let mut questions = vec![
        flame("flame graph, one service, 1 h", Some(service), until, one_hour),
        flame("flame graph, all services, 1 h", None, until, all),
        flame("flame graph, one service, 24 h", Some(service), from + DAY, Budget::none()),
        flame("flame graph, all services, 24 h", None, from + DAY, Budget::none()),
        cpu_by_service(workload, expected),
        cohort_flame(service, expected, expected.slowest(SERVICE, usize::MAX)),
    ];
    questions.extend(span_lookups(workload, expected));
    questions
}

/// The questions that must stay as fast however much is stored. What they ask for was stored first.
pub(crate) fn span_lookups<'e>(workload: &'e Workload, expected: &'e Expected) -> Vec<Question<'e>> {
    let spans = busy_spans(expected);
    let (from, until) = (expected.from, expected.hour_end);
    let call = |parameters: String, sum: i64| {
        let path = format!("/api/v1/profile?type=cpu&{parameters}&format=json&max_nodes=8192");
        (Call::get(path), ticks_are(sum))
    };
    let named = spans.iter().map(|(span, service, sum)| {
        let app = service_name(workload, *service);
        call(format!("app={app}&span_id={span}&from={from}&until={until}"), *sum)
    });
    let unnamed = spans.iter().map(|(span, _, sum)| call(format!("span_id={span}"), *sum));
    let of_traces = busy_traces(expected);
    let of_traces = of_traces.iter().map(|(trace, sum)| call(format!("trace_id={trace}"), *sum));
    let trace_budget = Budget { peer_cpu: Some(1600.0), ..Budget::share(800.0, 50.0) };
    vec![
        Question {
            name: "samples of a span, service named, 1 h".to_owned(),
            calls: named.collect(),
            budget: Budget::share(25.0, 5.0),
        },
        Question {
            name: "samples of a span, nothing else named".to_owned(),
            calls: unnamed.collect(),
            budget: trace_budget,
        },
        Question {
            name: "samples of a trace, service not named".to_owned(),
            calls: of_traces.collect(),
            budget: trace_budget,
        },
    ]
}

/// The flame graph of the slowest spans of a service in the first hour: thousands of them, found by a search.
pub(super) fn cohort_flame<'e>(service: &str, expected: &'e Expected, cohort: SlowestSpans) -> Question<'e> {
    let body = json!({
        "query": cohort.query(service),
        "type": "cpu",
        "from": expected.from,
        "to": expected.hour_end,
    });
    let spans = cohort.count;
    let sums_up = ticks_are(cohort.value);
    let check: Check<'e> = Box::new(move |body| {
        let selected = number(&json(body)?["exactness"]["selected_spans"]).unwrap_or(0.0) as u64;
        if selected != spans {
            return Err(format!("the cohort has {selected} spans, not {spans}"));
        }
        sums_up(body)
    });
    Question {
        name: format!("cohort flame graph, {spans} spans, 1 h"),
        calls: vec![(Call { path: "/api/v1/cohort/flame".to_owned(), body: Some(body.to_string()) }, check)],
        budget: Budget { cold: Some(1000.0), warm: Some(1000.0), ..Budget::none() },
    }
}

pub(super) fn service_name(workload: &Workload, number: u16) -> &str {
    workload.fleet().services.get(usize::from(number)).map_or("", |service| service.name.as_str())
}

/// Value of a service's samples before a moment that is the end of a window.
pub(super) fn sum_until(expected: &Expected, service: u16, until: i64) -> i64 {
    let series = expected.oracle.series(service, SampleKind::Cpu);
    series.iter().filter(|(start, _)| *start < until).map(|(_, value)| value).sum()
}

/// Spans of the first hour with the most samples, so that an empty answer can't be right.
pub(super) fn busy_spans(expected: &Expected) -> Vec<(SpanId, u16, i64)> {
    let kept = expected.oracle.spans_kept();
    let mut spans: Vec<_> =
        kept.into_iter().filter(|(_, sums)| sums.values[0] > 0 && sums.start < expected.hour_end).collect();
    // A stable sort, so that equal ones keep the order of their ids.
    spans.sort_by_key(|(_, sums)| std::cmp::Reverse(sums.samples));
    spans.into_iter().take(PROBES).map(|(id, sums)| (id, sums.service, sums.values[0])).collect()
}

pub(super) fn busy_traces(expected: &Expected) -> Vec<(TraceId, i64)> {
    let kept = expected.oracle.traces_kept();
    let traces = kept.into_iter().filter(|(_, sums)| sums.values[0] > 0 && sums.start < expected.hour_end);
    traces.take(PROBES).map(|(id, sums)| (id, sums.values[0])).collect()
}

/// A flamebearer whose root holds exactly this much.
fn ticks_are<'e>(sum: i64) -> Check<'e> {
    Box::new(move |body| {
        let answer = json(body)?;
        let ticks = number(&answer["flamebearer"]["numTicks"]).ok_or("the answer has no flamebearer.numTicks")?;
        if ticks as i64 == sum { Ok(()) } else { Err(format!("the flame graph sums to {ticks}, not to {sum}")) }
    })
}

pub(super) fn cpu_by_service<'e>(workload: &'e Workload, expected: &'e Expected) -> Question<'e> {
    let body = json!({
        "profileTypeID": "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
        "labelSelector": "{}",
        "start": expected.from / 1_000_000,
        "end": expected.hour_end / 1_000_000,
        "groupBy": ["service_name"],
        "step": 15.0,
    });
    let check: Check<'e> = Box::new(|body| {
        let answer = json(body)?;
        let series = answer["series"].as_array().ok_or("the answer has no series")?;
        for (service, facts) in workload.fleet().services.iter().enumerate() {
            let labelled = series.iter().find(|series| {
                let labels = series["labels"].as_array().map_or(&[][..], Vec::as_slice);
                labels.iter().any(|label| label["value"].as_str() == Some(&facts.name))
            });
            let points = labelled.and_then(|series| series["points"].as_array()).map_or(&[][..], Vec::as_slice);
            let sum: f64 = points.iter().filter_map(|point| number(&point["value"])).sum();
            let right = sum_until(expected, service as u16, expected.hour_end);
            if sum as i64 != right {
                return Err(format!("the points of {} sum to {sum}, not to {right}", facts.name));
            }
        }
        Ok(())
    });
    let path = "/querier.v1.QuerierService/SelectSeries".to_owned();
    Question {
        name: "CPU by service over 1 h, 15 s steps".to_owned(),
        calls: vec![(Call { path, body: Some(body.to_string()) }, check)],
        budget: Budget::share(300.0, 10.0),
    }
}
