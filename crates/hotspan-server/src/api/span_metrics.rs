//! `/metrics/spans`: span metrics and the service graph for Prometheus, under the names that Grafana asks for.

use axum::response::Response;
use hotspan_query::span_metrics::{CallCounts, EdgeCounts, Latency};
use http::HeaderMap;
use std::fmt::Write;

use super::ApiError;
use super::asker::Asker;
use crate::metrics_text::metrics_response;

/// Answers `/metrics/spans`.
pub(crate) async fn span_metrics(Asker { core, tenant }: Asker, headers: HeaderMap) -> Result<Response, ApiError> {
    let metrics = core.span_metrics.of(&tenant);
    let mut text = String::new();
    write_calls(&mut text, &metrics.calls);
    write_edges(&mut text, &metrics.edges);
    text.push_str("# EOF\n");
    Ok(metrics_response(text, &headers))
}

/// A family of OpenMetrics: its lines, each with the labels of a series, in order.
struct Family<'t> {
    text: &'t mut String,
    name: &'t str,
}

impl<'t> Family<'t> {
    fn start(text: &'t mut String, name: &'t str, kind: &str, help: &str) -> Self {
        // Writing into a String can't fail, here and below.
        let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
        Self { text, name }
    }

    fn count(&mut self, labels: &str, value: u64) {
        let _ = writeln!(self.text, "{}_total{{{labels}}} {value}", self.name);
    }

    fn histogram(&mut self, labels: &str, latency: &Latency) {
        let mut sum = 0;
        for (bound, count) in Latency::bounds().iter().zip(latency.buckets) {
            sum += count;
            let _ = writeln!(self.text, "{}_bucket{{{labels},le=\"{bound}\"}} {sum}", self.name);
        }
        let _ = writeln!(self.text, "{}_bucket{{{labels},le=\"+Inf\"}} {}", self.name, latency.count);
        let _ = writeln!(self.text, "{}_sum{{{labels}}} {}", self.name, latency.sum_nanos as f64 / 1e9);
        let _ = writeln!(self.text, "{}_count{{{labels}}} {}", self.name, latency.count);
    }
}

fn labels(pairs: &[(&str, &str)]) -> String {
    let escaped = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let pairs: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
    pairs.join(",")
}

fn write_calls(text: &mut String, calls: &CallCounts) {
    let mut series: Vec<_> = calls.iter().collect();
    series.sort_unstable_by_key(|(series, _)| *series);
    let labelled: Vec<(String, &Latency)> = series
        .into_iter()
        .map(|(series, latency)| {
            let (kind, status) = (series.kind_name(), series.status_name());
            let pairs = [
                ("service", series.service.as_str()),
                ("span_name", series.name.as_str()),
                ("span_kind", &*kind),
                ("status_code", &*status),
            ];
            (labels(&pairs), latency)
        })
        .collect();
    let mut family = Family::start(text, "traces_spanmetrics_calls", "counter", "Spans received.");
    labelled.iter().for_each(|(labels, latency)| family.count(labels, latency.count));
    let mut family = Family::start(text, "traces_spanmetrics_latency", "histogram", "Duration of spans in seconds.");
    labelled.iter().for_each(|(labels, latency)| family.histogram(labels, latency));
}

fn write_edges(text: &mut String, edges: &EdgeCounts) {
    let mut series: Vec<_> = edges.series.iter().collect();
    series.sort_unstable_by_key(|(series, _)| *series);
    let labelled: Vec<_> = series
        .into_iter()
        .map(|(series, edge)| {
            let pairs = [
                ("client", series.client.as_str()),
                ("server", series.server.as_str()),
                ("connection_type", series.connection.label()),
            ];
            (labels(&pairs), edge)
        })
        .collect();
    let mut family = Family::start(text, "traces_service_graph_request", "counter", "Requests between services.");
    labelled.iter().for_each(|(labels, edge)| family.count(labels, edge.server.count));
    let mut family = Family::start(
        text,
        "traces_service_graph_request_failed",
        "counter",
        "Requests between services that failed on either side.",
    );
    labelled.iter().for_each(|(labels, edge)| family.count(labels, edge.failed));
    let mut family = Family::start(
        text,
        "traces_service_graph_request_server_seconds",
        "histogram",
        "Duration of requests as the server saw them.",
    );
    labelled.iter().for_each(|(labels, edge)| family.histogram(labels, &edge.server));
    let mut family = Family::start(
        text,
        "traces_service_graph_request_client_seconds",
        "histogram",
        "Duration of requests as the client saw them.",
    );
    labelled.iter().for_each(|(labels, edge)| family.histogram(labels, &edge.client));
    let mut unpaired: Vec<_> = edges.unpaired.iter().collect();
    unpaired.sort_unstable();
    let mut family = Family::start(
        text,
        "traces_service_graph_unpaired_spans",
        "counter",
        "Spans of one side of a request whose other side did not come.",
    );
    unpaired.iter().for_each(|(service, count)| family.count(&labels(&[("service", service)]), **count));
    let name = "traces_service_graph_dropped_spans";
    let _ = Family::start(text, name, "counter", "Spans left out because too many waited for their other side.");
    let _ = writeln!(text, "{name}_total {}", edges.dropped);
}
