//! Tenants and profiles: what one sends, no other finds, whatever is asked (R6).

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use serde_json::{Value, json};
use support::querier::{CPU, always};
use support::{Answer, Server, now_nanos, percent_encoded, request};

const SPAN: &str = "00f067aa0ba902b7";
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

fn get(server: &Server, tenant: &str, path: &str) -> Answer {
    request(&server.http, "GET", path, &[("x-scope-orgid", tenant)], b"").unwrap()
}

fn ask(server: &Server, tenant: &str, method: &str, message: &Value) -> Answer {
    let path = format!("/querier.v1.QuerierService/{method}");
    let headers = [("content-type", "application/json"), ("x-scope-orgid", tenant)];
    request(&server.http, "POST", &path, &headers, message.to_string().as_bytes()).unwrap()
}

/// Scenario: two tenants profile services of the same name, with the same labels, stacks that share functions, the same
/// span and trace, and a function of their own each; a third has sent nothing. All ask by every way there is.
/// Guarantee: each finds its own function and values alone, the third finds nothing, and nobody is answered unnamed.
#[test]
fn profiles_of_tenants_never_meet() {
    let (_store, server) = Server::configured("multi_tenancy = true\n");
    let now = now_nanos() / 1_000_000_000 - 60;
    for (tenant, function, value) in [("amber", "amber_work", 3), ("azure", "azure_work", 50)] {
        let name = percent_encoded(&format!("shop{{team={tenant},span_id={SPAN},trace_id={TRACE}}}"));
        let path = format!("/ingest?name={name}&from={now}&until={}&sampleRate=1000000000", now + 10);
        let headers = [("content-type", "text/plain"), ("x-scope-orgid", tenant)];
        let stacks = format!("main;shared;{function} {value}");
        let answer = request(&server.http, "POST", &path, &headers, stacks.as_bytes()).unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    let shop = percent_encoded("shop.cpu");
    let pages = [
        format!("/api/v1/query?query={shop}"),
        format!("/api/v1/query?query={}", percent_encoded(&format!("topk(5, shop.cpu{{span_id=\"{SPAN}\"}})"))),
        format!("/api/v1/profile?span_id={SPAN}"),
        format!("/api/v1/profile?app=shop&trace_id={TRACE}&format=collapsed"),
        format!("/api/v1/profiles?trace_id={TRACE}"),
        format!("/pyroscope/render?query={shop}"),
        format!("/pyroscope/render?query={shop}&format=dot"),
        format!("/pyroscope/render-diff?leftQuery={shop}&rightQuery={shop}"),
        "/pyroscope/label-values?label=team".to_owned(),
    ];
    let selection = always(json!({
        "profileTypeID": CPU, "labelSelector": "{service_name=\"shop\"}", "step": 15, "groupBy": ["team"],
        "name": "team", "exemplarType": 3, "queryType": 2, "spanSelector": [SPAN],
    }));
    let sides = json!({"left": selection, "right": selection});
    let questions = [
        ("LabelValues", &selection),
        ("Series", &selection),
        ("SelectMergeStacktraces", &selection),
        ("SelectMergeSpanProfile", &selection),
        ("SelectMergeProfile", &selection),
        ("SelectSeries", &selection),
        ("SelectHeatmap", &selection),
        ("Diff", &sides),
    ];
    for tenant in ["amber", "azure", "nobody"] {
        let by_page = pages.iter().map(|page| (page.clone(), get(&server, tenant, page)));
        let by_method = questions.map(|(method, message)| (method.to_owned(), ask(&server, tenant, method, message)));
        for (what, answer) in by_page.chain(by_method) {
            let text = answer.text();
            assert_eq!(answer.status, 200, "{tenant} {what}: {text}");
            for other in ["amber", "azure"] {
                assert_eq!(text.contains(other), other == tenant, "{tenant} {what}: {text}");
            }
        }
        let types = ask(&server, tenant, "ProfileTypes", &selection).text();
        assert_eq!(types.contains(CPU), tenant != "nobody", "{types}");
        let statistics: Value =
            serde_json::from_slice(&ask(&server, tenant, "GetProfileStats", &json!({})).body).unwrap();
        assert_eq!(statistics["dataIngested"], tenant != "nobody");
        let mut analysis = selection.clone();
        analysis["query"] = json!("shop.cpu");
        let analysis: Value = serde_json::from_slice(&ask(&server, tenant, "AnalyzeQuery", &analysis).body).unwrap();
        let series = if tenant == "nobody" { "0" } else { "1" };
        assert_eq!(analysis["queryScopes"][0]["seriesCount"], series, "{tenant}");
        assert_eq!(analysis["queryScopes"][0]["sampleCount"], series, "{tenant}");
    }
    for page in &pages {
        let answer = server.get(page).unwrap();
        assert!(answer.status == 401 && answer.text().contains("X-Scope-OrgID"), "{page}: {}", answer.text());
    }
    for (method, message) in questions {
        let path = format!("/querier.v1.QuerierService/{method}");
        let answer = server.post(&path, "application/json", message.to_string().as_bytes()).unwrap();
        assert!(answer.status == 401 && answer.text().contains("unauthenticated"), "{method}: {}", answer.text());
    }
}
