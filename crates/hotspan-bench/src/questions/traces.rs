//! Traces by id, TraceQL searches and TraceQL metrics.

use hotspan_generator::Workload;
use hotspan_model::TraceId;

use super::profiles::service_name;
use super::{Budget, Question, json, number};
use crate::expected::{Expected, HOUR, SERVICE, Search};
use crate::http::escape;
use crate::measure::{Call, Check};

/// How many traces a search may return.
const LIMIT: usize = 20;
/// How many different traces are asked for.
const PROBES: usize = 24;
/// Spans end after the window that their trace starts in: no question about them ends earlier than this.
const SLACK_SECONDS: i64 = 600;

pub(crate) fn trace_questions<'e>(workload: &'e Workload, expected: &'e Expected) -> Vec<Question<'e>> {
    let mut questions = trace_lookups(expected);
    let service = service_name(workload, SERVICE);
    for search in Search::ALL {
        let (name, budget) = match search {
            Search::ServiceAndDuration => ("service and duration", Budget::share(33.0, 4.0)),
            Search::RareAttribute => ("rare attribute", Budget::share(94.0, 4.0)),
            Search::Regex => ("regex", Budget::share(85.0, 4.0)),
            Search::Count => ("count", Budget::share(60.0, 4.0)),
            Search::Structural => ("structural", Budget::share(450.0, 8.0)),
        };
        let path = format!("/api/search?q={}&{}&limit={LIMIT}", escape(&search.query(service)), seconds(expected));
        let check: Check<'e> = Box::new(move |body| found_are(body, expected, search));
        questions.push(Question {
            name: format!("TraceQL search: {name}"),
            calls: vec![(Call::get(path), check)],
            budget,
        });
    }
    questions.push(quantile(workload, expected));
    if expected.until > expected.hour_end {
        // Budgets are about one hour.
        for question in &mut questions[1..] {
            question.name.push_str(&format!(", {} h", (expected.until - expected.from) / HOUR));
            question.budget = Budget::none();
        }
    }
    questions
}

/// The questions that must stay as fast however much is stored.
pub(crate) fn trace_lookups<'e>(expected: &'e Expected) -> Vec<Question<'e>> {
    let kept = expected.oracle.traces_kept();
    let traces = kept.into_iter().filter(|(_, sums)| sums.start < expected.hour_end).take(PROBES);
    let calls = traces.map(|(trace, sums)| {
        let spans = sums.spans;
        let check: Check<'e> = Box::new(move |body| {
            let found = spans_in(&json(body)?);
            if found == spans { Ok(()) } else { Err(format!("the trace has {found} spans, not {spans}")) }
        });
        (Call::get(format!("/api/traces/{trace}")), check)
    });
    // Tempo took 45 to 100 ms.
    vec![Question { name: "trace by id".to_owned(), calls: calls.collect(), budget: Budget::share(72.0, 20.0) }]
}

fn seconds(expected: &Expected) -> String {
    let (from, until) = (expected.from / 1_000_000_000, expected.until / 1_000_000_000);
    format!("start={from}&end={}", until + SLACK_SECONDS)
}

fn spans_in(answer: &serde_json::Value) -> u64 {
    let list = |value: &serde_json::Value| value.as_array().cloned().unwrap_or_default();
    let scopes = list(&answer["batches"]).into_iter().flat_map(|batch| list(&batch["scopeSpans"]));
    scopes.map(|scope| scope["spans"].as_array().map_or(0, Vec::len) as u64).sum()
}

/// As many traces as there are, up to the limit, and none that does not match.
fn found_are(body: &[u8], expected: &Expected, search: Search) -> Result<(), String> {
    let answer = json(body)?;
    let found = answer["traces"].as_array().map_or(&[][..], Vec::as_slice);
    let matching = expected.matching(search);
    let right = matching.len().min(LIMIT);
    if found.len() != right {
        return Err(format!("the search found {} traces, not {right}", found.len()));
    }
    for trace in found {
        let id = trace["traceID"].as_str().unwrap_or_default();
        let known = id.parse::<TraceId>().is_ok_and(|id| matching.contains(&id));
        if !known {
            return Err(format!("the search found {id}, which does not match"));
        }
    }
    Ok(())
}

/// Quantiles are estimates everywhere, so what is checked is that every service has one, and that it can be a duration.
fn quantile<'e>(workload: &'e Workload, expected: &'e Expected) -> Question<'e> {
    let query = "{ } | quantile_over_time(duration, .99) by (resource.service.name)";
    let path = format!("/api/metrics/query_range?q={}&{}&step=60s", escape(query), seconds(expected));
    let check: Check<'e> = Box::new(move |body| {
        let answer = json(body)?;
        let series = answer["series"].as_array().ok_or("the answer has no series")?;
        let services = workload.fleet().services.len();
        if series.len() != services {
            return Err(format!("there are {} series, not {services}", series.len()));
        }
        for one in series {
            let samples = one["samples"].as_array().map_or(&[][..], Vec::as_slice);
            let values: Vec<f64> = samples.iter().filter_map(|sample| number(&sample["value"])).collect();
            if values.is_empty() || values.iter().any(|value| !(0.0..3600.0).contains(value)) {
                return Err(format!("{} has no or impossible quantiles", one["labels"]));
            }
        }
        Ok(())
    });
    Question {
        name: "TraceQL quantile by service".to_owned(),
        calls: vec![(Call::get(path), check)],
        budget: Budget::share(240.0, 8.0),
    }
}
