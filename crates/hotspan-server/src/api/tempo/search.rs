//! Traces by TraceQL.

use axum::response::Response;
use hotspan_query::search::{FoundSpanset, FoundTrace, Inspected, SearchAnswer};
use hotspan_traceql::Value;
use http::HeaderMap;

use super::answer::{Form, Plain, TextError};
use super::messages::{FoundSpan, SearchMetrics, SearchResponse, ServiceStats, SpanSet, TraceSearchMetadata};
use super::otlp_messages::{AnyValue, KeyValue, ValueKind};
use super::parameters::Parameters;
use crate::api::asker::{Asker, Given};
use crate::api::exactness::with_exactness;

/// `/api/search`.
pub(super) async fn search(
    Plain(Asker { core, tenant }): Plain<Asker>,
    Plain(Given(parameters)): Plain<Given<Parameters>>,
    headers: HeaderMap,
) -> Result<Response, TextError> {
    let program = parameters.program()?;
    let answer = core.engine.search(&tenant, &program, parameters.search_query()?).await?;
    let mut message = search_message(&answer);
    if parameters.cursor.is_some() {
        message.next_cursor = answer.next_page.map(|rank| rank.to_string()).unwrap_or_default();
    }
    Ok(with_exactness(Form::asked_for(&headers).answer(&message)?, &answer.exactness))
}

pub(super) fn search_message(answer: &SearchAnswer) -> SearchResponse {
    SearchResponse {
        traces: answer.traces.iter().map(trace_message).collect(),
        metrics: Some(metrics_message(&answer.inspected)),
        next_cursor: String::new(),
    }
}

pub(super) fn metrics_message(inspected: &Inspected) -> SearchMetrics {
    SearchMetrics {
        inspected_traces: u32::try_from(inspected.traces).unwrap_or(u32::MAX),
        inspected_bytes: inspected.bytes,
        total_blocks: inspected.steps,
        completed_jobs: inspected.steps_done,
        total_jobs: inspected.steps,
        total_block_bytes: inspected.bytes,
        inspected_spans: inspected.spans,
    }
}

fn trace_message(trace: &FoundTrace) -> TraceSearchMetadata {
    let span_sets: Vec<SpanSet> = trace.spansets.iter().map(spanset_message).collect();
    let stats = |(spans, errors): &(u32, u32)| ServiceStats { span_count: *spans, error_count: *errors };
    TraceSearchMetadata {
        trace_id: trace.trace_id.to_string(),
        root_service_name: trace.root_service.clone(),
        root_trace_name: trace.root_name.clone(),
        start_time_unix_nano: u64::try_from(trace.start).unwrap_or(0),
        duration_ms: u32::try_from(trace.duration.max(0) / 1_000_000).unwrap_or(u32::MAX),
        span_set: span_sets.first().cloned(),
        span_sets,
        service_stats: trace.services.iter().map(|(service, counts)| (service.clone(), stats(counts))).collect(),
    }
}

fn spanset_message(set: &FoundSpanset) -> SpanSet {
    let spans = set.spans.iter().map(|span| FoundSpan {
        span_id: span.span_id.to_string(),
        name: span.name.clone(),
        start_time_unix_nano: u64::try_from(span.start).unwrap_or(0),
        duration_nanos: u64::try_from(span.duration).unwrap_or(0),
        attributes: label_messages(&span.attributes),
    });
    SpanSet {
        spans: spans.collect(),
        matched: u32::try_from(set.matched).unwrap_or(u32::MAX),
        attributes: label_messages(&set.attributes),
    }
}

pub(super) fn label_messages(labels: &[(String, Value)]) -> Vec<KeyValue> {
    let message = |(key, value): &(String, Value)| KeyValue { key: key.clone(), value: Some(value_message(value)) };
    labels.iter().map(message).collect()
}

fn value_message(value: &Value) -> AnyValue {
    let kind = match value {
        Value::Nil => ValueKind::StringValue("nil".to_owned()),
        Value::Bool(value) => ValueKind::BoolValue(*value),
        Value::Int(value) => ValueKind::IntValue(*value),
        Value::Float(value) => ValueKind::DoubleValue(*value),
        Value::Str(text) => ValueKind::StringValue(text.clone()),
        // Grafana's tables and series know no lists: its search fails on one, and its labels are empty.
        Value::Array(values) => match values.as_slice() {
            [only] => return value_message(only),
            several => ValueKind::StringValue(json_list(several).to_string()),
        },
        Value::Duration(nanos) => ValueKind::StringValue(go_duration(*nanos)),
        other => ValueKind::StringValue(other.to_string()),
    };
    AnyValue { value: Some(kind) }
}

fn json_list(values: &[Value]) -> serde_json::Value {
    let element = |value: &Value| match value {
        Value::Bool(value) => (*value).into(),
        Value::Int(value) => (*value).into(),
        Value::Float(value) => (*value).into(),
        Value::Str(text) => text.as_str().into(),
        Value::Array(values) => json_list(values),
        Value::Duration(nanos) => go_duration(*nanos).into(),
        other => other.to_string().into(),
    };
    serde_json::Value::Array(values.iter().map(element).collect())
}

/// A duration as Go writes it, which is what Tempo's clients read: `1m30.5s`, `397.130999ms`, `0s`.
fn go_duration(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let length = nanos.unsigned_abs();
    let decimal = |length: u64, unit: u64| {
        let (whole, rest, digits) = (length / unit, length % unit, unit.ilog10() as usize);
        format!("{whole}.{rest:0digits$}").trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    let text = match length {
        0 => "0s".to_owned(),
        1..1_000 => format!("{length}ns"),
        1_000..1_000_000 => format!("{}µs", decimal(length, 1_000)),
        1_000_000..1_000_000_000 => format!("{}ms", decimal(length, 1_000_000)),
        _ => {
            let (minutes, seconds) = (length / MINUTE, decimal(length % MINUTE, 1_000_000_000));
            match (minutes / 60, minutes % 60) {
                (0, 0) => format!("{seconds}s"),
                (0, minutes) => format!("{minutes}m{seconds}s"),
                (hours, minutes) => format!("{hours}h{minutes}m{seconds}s"),
            }
        }
    };
    format!("{sign}{text}")
}

const MINUTE: u64 = 60_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: lengths of every size. Guarantee: written as Go does, so that its parsers read them back.
    #[test]
    fn durations_as_go_writes_them() {
        let pairs = [
            (0, "0s"),
            (1, "1ns"),
            (1_100, "1.1µs"),
            (2_200_000, "2.2ms"),
            (397_130_999, "397.130999ms"),
            (3_300_000_000, "3.3s"),
            (60_000_000_000, "1m0s"),
            (90_500_000_000, "1m30.5s"),
            (3_600_000_000_000, "1h0m0s"),
            (-1_500_000_000, "-1.5s"),
            (i64::MAX, "2562047h47m16.854775807s"),
            (i64::MIN, "-2562047h47m16.854775808s"),
        ];
        for (nanos, text) in pairs {
            assert_eq!(go_duration(nanos), text);
        }
    }
}
