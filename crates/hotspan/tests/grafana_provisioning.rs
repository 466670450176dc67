//! Grafana's stock data sources as deploy/grafana provisions them: every request they make, against a real server.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::path::{Path, PathBuf};

use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use serde_json::{Value, json};
use support::python::python;
use support::{Server, TestSample, now_nanos, profile_request, request, trace_request};

const SECOND: u64 = 1_000_000_000;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/grafana")
}

/// A YAML file, read by a YAML parser.
fn yaml(path: &str) -> Value {
    let script = "import json, sys, yaml; print(json.dumps(yaml.safe_load(open(sys.argv[1]))))";
    let run = python().args(["-c", script]).arg(folder().join(path)).output().unwrap();
    assert!(run.status.success(), "{path}: {}", String::from_utf8_lossy(&run.stderr));
    serde_json::from_slice(&run.stdout).unwrap()
}

fn dashboard() -> Value {
    let text = std::fs::read_to_string(folder().join("dashboards/slow-spans-to-code.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn encode(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// Scenario: the provisioning files and the dashboard. Guarantee: they have the keys that Grafana documents, every data
/// source that is named exists, and profiles of spans are set up as its button needs them.
#[test]
fn provisioning_fits_together() {
    let sources = yaml("provisioning/datasources/hotspan.yaml");
    assert_eq!(sources["apiVersion"], 1);
    let sources = sources["datasources"].as_array().unwrap();
    let known = ["name", "uid", "type", "access", "url", "isDefault", "jsonData"];
    for source in sources {
        assert!(source.as_object().unwrap().keys().all(|key| known.contains(&key.as_str())), "{source}");
        assert_eq!(source["access"], "proxy");
        assert!(source["url"].as_str().unwrap().starts_with("http://"));
    }
    let by_type = |kind: &str| sources.iter().find(|source| source["type"] == kind).unwrap();
    let (traces, profiles) = (by_type("tempo"), by_type("grafana-pyroscope-datasource"));
    let link = &traces["jsonData"]["tracesToProfiles"];
    assert_eq!(link["datasourceUid"], profiles["uid"]);
    assert_eq!(link["tags"], json!([{ "key": "service.name", "value": "service_name" }]));
    assert!(link["profileTypeId"].as_str().unwrap().starts_with("process_cpu:cpu:nanoseconds"));
    assert_eq!(traces["jsonData"]["streamingEnabled"], json!({ "search": true, "metrics": true }));

    let providers = yaml("provisioning/dashboards/hotspan.yaml");
    assert_eq!(providers["apiVersion"], 1);
    assert_eq!(providers["providers"][0]["type"], "file");
    assert!(providers["providers"][0]["options"]["path"].is_string());

    let dashboard = dashboard();
    let uid_exists = |uid: &Value| sources.iter().any(|source| source["uid"] == *uid);
    let mut ids = Vec::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        assert!(uid_exists(&panel["datasource"]["uid"]), "{}", panel["title"]);
        ids.push(panel["id"].as_u64().unwrap());
        let grid = &panel["gridPos"];
        assert!(grid["x"].as_u64().unwrap() + grid["w"].as_u64().unwrap() <= 24);
        for target in panel["targets"].as_array().unwrap() {
            assert_eq!(target["datasource"], panel["datasource"]);
            assert!(target["refId"].is_string() && target["queryType"].is_string());
        }
    }
    ids.dedup();
    assert_eq!(ids.len(), dashboard["panels"].as_array().unwrap().len());
}

/// Scenario: what both data sources send when a person opens the dashboard, picks a span, and looks at its profile.
/// Guarantee: each request is answered, and the picked span leads to the function that it ran.
#[test]
fn every_request_of_the_data_sources_is_answered() {
    let store = tempfile::tempdir().unwrap();
    let server = Server::start(store.path());
    server.wait_ready();
    let now = now_nanos();
    let start = now - 30 * SECOND;
    let span = Span {
        trace_id: vec![1; 16],
        span_id: vec![2; 8],
        name: "checkout".to_owned(),
        kind: 2,
        start_time_unix_nano: start,
        end_time_unix_nano: start + SECOND,
        ..Span::default()
    };
    let body = trace_request("shop", vec![span]).encode_to_vec();
    assert_eq!(server.post("/v1/traces", "application/x-protobuf", &body).unwrap().status, 200);
    let sample = |span: u8, name: &'static [&'static str]| TestSample {
        stack: name,
        value: 500_000_000,
        time: start + 1000,
        trace_id: [1; 16],
        span_id: [span; 8],
    };
    let samples = [sample(2, &["main", "tax"]), sample(3, &["main", "other"])];
    let body = profile_request("shop", [9; 16], &samples).encode_to_vec();
    assert_eq!(server.post("/v1development/profiles", "application/x-protobuf", &body).unwrap().status, 200);

    // Save and test, autocomplete.
    assert_eq!(server.get("/api/echo").unwrap().text(), "echo\n");
    let range = format!("start={}&end={}", now / SECOND - 3600, now / SECOND + 1);
    assert!(!server.get_json("/api/v2/search/tags?limit=5000")["scopes"].as_array().unwrap().is_empty());
    let values =
        format!("/api/v2/search/tag/resource.service.name/values?limit=5000&q={}&{range}", encode("{ name = \"che"));
    assert_eq!(server.get_json(&values)["tagValues"], json!([{ "type": "string", "value": "shop" }]));

    // The dashboard's own queries, as they are with its variables filled in.
    let filled = |text: &Value| {
        let text = text.as_str().unwrap().replace("$service", ".*").replace("$slower", "500ms");
        text.replace("$span", "0202020202020202")
    };
    let mut kinds = Vec::new();
    for target in
        dashboard()["panels"].as_array().unwrap().iter().flat_map(|panel| panel["targets"].as_array().unwrap())
    {
        if target["queryType"] == "profile" {
            let spans: Vec<String> = target["spanSelector"].as_array().unwrap().iter().map(filled).collect();
            let method = if spans.is_empty() { "SelectMergeStacktraces" } else { "SelectMergeSpanProfile" };
            let question = json!({
                "profileTypeID": target["profileTypeId"], "labelSelector": filled(&target["labelSelector"]),
                "spanSelector": spans, "start": (now / 1_000_000 - 3_600_000).to_string(), "end": (now / 1_000_000).to_string(),
                "maxNodes": "2048",
            });
            let path = format!("/querier.v1.QuerierService/{method}");
            let answer = server.post(&path, "application/json", question.to_string().as_bytes()).unwrap();
            assert_eq!(answer.status, 200, "{}", answer.text());
            let text = answer.text();
            assert!(text.contains("tax"), "{text}");
            assert_eq!(text.contains("other"), method == "SelectMergeStacktraces", "{text}");
            kinds.push(method);
        } else if target.get("metricsQueryType").is_some() {
            let path = format!(
                "/api/metrics/query_range?q={}&{range}&step=15s&exemplars=100",
                encode(&filled(&target["query"]))
            );
            assert!(!server.get_json(&path)["series"].as_array().unwrap().is_empty(), "{path}");
            kinds.push("metrics");
        } else {
            let path = format!("/api/search?q={}&limit=50&spss=3&{range}", encode(&filled(&target["query"])));
            let found = server.get_json(&path);
            assert_eq!(found["traces"][0]["spanSets"][0]["spans"][0]["spanID"], "0202020202020202");
            kinds.push("search");
        }
    }
    assert_eq!(kinds, ["metrics", "metrics", "search", "SelectMergeSpanProfile", "SelectMergeStacktraces"]);

    // Before a span is picked, its variable is empty.
    let question = json!({
        "profileTypeID": "process_cpu:cpu:nanoseconds:cpu:nanoseconds", "labelSelector": "{service_name=~\".*\"}",
        "spanSelector": [""], "start": (now / 1_000_000 - 3_600_000).to_string(), "end": (now / 1_000_000).to_string(),
    });
    let path = "/querier.v1.QuerierService/SelectMergeSpanProfile";
    assert_eq!(server.post(path, "application/json", question.to_string().as_bytes()).unwrap().status, 200);
    for path in ["ProfileTypes", "LabelNames"] {
        let body = json!({ "start": (now / 1_000_000 - 3_600_000).to_string(), "end": (now / 1_000_000).to_string() });
        let path = format!("/querier.v1.QuerierService/{path}");
        assert_eq!(server.post(&path, "application/json", body.to_string().as_bytes()).unwrap().status, 200);
    }

    // The trace view asks for protobuf, and offers profiles where the span carries their mark.
    let accept = [("accept", "application/protobuf")];
    let answer =
        request(server.address("tempo"), "GET", &format!("/api/v2/traces/{}", "01".repeat(16)), &accept, &[]).unwrap();
    assert_eq!(answer.status, 200);
    assert!(answer.text().contains("pyroscope.profile.id") && answer.text().contains("0202020202020202"));
}
