//! Why is a large cohort slow?

use hotspan_generator::Workload;
use serde_json::json as object;

use super::profiles::cohort_flame;
use super::{Budget, Question, json};
use crate::expected::{Expected, FRONT};
use crate::measure::{Call, Check};

/// Explains the slower requests of the first service, which every trace begins in: ten thousand spans and more in an hour.
pub(crate) fn explain_questions<'e>(workload: &'e Workload, expected: &'e Expected) -> Vec<Question<'e>> {
    let service = workload.fleet().services.first().map_or("", |service| service.name.as_str());
    let ask = |name: &str, target: String, budget: Budget| {
        let body = object!({ "target": target, "from": expected.from, "to": expected.hour_end });
        let call = Call { path: "/api/v1/explain".to_owned(), body: Some(body.to_string()) };
        let check: Check<'e> = Box::new(is_consistent);
        Question { name: name.to_owned(), calls: vec![(call, check)], budget }
    };
    let budget = Budget { cold: Some(3000.0), warm: Some(3000.0), ..Budget::none() };
    vec![
        ask("explain, slow cohort", format!("{{ resource.service.name = \"{service}\" && duration > 50ms }}"), budget),
        ask("explain, all spans of a service", format!("{{ resource.service.name = \"{service}\" }}"), budget),
    ]
}

/// How many spans the cohort of a join has.
const JOINED_SPANS: usize = 10_000;

/// The join in the large: the flame graph of ten thousand spans, and why they are slow.
pub(crate) fn join_questions<'e>(workload: &'e Workload, expected: &'e Expected) -> Vec<Question<'e>> {
    let service = workload.fleet().services.get(usize::from(FRONT)).map_or("", |service| service.name.as_str());
    let cohort = expected.slowest(FRONT, JOINED_SPANS);
    let samples = workload.settings().samples as f64 / 1e6;
    let mut flame = cohort_flame(service, expected, cohort);
    flame.name = format!("flame graph of {} spans among {samples} M samples, 1 h", cohort.count);
    let body = object!({ "target": cohort.query(service), "from": expected.from, "to": expected.hour_end });
    let call = Call { path: "/api/v1/explain".to_owned(), body: Some(body.to_string()) };
    let check: Check<'e> = Box::new(is_consistent);
    let explain = Question {
        name: format!("explain of {} spans among {samples} M samples, 1 h", cohort.count),
        calls: vec![(call, check)],
        budget: Budget { cold: Some(3000.0), warm: Some(3000.0), ..Budget::none() },
    };
    vec![flame, explain]
}

/// Spans were compared, and the parts of their time sum to it.
fn is_consistent(body: &[u8]) -> Result<(), String> {
    let answer = json(body)?;
    let ledger = &answer["ledger"];
    let parts: f64 = ledger["parts"].as_array().into_iter().flatten().filter_map(|part| part["ms"].as_f64()).sum();
    let duration = ledger["duration_ms"].as_f64().unwrap_or(0.0);
    let [slow, fast] = ["slow", "fast"].map(|side| answer["coverage"]["matched"][side].as_u64().unwrap_or(0));
    if slow < 5 || fast < 5 {
        return Err(format!("{slow} spans were compared with {fast}"));
    }
    if duration <= 0.0 || (parts - duration).abs() > 1e-3 {
        return Err(format!("the parts sum to {parts} ms, the duration is {duration} ms"));
    }
    Ok(())
}
