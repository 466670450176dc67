//! Questions that Pyroscope answers too, as its clients ask them.

use hotspan_generator::Workload;
use serde_json::json;

use super::profiles::{busy_spans, busy_traces, cpu_by_service, service_name, sum_until};
use super::{Budget, Question, json, number};
use crate::expected::{Expected, SERVICE};
use crate::measure::{Call, Check};

const CPU: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
const MERGE_STACKTRACES: &str = "/querier.v1.QuerierService/SelectMergeStacktraces";

/// Flame graphs of services, spans and traces, and CPU over time. The budgets' peer figures are those of another machine.
pub(crate) fn pyroscope_questions<'e>(workload: &'e Workload, expected: &'e Expected) -> Vec<Question<'e>> {
    let selected = |selector: &str, (field, id): (&str, Option<String>), sum: i64| {
        let mut body = json!({
            "profileTypeID": CPU,
            "labelSelector": selector,
            "start": expected.from / 1_000_000,
            "end": expected.hour_end / 1_000_000,
            "maxNodes": 8192,
        });
        if let Some(id) = id {
            body[field] = json!([id]);
        }
        (Call { path: MERGE_STACKTRACES.to_owned(), body: Some(body.to_string()) }, total_is(sum))
    };
    let of_service = |service: u16| format!("{{service_name=\"{}\"}}", service_name(workload, service));
    let sum = |service| sum_until(expected, service, expected.hour_end);
    let everything = (0..workload.settings().services).map(sum).sum();
    let spans = busy_spans(expected)
        .into_iter()
        .map(|(span, service, sum)| selected(&of_service(service), ("spanSelector", Some(span.to_string())), sum));
    let traces = busy_traces(expected).into_iter();
    let traces = traces.map(|(trace, sum)| selected("{}", ("traceIdSelector", Some(trace.to_string())), sum));
    let none = ("", None);
    let question = |name: &str, calls: Vec<_>, budget| Question { name: name.to_owned(), calls, budget };
    vec![
        question(
            "flame graph, one service, 1 h",
            vec![selected(&of_service(SERVICE), none.clone(), sum(SERVICE))],
            Budget::share(80.0, 20.0),
        ),
        question("flame graph, all services, 1 h", vec![selected("{}", none, everything)], Budget::share(2400.0, 10.0)),
        question("samples of a span, service named, 1 h", spans.collect(), Budget::share(25.0, 5.0)),
        question("samples of a trace, service not named", traces.collect(), Budget::share(800.0, 50.0)),
        cpu_by_service(workload, expected),
    ]
}

fn total_is<'e>(sum: i64) -> Check<'e> {
    Box::new(move |body| {
        let answer = json(body)?;
        let total = number(&answer["flamegraph"]["total"]).ok_or("the answer has no flamegraph.total")?;
        if total as i64 == sum { Ok(()) } else { Err(format!("the flame graph sums to {total}, not to {sum}")) }
    })
}
