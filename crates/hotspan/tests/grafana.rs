//! What Grafana's Pyroscope data source and the Profiles Drilldown app ask beyond flame graphs.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use serde_json::{Value, json};
use support::querier::{CPU, ask, ask_json, ingest_stacks};
use support::{Server, now_nanos, request};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// The start of a minute, ten minutes ago.
fn minute() -> u64 {
    (now_nanos() / 1_000_000_000 - 600) / 60 * 60
}

fn selected(minute: u64, more: &Value) -> Value {
    let mut message = json!({
        "profileTypeID": CPU, "labelSelector": r#"{service_name="shop"}"#,
        "start": (minute * 1000).to_string(), "end": ((minute + 300) * 1000).to_string(), "step": 60,
    });
    for (name, value) in more.as_object().unwrap() {
        message[name] = value.clone();
    }
    message
}

/// Scenario: profiles of two pods with known sums, some inside spans, in two minutes.
/// Guarantee: the heatmap counts each profile or span once in its minute and band, its exemplars are the largest
/// of their cells, and their ids select just that profile again.
#[test]
fn heatmaps_lead_to_profiles() {
    let (_store, server) = Server::fresh();
    let minute = minute();
    ingest_stacks(&server, "shop{pod=a}", minute + 5, "main;a 100");
    ingest_stacks(&server, "shop{pod=a}", minute + 20, "main;b 2000\nmain;c 100");
    ingest_stacks(&server, "shop{pod=b}", minute + 65, "main;d 110");
    let span = |id: &str| format!("shop{{pod=b,span_id={id},trace_id={TRACE}}}");
    ingest_stacks(&server, &span("00000000000000aa"), minute + 70, "main;e 40");
    ingest_stacks(&server, &span("00000000000000bb"), minute + 75, "main;f 60\nmain;g 5");

    let message = selected(minute, &json!({"queryType": "HEATMAP_QUERY_TYPE_INDIVIDUAL", "exemplarType": 2}));
    let map = ask_json(&server, "SelectHeatmap", &message)["series"][0].clone();
    let slots = map["slots"].as_array().unwrap();
    let edges: Vec<&str> = slots.iter().map(|slot| slot["timestamp"].as_str().unwrap()).collect();
    assert_eq!(edges, [((minute + 60) * 1000).to_string(), ((minute + 120) * 1000).to_string()]);
    let bands = slots[0]["yMin"].as_array().unwrap();
    assert_eq!((bands.len(), &bands[0]), (20, &json!(40.0)));
    let counts = |slot: &Value| {
        slot["counts"].as_array().unwrap().iter().map(|count| count.as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!((counts(&slots[0])[0], counts(&slots[0])[19]), (1, 1));
    assert_eq!(counts(&slots[1]).iter().sum::<u64>(), 3);
    let largest = slots[0]["exemplars"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(
        (&largest["value"], &largest["labels"]),
        (
            &json!("2100"),
            &json!([
                {"name": "pod", "value": "a"}, {"name": "service_name", "value": "shop"}
            ])
        )
    );
    let id = largest["profileId"].as_str().unwrap().to_owned();
    assert_eq!(id.split('-').map(str::len).collect::<Vec<_>>(), [8, 4, 4, 4, 12]);
    let one = selected(minute, &json!({"profileIdSelector": [id]}));
    let graph = ask_json(&server, "SelectMergeStacktraces", &one)["flamegraph"].clone();
    assert_eq!((&graph["total"], &graph["names"]), (&json!("2100"), &json!(["total", "main", "c", "b"])));
    let pprof = ask_json(&server, "SelectMergeProfile", &one);
    assert_eq!(pprof["sample"].as_array().unwrap().len(), 2);
    assert_eq!(
        ask(&server, "SelectMergeStacktraces", &selected(minute, &json!({"profileIdSelector": ["xyz"]}))).status,
        400
    );

    let spans = selected(minute, &json!({"queryType": 2, "exemplarType": "EXEMPLAR_TYPE_SPAN", "groupBy": ["pod"]}));
    let map = ask_json(&server, "SelectHeatmap", &spans)["series"].clone();
    assert_eq!(map.as_array().unwrap().len(), 1, "pod a has no spans: {map}");
    assert_eq!(map[0]["labels"], json!([{"name": "pod", "value": "b"}]));
    let exemplars = map[0]["slots"][0]["exemplars"].as_array().unwrap();
    let facts: Vec<(&Value, &Value, &Value)> =
        exemplars.iter().map(|one| (&one["spanId"], &one["value"], &one["traceId"])).collect();
    assert_eq!(
        facts,
        [
            (&json!("00000000000000aa"), &json!("40"), &json!(TRACE)),
            (&json!("00000000000000bb"), &json!("65"), &json!(TRACE)),
        ]
    );
    let mixed = selected(minute, &json!({"queryType": 1, "exemplarType": 3}));
    assert_eq!(ask(&server, "SelectHeatmap", &mixed).status, 400);
    assert_eq!(ask(&server, "SelectHeatmap", &selected(minute, &json!({"step": 0}))).status, 400);
    let empty = selected(minute, &json!({"labelSelector": "{service_name=\"none\"}"}));
    assert_eq!(ask_json(&server, "SelectHeatmap", &empty)["series"], json!([]));
}

/// Scenario: a series asked for with exemplars, of profiles and of spans, and without.
/// Guarantee: each point names the profile or span that contributed most to it.
#[test]
fn points_name_their_exemplars() {
    let (_store, server) = Server::fresh();
    let minute = minute();
    ingest_stacks(&server, "shop{v=1}", minute + 5, "main;a 10");
    ingest_stacks(&server, "shop{v=1}", minute + 10, "main;b 70");
    ingest_stacks(&server, &format!("shop{{v=1,span_id=00000000000000cc,trace_id={TRACE}}}"), minute + 15, "main;c 30");
    let ask_for = |more: &Value| ask_json(&server, "SelectSeries", &selected(minute, more))["series"][0].clone();
    let plain = ask_for(&json!({}));
    assert_eq!((&plain["points"][0]["value"], plain["points"][0].get("exemplars")), (&json!(110.0), None));
    let point = ask_for(&json!({"exemplarType": "EXEMPLAR_TYPE_INDIVIDUAL", "groupBy": ["v"]}))["points"][0].clone();
    assert_eq!((&point["value"], &point["exemplars"][0]["value"]), (&json!(110.0), &json!("70")));
    assert_eq!(point["exemplars"][0]["labels"], json!([{"name": "service_name", "value": "shop"}]));
    let point = ask_for(&json!({"exemplar_type": 3}))["points"][0].clone();
    assert_eq!(
        (&point["exemplars"][0]["spanId"], &point["exemplars"][0]["value"]),
        (&json!("00000000000000cc"), &json!("30"))
    );
}

/// Scenario: a series with exemplars of the stacks that start with a function, or go through one.
/// Guarantee: exemplars are those with most in just these stacks, and are worth what lies there.
#[test]
fn exemplars_of_selected_stacks() {
    let (_store, server) = Server::fresh();
    let minute = minute();
    ingest_stacks(&server, "shop", minute + 5, "main;a 3\nmain;b 30");
    ingest_stacks(&server, "shop", minute + 10, "main;a;c 2\nmain;d 90");
    let span = format!("shop{{span_id=00000000000000cc,trace_id={TRACE}}}");
    ingest_stacks(&server, &span, minute + 15, "main;a 1\nmain;b 7");
    let point = |kind: u8, selector: Value| {
        let more = json!({"exemplarType": kind, "stackTraceSelector": selector});
        let point = ask_json(&server, "SelectSeries", &selected(minute, &more))["series"][0]["points"][0].clone();
        (point["value"].as_f64().unwrap(), point["exemplars"][0]["value"].clone())
    };
    let below_a = json!({"callSite": [{"name": "main"}, {"name": "a"}]});
    assert_eq!(point(2, below_a.clone()), (6.0, json!("3")));
    assert_eq!(point(3, below_a), (6.0, json!("1")));
    let through_b = json!({"frameFilter": {"includeFunctionNames": ["b"]}});
    assert_eq!(point(2, through_b.clone()), (37.0, json!("30")));
    assert_eq!(point(3, through_b), (37.0, json!("7")));
    let none = json!({"exemplarType": 2, "stackTraceSelector": {"callSite": [{"name": "nowhere"}]}});
    assert_eq!(ask_json(&server, "SelectSeries", &selected(minute, &none))["series"], json!([]));
}

/// Scenario: the app's filter of functions: names and patterns that stacks must have or must not have, one and several,
/// with a call site, for Go's optimiser, in every method that takes a selector of stacks; and filters that are wrong.
/// Guarantee: whole stacks count or do not, the same in every method; what is wrong is named.
#[test]
fn stacks_are_filtered_by_their_functions() {
    let (_store, server) = Server::fresh();
    let minute = minute();
    let stacks = "main;work;parse 1\nmain;work;parse;idle 2\nmain;serve;parse 4\nmain;serve;sleep 8\nother;work 16";
    ingest_stacks(&server, "shop", minute + 5, stacks);
    let sum_of = |profile: &Value| -> i64 {
        let samples = profile["sample"].as_array().unwrap().iter();
        samples.map(|one| one["value"][0].as_str().unwrap().parse::<i64>().unwrap()).sum()
    };
    let check = |selector: Value, expected: i64| {
        let message = selected(minute, &json!({"stackTraceSelector": selector, "maxNodes": 100}));
        let graph = ask_json(&server, "SelectMergeStacktraces", &message)["flamegraph"].clone();
        assert_eq!(graph["total"], expected.to_string(), "{selector}");
        assert_eq!(sum_of(&ask_json(&server, "SelectMergeProfile", &message)), expected, "{selector}");
        let series = ask_json(&server, "SelectSeries", &message)["series"].clone();
        assert_eq!(series[0]["points"][0]["value"].as_f64().unwrap_or(0.0), expected as f64, "{selector}");
        let whole = selected(minute, &json!({}));
        let diff = ask_json(&server, "Diff", &json!({"left": message, "right": whole}))["flamegraph"].clone();
        assert_eq!((&diff["leftTicks"], &diff["rightTicks"]), (&json!(expected.to_string()), &json!("31")));
    };
    let filter = |filter: Value| json!({"frameFilter": filter});
    check(filter(json!({})), 31);
    check(filter(json!({"includeFunctionNames": ["work"]})), 19);
    check(filter(json!({"includeFunctionNames": ["work", "parse"]})), 3);
    check(filter(json!({"excludeFunctionNames": ["parse", "sleep"]})), 16);
    check(filter(json!({"includeFunctionNames": ["parse"], "excludeFunctionNames": ["idle"]})), 5);
    check(filter(json!({"includeFunctionNameRegexes": ["^ser", "e$"]})), 12);
    check(filter(json!({"include_function_name_regexes": ["pars"], "exclude_function_name_regexes": ["^id.e$"]})), 5);
    check(filter(json!({"includeFunctionNames": ["par"]})), 0);
    check(
        json!({"callSite": [{"name": "main"}, {"name": "work"}], "frameFilter": {"excludeFunctionNames": ["idle"]}}),
        1,
    );
    check(json!({"goPgo": {"keepLocations": 1}, "frameFilter": {"includeFunctionNames": ["main"]}}), 15);

    let many: Vec<String> = (0..65).map(|number| format!("f{number}")).collect();
    for (wrong, status, said) in [
        (
            json!({"includeFunctionNameRegexes": ["a", "["]}),
            400,
            "include_function_name_regexes: the pattern \\\"[\\\"",
        ),
        (json!({"excludeFunctionNameRegexes": ["("]}), 400, "exclude_function_name_regexes"),
        (json!({"includeFunctionNames": many}), 422, "64"),
        (json!({"includeFunctionNames": "a"}), 400, "stackTraceSelector.frameFilter.includeFunctionNames"),
    ] {
        for method in ["SelectMergeStacktraces", "SelectMergeProfile", "SelectSeries"] {
            let message = selected(minute, &json!({"stackTraceSelector": {"frameFilter": wrong}}));
            let answer = ask(&server, method, &message);
            assert_eq!(answer.status, status, "{method} {wrong}: {}", answer.text());
            assert!(answer.text().contains(said), "{method} {wrong}: {}", answer.text());
        }
    }
}

/// Scenario: how much a query would read, asked with a type that there is, one that there is not, and other labels.
/// Guarantee: it is about the type and the labels of the query, and what has no series costs nothing.
#[test]
fn what_a_query_would_read() {
    let (_store, server) = Server::fresh();
    let minute = minute();
    ingest_stacks(&server, "shop{v=1}", minute + 5, "main;a 10\nmain;b 20");
    ingest_stacks(&server, "shop{v=2}", minute + 5, "main;a 10");
    let read = |query: &str| {
        let times = json!({"start": minute * 1000, "end": (minute + 300) * 1000, "query": query});
        let answer = ask_json(&server, "AnalyzeQuery", &times);
        let scope = answer["queryScopes"][0].clone();
        let number = |value: &Value| value.as_str().unwrap().parse::<u64>().unwrap();
        assert_eq!(answer["queryImpact"]["totalQueriedSeries"], scope["seriesCount"]);
        let bytes = number(&answer["queryImpact"]["totalBytesInTimeRange"]);
        (number(&scope["seriesCount"]), number(&scope["sampleCount"]), bytes > 0)
    };
    assert_eq!(read(&format!("{CPU}{{service_name=\"shop\"}}")), (2, 3, true));
    assert_eq!(read("shop.cpu{v=\"1\"}"), (1, 3, true));
    assert_eq!(read("{service_name=\"shop\"}"), (2, 3, true));
    assert_eq!(read("shop.wall"), (0, 0, false));
    assert_eq!(read("shop{a=\"b\"}"), (0, 0, false));
}

/// Scenario: labels with dots, as OpenTelemetry names them, asked for by a client that can write none.
/// Guarantee: they are listed, valued, grouped by and selected with underscores; who can write dots gets dots.
#[test]
fn labels_with_dots_need_none() {
    let (_store, server) = Server::fresh();
    let minute = minute();
    ingest_stacks(&server, "shop{service.version=1,service.namespace=eu}", minute + 5, "main;a 10");
    ingest_stacks(&server, "shop{service.version=2,service.namespace=eu}", minute + 5, "main;b 30");
    let times = json!({"start": (minute * 1000).to_string(), "end": ((minute + 300) * 1000).to_string()});
    let names = ask_json(&server, "LabelNames", &times)["names"].to_string();
    assert!(names.contains("service_version") && !names.contains("service.version"), "{names}");
    let accept = [("accept", "*/*;allow-utf8-labelnames=true"), ("content-type", "application/json")];
    let path = "/querier.v1.QuerierService/LabelNames";
    let answer = request(server.address("http"), "POST", path, &accept, times.to_string().as_bytes()).unwrap().text();
    assert!(answer.contains("service.version") && !answer.contains("service_version"), "{answer}");
    let mut question = times;
    question["name"] = json!("service_version");
    assert_eq!(ask_json(&server, "LabelValues", &question)["names"], json!(["1", "2"]));
    let series = ask_json(&server, "SelectSeries", &selected(minute, &json!({"groupBy": ["service_version"]})));
    let values: Vec<(&Value, &Value)> = series["series"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (&one["labels"][0], &one["points"][0]["value"]))
        .collect();
    let version = |value: &str| json!({"name": "service_version", "value": value});
    assert_eq!(values, [(&version("1"), &json!(10.0)), (&version("2"), &json!(30.0))]);
    let wanted = json!({"labelSelector": r#"{service_name="shop", service_namespace="eu", service_version!="1"}"#});
    let graph = ask_json(&server, "SelectMergeStacktraces", &selected(minute, &wanted))["flamegraph"].clone();
    assert_eq!(graph["total"], "30");
}

/// Scenario: profiles for Go's optimiser: only leaves, and those without their lines.
/// Guarantee: stacks are as long as asked, the sum stays.
#[test]
fn profiles_for_the_go_optimiser() {
    let (_store, server) = Server::fresh();
    let minute = minute();
    ingest_stacks(&server, "shop", minute + 5, "main;a;b;c 10\nmain;x;b;c 5\nmain;d 1");
    let trim = |pgo: Value| {
        let message = selected(minute, &json!({"stackTraceSelector": {"goPgo": pgo}}));
        let profile = ask_json(&server, "SelectMergeProfile", &message);
        let samples = profile["sample"].as_array().unwrap().clone();
        let mut all: Vec<(usize, i64)> = samples
            .iter()
            .map(|one| {
                (one["locationId"].as_array().unwrap().len(), one["value"][0].as_str().unwrap().parse().unwrap())
            })
            .collect();
        all.sort_unstable();
        all
    };
    assert_eq!(trim(json!({"keepLocations": 2})), [(2, 1), (2, 15)]);
    assert_eq!(trim(json!({"keepLocations": 1, "aggregateCallees": true})), [(1, 1), (1, 15)]);
    assert_eq!(trim(json!({"keepLocations": 0})), [(2, 1), (4, 5), (4, 10)]);
}

/// Scenario: a click on a function of the flame graph, asked in the app's own spelling of the names: of stacks
/// without lines, and of a Go profile, which has them.
/// Guarantee: the stacks that start so; a function's first line where it is known, and else none instead of zero.
#[test]
fn function_details_in_the_spelling_of_the_app() {
    let (_store, server) = Server::fresh();
    let minute = minute();
    ingest_stacks(&server, "shop", minute + 5, "main;work;inner 30\nmain;work 10\nmain;rest 5");
    let go = concat!(env!("CARGO_MANIFEST_DIR"), "/../hotspan-formats/tests/fixtures/go-cpu.pb.gz");
    let path = format!("/ingest?name=go&format=pprof&from={minute}&until={}", minute + 10);
    assert_eq!(server.post(&path, "", &std::fs::read(go).unwrap()).unwrap().status, 200);
    let details = |service: &str, stack: &[&str]| {
        let sites: Vec<Value> = stack.iter().map(|name| json!({"name": name})).collect();
        let message = json!({
            "profile_typeID": CPU, "label_selector": format!("{{service_name={service:?},}}"),
            "start": 1, "end": (minute + 300) * 1000, "stackTraceSelector": {"call_site": sites}, "maxNodes": 500,
        });
        ask_json(&server, "SelectMergeProfile", &message)
    };
    // Names of functions with their first lines.
    let first_lines = |profile: &Value| {
        let functions = profile["function"].as_array().unwrap().iter();
        let named = functions.map(|one| {
            let name: usize = one["name"].as_str().unwrap().parse().unwrap();
            (profile["stringTable"][name].as_str().unwrap().to_owned(), one.get("startLine").cloned())
        });
        named.collect::<Vec<_>>()
    };
    let profile = details("shop", &["main", "work"]);
    let mut values: Vec<&str> =
        profile["sample"].as_array().unwrap().iter().map(|one| one["value"][0].as_str().unwrap()).collect();
    values.sort_unstable();
    assert_eq!(values, ["10", "30"]);
    let lines = first_lines(&profile);
    assert!(lines.len() == 3 && lines.iter().all(|(_, line)| line.is_none()), "{lines:?}");
    let lines = first_lines(&details("go", &["runtime.main", "main.main"]));
    assert!(lines.contains(&("main.spin".to_owned(), Some(json!("19")))), "{lines:?}");
}

/// Scenario: a later version of the app asks for shapes that are not known here, by name and by number, and compares.
/// Guarantee: it is told that they are not implemented, and so shows what it has; comparisons are flame graphs.
#[test]
fn shapes_of_later_versions() {
    let (_store, server) = Server::fresh();
    let minute = minute();
    ingest_stacks(&server, "shop", minute + 5, "main;a 30\nmain;b 10");
    for format in [json!("PROFILE_FORMAT_FUNCTIONS"), json!(77)] {
        let message = selected(minute, &json!({"format": format, "maxNodes": null}));
        let answer = ask(&server, "SelectMergeStacktraces", &message);
        assert_eq!(answer.status, 501, "{}", answer.text());
        assert!(answer.text().contains(r#""code":"unimplemented""#), "{}", answer.text());
        let sides =
            json!({"left": selected(minute, &json!({})), "right": selected(minute, &json!({})), "format": format});
        assert_eq!(ask_json(&server, "Diff", &sides)["flamegraph"]["leftTicks"], "40");
    }
    for (method, unknown) in [
        ("SelectSeries", json!({"aggregation": "TIME_SERIES_AGGREGATION_TYPE_OF_LATER"})),
        ("SelectSeries", json!({"exemplarType": "EXEMPLAR_TYPE_OF_LATER"})),
        ("SelectHeatmap", json!({"query_type": "HEATMAP_QUERY_TYPE_OF_LATER"})),
        ("SelectMergeStacktraces", json!({"format": "PROFILE_FORMAT_OF_LATER"})),
    ] {
        let answer = ask(&server, method, &selected(minute, &unknown));
        assert_eq!(answer.status, 501, "{unknown}: {}", answer.text());
        assert!(answer.text().contains("_OF_LATER") && answer.text().contains("known are"), "{}", answer.text());
    }
    for unknown in [json!({"aggregation": 7}), json!({"exemplarType": 7})] {
        let answer = ask(&server, "SelectSeries", &selected(minute, &unknown));
        assert!(answer.status == 501 && answer.text().contains(" 7 is not known"), "{}", answer.text());
    }
    let side = selected(minute, &json!({"format": "PROFILE_FORMAT_FUNCTION_TREE"}));
    let answer = ask(&server, "Diff", &json!({"left": side, "right": selected(minute, &json!({}))}));
    assert!(answer.status == 501 && answer.text().contains("left.format"), "{}", answer.text());
}

/// Scenario: settings set, read, changed behind somebody's back and deleted, over a restart.
/// Guarantee: they stay as they were set; a stale change is refused.
#[test]
fn settings_are_kept() {
    let store = tempfile::tempdir().unwrap();
    let mut server = Server::start(store.path());
    server.wait_ready();
    let call = |server: &Server, method: &str, message: Value| {
        ask(server, &format!("/settings.v1.SettingsService/{method}"), &message)
    };
    let set = |server: &Server, name: &str, value: &str, at: i64| {
        call(server, "Set", json!({"setting": {"name": name, "value": value, "modifiedAt": at.to_string()}})).status
    };
    assert_eq!((set(&server, "maxNodes", "100", 5), set(&server, "theme", "dark", 0)), (200, 200));
    assert_eq!((set(&server, "maxNodes", "200", 9), set(&server, "maxNodes", "300", 7)), (200, 409));
    assert_eq!((set(&server, "", "x", 1), set(&server, "big", &"x".repeat(70_000), 1)), (400, 400));
    server.terminate();
    let server = Server::start(store.path());
    server.wait_ready();
    let all: Value = serde_json::from_slice(&call(&server, "Get", json!({})).body).unwrap();
    let pairs: Vec<(&str, &str)> = all["settings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["name"].as_str().unwrap(), one["value"].as_str().unwrap()))
        .collect();
    assert_eq!(pairs, [("maxNodes", "200"), ("theme", "dark")]);
    assert_eq!(call(&server, "Delete", json!({"name": "theme"})).status, 200);
    assert!(!call(&server, "Get", json!({})).text().contains("theme"));

    let flags = ask_json(&server, "/capabilities.v1.FeatureFlagsService/GetFeatureFlags", &json!({}));
    let enabled: Vec<&Value> = flags["featureFlags"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|flag| flag["enabled"] == true)
        .map(|flag| &flag["name"])
        .collect();
    assert_eq!(enabled, ["v2StorageLayer", "utf8LabelNames"]);
    let rules = "/settings.v1.RecordingRulesService";
    assert_eq!(ask(&server, &format!("{rules}/ListRecordingRules"), &json!({})).status, 200);
    assert_eq!(ask(&server, &format!("{rules}/UpsertRecordingRule"), &json!({})).status, 501);
}
