//! Pyroscope's surface as its clients use it: profiles in by every way, flame graphs out in every protocol.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use prost::Message;
use serde_json::{Value, json};
use support::push_messages::{Pair, PushRequest, PushSeries, RawSample};
use support::querier::{CPU, always, ask, ask_json, ingest_stacks};
use support::{Answer, Server, now_nanos, request};

const SPAN: &str = "00f067aa0ba902b7";
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

fn fixture(name: &str) -> Vec<u8> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../hotspan-formats/tests/fixtures/");
    std::fs::read(format!("{path}{name}")).unwrap()
}

/// A form as clients send it.
fn form(parts: &[(&str, &[u8])]) -> (String, Vec<u8>) {
    let mut body = Vec::new();
    for (name, content) in parts {
        let head = format!("--XX\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"{name}.bin\"\r\n\r\n");
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(content);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"--XX--\r\n");
    ("multipart/form-data; boundary=XX".to_owned(), body)
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut encoder, bytes).unwrap();
    encoder.finish().unwrap()
}

fn flame(server: &Server, profile_type: &str, selector: &str) -> Value {
    let message = always(json!({"profileTypeID": profile_type, "labelSelector": selector}));
    ask_json(server, "SelectMergeStacktraces", &message)["flamegraph"].clone()
}

fn total(graph: &Value) -> i64 {
    graph["total"].as_str().unwrap().parse().unwrap()
}

fn has_name(graph: &Value, name: &str) -> bool {
    graph["names"].as_array().unwrap().iter().any(|other| other == name)
}

fn ingest(server: &Server, query: &str, content_type: &str, body: &[u8]) -> Answer {
    server.post(&format!("/ingest?{query}"), content_type, body).unwrap()
}

/// Scenario: what Go's client uploads: a gzipped pprof in a form, its name with labels, times in nanoseconds.
/// Guarantee: 200 without a body, then the burning function is in the flame graph, and only under its labels.
#[test]
fn go_client_upload() {
    let (_store, server) = Server::fresh();
    let config = br#"{"samples":{"units":"samples","display-name":"cpu"},"cpu":{"units":"samples"}}"#;
    let (content_type, body) = form(&[("profile", &fixture("go-cpu.pb.gz")), ("sample_type_config", config)]);
    let now = now_nanos();
    let query = format!(
        "name=shop%7Bregion%3Deu,otel.scope.name%3Dcom.grafana.pyroscope/go,__session_id__%3D1%7D\
         &from={}&until={now}&spyName=gospy&sampleRate=100&units=samples&aggregationType=sum",
        now - 15_000_000_000
    );
    for path in ["/ingest", "/pyroscope/ingest"] {
        let answer = server.post(&format!("{path}?{query}"), &content_type, &body).unwrap();
        assert_eq!((answer.status, answer.body.as_slice()), (200, b"".as_slice()), "{}", answer.text());
    }
    let graph = flame(&server, CPU, r#"{service_name="shop", region="eu"}"#);
    assert!(has_name(&graph, "main.burnInSpan") && has_name(&graph, "main.spin"), "{graph}");
    assert!(total(&graph) > 100_000_000);
    assert_eq!(flame(&server, CPU, r#"{service_name="shop", region="us"}"#)["names"], json!([]));
    assert_eq!(flame(&server, CPU, r#"{"otel.scope.name"=~".*/go"}"#)["total"], graph["total"]);

    let names = ask_json(&server, "LabelNames", &always(json!({})))["names"].clone();
    let names: Vec<&str> = names.as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert!(names.contains(&"region") && names.contains(&"service_name"), "{names:?}");
    assert!(!names.contains(&"otel.scope.name") && !names.contains(&"__session_id__"), "{names:?}");
}

/// Scenario: a name with 301 labels, one of which is 10,000 bytes long; a name whose span id is a UUID.
/// Guarantee: the series has as many labels as it may, and the others are beside the profile; the id is an attribute of the
/// samples, no label and no link.
#[test]
fn what_cannot_be_a_label_is_kept_beside() {
    let (_store, server) = Server::fresh();
    let now = now_nanos() / 1_000_000_000 - 60;
    let many: Vec<String> = (0..300).map(|number| format!("l{number:03}=v{number}")).collect();
    let long = "x".repeat(10_000);
    ingest_stacks(&server, &format!("many.cpu{{{},a_long_one={long}}}", many.join(",")), now, "main 5\n");
    let uuid = "550e8400-e29b-41d4-a716-446655440000";
    ingest_stacks(&server, &format!("badid.cpu{{span_id={uuid}}}"), now, "main 7\n");
    let names =
        ask_json(&server, "LabelNames", &always(json!({"matchers": [r#"{service_name="many"}"#]})))["names"].clone();
    let names: Vec<&str> = names.as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    let labels = names.iter().filter(|name| !name.starts_with("__")).count();
    assert_eq!((labels, names.contains(&"l126"), names.contains(&"l127")), (128, true, false), "{names:?}");
    assert_eq!(total(&flame(&server, CPU, r#"{l126="v126"}"#)), 5);
    let rows = |query: &str| server.post_json("/api/v1/sql", &json!({ "query": query }))["rows"].clone();
    let beside = rows("SELECT attributes FROM profiles WHERE attributes LIKE '%l299%'").to_string();
    assert!(beside.contains(r#"\"l299\":\"v299\""#) && beside.contains(&long), "{beside}");
    let samples = rows(&format!("SELECT value, attributes FROM samples WHERE attributes LIKE '%{uuid}%'"));
    assert_eq!(samples, json!([{"value": 7, "attributes": format!(r#"{{"span_id":"{uuid}"}}"#)}]));
    let names = ask_json(&server, "LabelNames", &always(json!({})))["names"].to_string();
    assert!(!names.contains("span_id"), "{names}");
}

/// Scenario: saved queries with the labels that Pyroscope makes of a profile's type and service.
/// Guarantee: they select as they do there, and are listed by name, value and series.
#[test]
fn labels_that_pyroscope_makes() {
    let (_store, server) = Server::fresh();
    let now = now_nanos() / 1_000_000_000 - 60;
    ingest_stacks(&server, "shop.cpu", now, "main 5\n");
    ingest_stacks(&server, "cart.wall", now, "main 7\n");
    for selector in [
        r#"{__name__="process_cpu"}"#,
        r#"{__type__="cpu", __unit__="nanoseconds"}"#,
        r#"{__period_type__="cpu", __period_unit__=~"nano.*"}"#,
        r#"{__service_name__="shop"}"#,
    ] {
        assert_eq!(total(&flame(&server, CPU, selector)), 5, "{selector}");
        let names = ask_json(&server, "LabelNames", &always(json!({"matchers": [selector]})))["names"].clone();
        for name in ["__name__", "__type__", "__unit__", "__period_type__", "__period_unit__", "__service_name__"] {
            assert!(names.as_array().unwrap().contains(&json!(name)), "{name}: {names}");
        }
        let message = always(json!({"matchers": [selector], "labelNames": ["__name__", "service_name"]}));
        let pairs = json!([{"name": "__name__", "value": "process_cpu"}, {"name": "service_name", "value": "shop"}]);
        assert_eq!(ask_json(&server, "Series", &message)["labelsSet"], json!([{"labels": pairs}]));
    }
    assert_eq!(flame(&server, CPU, r#"{__name__="wall"}"#)["names"], json!([]));
    let values = |name: &str| ask_json(&server, "LabelValues", &always(json!({"name": name})))["names"].clone();
    assert_eq!(values("__name__"), json!(["process_cpu", "wall"]));
    assert_eq!(values("__service_name__"), json!(["cart", "shop"]));
}

/// Scenario: one set of stacks as collapsed groups, lines, tree and trie, each under a name of its own.
/// Guarantee: all give the same flame graph, in nanoseconds by the rate that was said.
#[test]
fn text_formats_agree() {
    let (_store, server) = Server::fresh();
    let now = now_nanos() / 1_000_000_000;
    let tree = b"\x00\x00\x01\x04main\x00\x02\x01x\x03\x00\x01y\x05\x00";
    let trie = b"\x00\x00\x01\x05main;\x00\x02\x01x\x03\x00\x01y\x05\x00";
    let lines = "main;x\n".repeat(3) + &"main;y\n".repeat(5);
    let bodies: [(&str, &str, &[u8]); 6] = [
        ("groups", "", b"main;x 3\nmain;y 5\n"),
        ("folded", "&format=folded", b"main;y 5\nmain;x 3"),
        ("uncounted", "", b"main;x 3\nmain;z\nmain;y 5\n"),
        ("lines", "&format=lines", lines.as_bytes()),
        ("tree", "&format=tree", tree),
        ("trie", "&format=trie", trie),
    ];
    for (name, format, body) in bodies {
        let query = format!("name={name}.cpu&from={}&until={now}&sampleRate=50{format}", now - 10);
        let answer = ingest(&server, &query, "binary/octet-stream", body);
        assert_eq!(answer.status, 200, "{name}: {}", answer.text());
        let graph = flame(&server, CPU, &format!("{{service_name=\"{name}\"}}"));
        assert_eq!(graph["names"], json!(["total", "main", "y", "x"]), "{name}");
        assert_eq!(graph["total"], json!("160000000"), "{name}");
        assert_eq!(graph["levels"][2]["values"][1], json!("60000000"), "{name}");
    }
    let speedscope = fixture("py-spy.speedscope.json");
    let answer = ingest(&server, "name=python&format=speedscope", "application/json", &speedscope);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let answer = ingest(&server, "name=raw", "application/octet-stream", &fixture("go-cpu.pb.gz"));
    assert_eq!(answer.status, 200, "a body without a format is recognised: {}", answer.text());
    assert!(has_name(&flame(&server, CPU, r#"{service_name="raw"}"#), "main.spin"));
}

/// Scenario: a recording of the Java agent with its labels part, gzipped part by part as the agent does.
/// Guarantee: labels of the context select, and the span that the agent named has a flame graph of its own.
#[test]
fn java_agent_upload() {
    let (_store, server) = Server::fresh();
    let parts =
        [("jfr", gzip(&fixture("pyroscope-agent.jfr"))), ("labels", gzip(&fixture("pyroscope-agent.labels.pb")))];
    let parts: Vec<(&str, &[u8])> = parts.iter().map(|(name, bytes)| (*name, bytes.as_slice())).collect();
    let (content_type, body) = form(&parts);
    let query = "name=java&format=jfr&from=1700000000&until=1700000010&spyName=javaspy&sampleRate=100&units=samples";
    let answer = ingest(&server, query, &content_type, &body);
    assert_eq!((answer.status, answer.body.len()), (200, 0), "{}", answer.text());
    let labelled = flame(&server, CPU, r#"{service_name="java", region="eu", vehicle="car"}"#);
    assert!(has_name(&labelled, "AgentBurn.burnLabelled") && !has_name(&labelled, "AgentBurn.burnInSpan"));

    let selector = r#"{service_name="java"}"#;
    let message = always(json!({"profileTypeID": CPU, "labelSelector": selector, "spanSelector": [SPAN]}));
    for method in ["SelectMergeSpanProfile", "SelectMergeStacktraces"] {
        let graph = ask_json(&server, method, &message)["flamegraph"].clone();
        assert!(has_name(&graph, "AgentBurn.burnInSpan") && !has_name(&graph, "AgentBurn.burnLabelled"), "{graph}");
    }
    let by_trace = always(json!({"profileTypeID": CPU, "labelSelector": "{}", "traceIdSelector": [TRACE]}));
    let by_trace = ask_json(&server, "SelectMergeStacktraces", &by_trace)["flamegraph"].clone();
    let by_label = flame(&server, CPU, &format!("{{span_id=\"{}\"}}", SPAN.to_uppercase()));
    assert_eq!(by_trace["total"], by_label["total"]);
    let wrong = always(json!({"profileTypeID": CPU, "labelSelector": "{}", "spanSelector": ["nonsense!"]}));
    assert_eq!(ask(&server, "SelectMergeSpanProfile", &wrong).status, 400);
}

fn push_request(service: &str, raw_profile: Vec<u8>) -> PushRequest {
    let pair = |name: &str, value: &str| Pair { name: name.to_owned(), value: value.to_owned() };
    let labels = vec![
        pair("service_name", service),
        pair("__name__", "process_cpu"),
        pair("span_id", SPAN),
        pair("process.runtime.name", "rust"),
    ];
    let samples = vec![RawSample { raw_profile, id: "5f2a".to_owned() }];
    PushRequest { series: vec![PushSeries { labels, samples }] }
}

fn framed(message: &[u8]) -> Vec<u8> {
    let mut frame = vec![0];
    frame.extend_from_slice(&(message.len() as u32).to_be_bytes());
    frame.extend_from_slice(message);
    frame
}

const PUSH: &str = "/push.v1.PusherService/Push";

/// Scenario: one profile pushed over Connect in protobuf (gzipped and not) and JSON, and over gRPC-Web.
/// Guarantee: each is taken, a span id among the labels links the samples and makes no series of its own.
#[test]
fn push_in_every_protocol() {
    let (_store, server) = Server::fresh();
    let profile = fixture("go-cpu.pb.gz");
    let plain = push_request("plain", profile.clone()).encode_to_vec();
    let answer = server.post(PUSH, "application/proto", &plain).unwrap();
    assert_eq!((answer.status, answer.body.len()), (200, 0), "{}", answer.text());
    let headers = [("content-type", "application/proto"), ("content-encoding", "gzip")];
    let zipped = gzip(&push_request("zipped", profile.clone()).encode_to_vec());
    assert_eq!(request(&server.http, "POST", PUSH, &headers, &zipped).unwrap().status, 200);
    let json = json!({"series": [{
        "labels": [
            {"name": "service_name", "value": "json"}, {"name": "__name__", "value": "process_cpu"},
            {"name": "profile_id", "value": SPAN},
        ],
        "samples": [{"rawProfile": STANDARD.encode(&profile), "ID": "x"}],
    }]});
    let answer = server.post(PUSH, "application/json", json.to_string().as_bytes()).unwrap();
    assert_eq!((answer.status, answer.text().as_str()), (200, "{}"));
    let web = framed(&push_request("web", profile).encode_to_vec());
    let answer = server.post(PUSH, "application/grpc-web+proto", &web).unwrap();
    assert!(answer.text().contains("grpc-status: 0"), "{}", answer.text());

    let whole = total(&flame(&server, CPU, r#"{service_name="plain"}"#));
    for service in ["zipped", "json", "web"] {
        let selector = format!("{{service_name=\"{service}\"}}");
        assert_eq!(total(&flame(&server, CPU, &selector)), whole, "{service}");
        let message = always(json!({"profileTypeID": CPU, "labelSelector": selector, "spanSelector": [SPAN]}));
        let of_span = ask_json(&server, "SelectMergeSpanProfile", &message)["flamegraph"].clone();
        assert!(total(&of_span) > 0 && has_name(&of_span, "main.spin"), "{service}");
    }
    let names = ask_json(&server, "LabelNames", &always(json!({})))["names"].clone();
    assert!(!names.to_string().contains("span_id") && !names.to_string().contains("profile_id"), "{names}");
}

/// Scenario: requests that are wrong in one way each, one of them with a good series before the bad one.
/// Guarantee: the status that clients expect, a message that names the fault, and nothing stored.
#[test]
fn broken_profiles_leave_nothing() {
    let (_store, server) = Server::fresh();
    let cut = &fixture("go-cpu.pb.gz")[..500];
    let (content_type, body) = form(&[("profile", cut)]);
    let (_, no_profile) = form(&[("other", cut)]);
    let octets = "application/octet-stream";
    let cases: [(&str, &str, &[u8], u16, &str); 9] = [
        ("name=%7Ba%3Db%7D", octets, b"a 1", 400, "name"),
        ("name=sh!op", octets, b"a 1", 400, "'!'"),
        ("name=shop.whatever", octets, b"a 1", 400, "whatever"),
        ("name=shop", octets, b"a;b x", 400, "byte 4"),
        ("name=shop&format=tree", octets, b"\x00\x00\x09", 400, "byte"),
        ("name=shop", &content_type, &body, 422, "gzip"),
        ("name=shop", &content_type, &no_profile, 422, "profile"),
        ("name=shop&format=jfr", octets, b"FLR\x00\x00\x02", 422, "jfr"),
        ("name=shop&format=speedscope", octets, b"{\"$schema\": 3", 422, "speedscope"),
    ];
    for (query, content_type, body, status, message) in cases {
        let answer = ingest(&server, query, content_type, body);
        assert_eq!(answer.status, status, "{query}: {}", answer.text());
        let error: Value = serde_json::from_slice(&answer.body).unwrap();
        assert!(error["message"].as_str().unwrap().contains(message), "{query}: {error}");
        assert!(error["code"].is_string());
    }
    let mut partly = push_request("partly", fixture("go-cpu.pb.gz"));
    partly.series.push(push_request("partly", cut.to_vec()).series.remove(0));
    let answer = server.post(PUSH, "application/proto", &partly.encode_to_vec()).unwrap();
    assert_eq!(answer.status, 400, "{}", answer.text());
    assert!(answer.text().contains("series[1]"), "{}", answer.text());
    for (content_type, body) in
        [("application/proto", &b""[..]), ("application/proto", b"\x0a\xff"), ("application/json", b"{\"series\":3}")]
    {
        let answer = server.post(PUSH, content_type, body).unwrap();
        assert_eq!(answer.status, 400, "{}", answer.text());
        assert!(answer.text().contains("invalid_argument"), "{}", answer.text());
    }
    let web = server.post(PUSH, "application/grpc-web+proto", &framed(b"")).unwrap();
    assert!(web.text().contains("grpc-status: 3"), "{}", web.text());
    assert_eq!(server.post(PUSH, "text/plain", b"x").unwrap().status, 415);
    let upload = server.post("/api/v1/profiles?service=shop", octets, cut).unwrap();
    assert_eq!(upload.status, 400, "{}", upload.text());
    assert_eq!(server.post("/api/v1/profiles?servcie=shop", octets, b"a 1").unwrap().status, 400);
    assert_eq!(server.post("/api/v1/profiles?trace_id=xyz!", octets, b"a 1").unwrap().status, 400);
    assert_eq!(ask_json(&server, "ProfileTypes", &always(json!({})))["profileTypes"], json!([]));
    assert_eq!(ask_json(&server, "GetProfileStats", &json!({}))["dataIngested"], json!(false));
}

/// Scenario: an address that says each parameter twice, and one that it does not know.
/// Guarantee: the first of each counts, as it does for Pyroscope.
#[test]
fn the_first_of_repeated_parameters_counts() {
    let (_store, server) = Server::fresh();
    let now = now_nanos() / 1_000_000_000;
    let query = format!(
        "name=first.cpu&name=second.itimer&from={}&from=1&until={now}&until=2&sampleRate=100&sampleRate=1\
         &format=folded&format=pprof&spyName=a&spyName=b&units=samples&units=bytes",
        now - 10
    );
    let answer = ingest(&server, &query, "text/plain", b"main;work 5\n");
    assert_eq!((answer.status, answer.text().as_str()), (200, ""));
    assert_eq!(total(&flame(&server, CPU, "{service_name=\"first\"}")), 50_000_000);
    assert_eq!(total(&flame(&server, CPU, "{service_name=\"second\"}")), 0);
}

/// Scenario: files of every format that profilers leave, uploaded under a trace and span.
/// Guarantee: the format is found, and the span's samples hold the function that burned.
#[test]
fn files_of_any_format() {
    let (_store, server) = Server::fresh();
    let files = [
        ("go-cpu.pb.gz", "main.spin"),
        ("async-itimer.jfr", "Burn.spin"),
        ("jdk.jfr.gz", "Burn.spin"),
        ("node.cpuprofile", "spin"),
        ("py-spy.speedscope.json", "spin"),
        ("py-spy.collapsed", "spin"),
        ("perf-script.txt", "main.spin"),
        ("async-itimer.otlp", "Burn.spin"),
    ];
    for (at, (file, function)) in files.iter().enumerate() {
        let span = format!("{:016x}", at + 1);
        let path = format!(
            "/api/v1/profiles?service=files&label=file%3D{file}&label=commit%3Dabc&trace_id={TRACE}&span_id={span}"
        );
        let answer = server.post(&path, "application/octet-stream", &fixture(file)).unwrap();
        assert_eq!(answer.status, 200, "{file}: {}", answer.text());
        let samples = server.get_json(&format!("/api/v1/profiles?span_id={span}&limit=10000"));
        let stacks = samples["samples"].as_array().unwrap();
        assert!(!stacks.is_empty(), "{file}");
        let spins = stacks.iter().filter(|sample| sample["stack_trace"].to_string().contains(function)).count();
        assert!(spins > 0, "{file}: {}", samples["samples"][0]);
        assert_eq!(stacks[0]["trace_id"], TRACE, "{file}");
    }
    let values = always(json!({"name": "file", "matchers": [r#"{service_name="files", commit="abc"}"#]}));
    let values = ask_json(&server, "LabelValues", &values);
    assert!(values["names"].as_array().unwrap().len() >= 7, "{values}");
    let page = server.get_json(&format!("/api/v1/profiles?trace_id={TRACE}&limit=3&offset=1"));
    assert_eq!((page["samples"].as_array().unwrap().len(), &page["next_offset"]), (3, &json!(4)));
    let far = server.get(&format!("/api/v1/profiles?trace_id={TRACE}&offset=300000")).unwrap();
    assert_eq!(far.status, 400);
    assert!(far.text().contains("limit: samples on pages") && far.text().contains("start_time"), "{}", far.text());
    assert_eq!(server.get("/api/v1/profiles").unwrap().status, 400);
}

/// Scenario: two profiles of two versions in two steps of time.
/// Guarantee: sums, averages and groups add up to the flame graph; no point lies after the end; limits and wrong steps are
/// told.
#[test]
fn series_over_time() {
    let (_store, server) = Server::fresh();
    let start = now_nanos() / 1_000_000_000 / 60 * 60 - 600;
    ingest_stacks(&server, "shop{v=1}", start, "main;a 10\nmain;b 20");
    ingest_stacks(&server, "shop{v=2}", start + 5, "main;a 100");
    ingest_stacks(&server, "shop{v=2}", start + 300, "main;c 1000");
    let message = |extra: Value| {
        let mut message = json!({
            "profileTypeID": CPU, "labelSelector": r#"{service_name="shop"}"#, "step": 60,
            "start": start * 1000, "end": (start + 600) * 1000,
        });
        message.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        message
    };
    let points = |extra: Value| {
        let series = ask_json(&server, "SelectSeries", &message(extra))["series"].clone();
        let point = |point: &Value| {
            let time: u64 = point["timestamp"].as_str().unwrap().parse().unwrap();
            (time / 1000 - start, point["value"].as_f64().unwrap())
        };
        let points = |one: &Value| one["points"].as_array().unwrap().iter().map(point).collect::<Vec<_>>();
        series.as_array().unwrap().iter().map(points).collect::<Vec<_>>()
    };
    assert_eq!(points(json!({})), [[(60, 130.0), (360, 1000.0)]]);
    assert_eq!(points(json!({"groupBy": ["v"]})), [vec![(60, 30.0)], vec![(60, 100.0), (360, 1000.0)]]);
    let average = json!({"aggregation": "TIME_SERIES_AGGREGATION_TYPE_AVERAGE"});
    assert_eq!(points(average), [[(60, 65.0), (360, 1000.0)]]);
    assert_eq!(points(json!({"groupBy": ["v"], "limit": "1"})), [[(60, 100.0), (360, 1000.0)]]);
    let site = json!({"stackTraceSelector": {"callSite": [{"name": "main"}, {"name": "a"}]}});
    assert_eq!(points(site), [[(60, 110.0)]]);
    assert_eq!(points(json!({"step": 7})), [[(7, 130.0), (301, 1000.0)]]);
    // Just at the end, and after the last whole step: within the time that is asked for all the same.
    ingest_stacks(&server, "late", start + 600, "main;a 7");
    let late = |mut more: Value| {
        more["labelSelector"] = json!(r#"{service_name="late"}"#);
        points(more)
    };
    for step in [15, 60, 7, 450] {
        assert_eq!(late(json!({"step": step})), [[(600, 7.0)]], "{step}");
    }
    assert_eq!(late(json!({"end": (start + 630) * 1000})), [[(630, 7.0)]]);
    assert_eq!(late(json!({"start": (start + 600) * 1000})), [[(600, 7.0)]]);
    assert_eq!(ask(&server, "SelectSeries", &message(json!({"step": 0}))).status, 400);
    assert_eq!(ask(&server, "SelectSeries", &message(json!({"end": 1}))).status, 400);
    let groups = ask_json(&server, "SelectSeries", &message(json!({"groupBy": ["v"]})));
    assert_eq!(groups["series"][0]["labels"], json!([{"name": "v", "value": "1"}]));

    let series = ask_json(&server, "Series", &always(json!({"labelNames": ["service_name", "__profile_type__"]})));
    let pairs = json!([{"name": "__profile_type__", "value": CPU}, {"name": "service_name", "value": "shop"}]);
    assert_eq!(series["labelsSet"][1], json!({"labels": pairs}));
    let analysis = ask_json(&server, "AnalyzeQuery", &always(json!({"query": r#"{service_name="shop"}"#})));
    assert_eq!(analysis["queryImpact"]["totalQueriedSeries"], "2");
}

/// Scenario: two versions compared, and one flame graph in every shape.
/// Guarantee: differences carry both sides; tree, dot, pprof and the older endpoints tell the same sums.
#[test]
fn shapes_and_differences() {
    let (_store, server) = Server::fresh();
    let now = now_nanos() / 1_000_000_000 - 60;
    ingest_stacks(&server, "shop{v=1}", now, "main;a 10\nmain;b 20");
    ingest_stacks(&server, "shop{v=2}", now, "main;a 15\nmain;c 7");
    let side = |v: u32| always(json!({"profileTypeID": CPU, "labelSelector": format!("{{v=\"{v}\"}}")}));
    let diff = ask_json(&server, "Diff", &json!({"left": side(1), "right": side(2)}))["flamegraph"].clone();
    assert_eq!((&diff["leftTicks"], &diff["rightTicks"], &diff["total"]), (&json!("30"), &json!("22"), &json!("52")));
    assert_eq!(diff["levels"][0]["values"], json!(["0", "30", "0", "0", "22", "0", "0"]));
    let path = format!(
        "/pyroscope/render-diff?leftQuery={CPU}%7Bv%3D%221%22%7D&rightQuery={CPU}%7Bv%3D%222%22%7D\
         &leftFrom=now-1h&leftUntil=now&rightFrom=now-1h&rightUntil=now"
    );
    let rendered = server.get_json(&path);
    assert_eq!((&rendered["leftTicks"], &rendered["rightTicks"]), (&json!(30), &json!(22)));
    assert_eq!(rendered["metadata"]["format"], "double");

    let mut shaped = side(1);
    shaped["format"] = json!("PROFILE_FORMAT_TREE");
    let tree = ask_json(&server, "SelectMergeStacktraces", &shaped)["tree"].clone();
    let expected = b"\x00\x00\x01\x04main\x00\x02\x01b\x14\x00\x01a\x0a\x00";
    assert_eq!(tree, json!(STANDARD.encode(expected)));
    shaped["format"] = json!(3);
    let dot = ask_json(&server, "SelectMergeStacktraces", &shaped)["dot"].clone();
    assert!(dot.as_str().unwrap().contains("digraph") && dot.as_str().unwrap().contains("main"));
    shaped["format"] = json!("PROFILE_FORMAT_PPROF");
    let profile = ask_json(&server, "SelectMergeStacktraces", &shaped)["pprof"]["profile"].clone();
    let merged = ask_json(&server, "SelectMergeProfile", &side(1));
    assert_eq!(profile["sample"], merged["sample"]);
    let sum: i64 = merged["sample"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| s["value"][0].as_str().unwrap().parse::<i64>().unwrap())
        .sum();
    assert_eq!(sum, 30);
    shaped["format"] = json!(9);
    assert_eq!(ask(&server, "SelectMergeStacktraces", &shaped).status, 501);
    let mut small = side(1);
    small["maxNodes"] = json!("2");
    let small = ask_json(&server, "SelectMergeStacktraces", &small)["flamegraph"].clone();
    assert!(has_name(&small, "other") && !has_name(&small, "a") && total(&small) == 30, "{small}");
    small_limits(&server, &side(1));
    limits_of_files_and_differences(&server, side);

    let rendered = server.get_json("/pyroscope/render?query=shop.cpu%7Bv%3D%221%22%7D&from=now-1h&until=now&groupBy=v");
    assert_eq!(rendered["flamebearer"]["numTicks"], 30);
    assert_eq!(rendered["timeline"]["durationDelta"], 15);
    let bars =
        |timeline: &Value| timeline["samples"].as_array().unwrap().iter().map(|bar| bar.as_u64().unwrap()).sum::<u64>();
    assert_eq!((bars(&rendered["timeline"]), bars(&rendered["groups"]["1"])), (30, 30));
    ingest_stacks(&server, "shop", now, "main;a 3");
    let all = format!("/pyroscope/render?query=%7B__name__%3D%22{CPU}%22%7D&from=-1h&until=now&groupBy=v");
    let rendered = server.get_json(&all);
    assert_eq!(rendered["flamebearer"]["numTicks"], 55);
    assert_eq!(["1", "2", "*"].map(|group| bars(&rendered["groups"][group])), [30, 22, 3], "what has no label is *");
    assert_eq!(server.get_json("/pyroscope/label-values?label=v"), json!(["1", "2"]));
    assert_eq!(server.get_json("/pyroscope/label-values?label=__name__"), json!([CPU]));
    assert_eq!(server.get("/pyroscope/render").unwrap().status, 400);
    assert_eq!(server.post("/pyroscope/render", "text/plain", b"").unwrap().status, 405);
}

/// Files have as many nodes as they are asked to have, and are whole where nobody asks; a difference goes by both sides.
fn limits_of_files_and_differences(server: &Server, side: impl Fn(u32) -> Value) {
    let limited = |v: u32, nodes: Value| {
        let mut message = side(v);
        message["maxNodes"] = nodes;
        message
    };
    // How many functions there are, whether one is `other`, and the sum.
    let facts = |profile: &Value| {
        let texts = profile["stringTable"].as_array().unwrap();
        let samples = profile["sample"].as_array().unwrap().iter();
        let sum: i64 = samples.map(|one| one["value"][0].as_str().unwrap().parse::<i64>().unwrap()).sum();
        (profile["function"].as_array().unwrap().len(), texts.contains(&json!("other")), sum)
    };
    for (nodes, expected) in [
        (json!(null), (3, false, 30)),
        (json!(0), (3, false, 30)),
        (json!("2"), (3, true, 30)),
        (json!(1), (2, true, 30)),
    ] {
        let mut message = limited(1, nodes.clone());
        assert_eq!(facts(&ask_json(server, "SelectMergeProfile", &message)), expected, "{nodes}");
        message["format"] = json!("PROFILE_FORMAT_PPROF");
        for method in ["SelectMergeStacktraces", "SelectMergeSpanProfile"] {
            let profile = ask_json(server, method, &message)["pprof"]["profile"].clone();
            assert_eq!(facts(&profile), expected, "{method} {nodes}");
        }
    }
    for method in ["SelectMergeProfile", "SelectMergeSpanProfile"] {
        assert_eq!(ask(server, method, &limited(1, json!(2_000_000))).status, 400, "{method}");
    }
    let names = |left: Value, right: Value| {
        let graph = ask_json(server, "Diff", &json!({"left": left, "right": right}))["flamegraph"].clone();
        graph["names"].as_array().unwrap().len()
    };
    // `total`, main, a, b and c; or as many as are asked for, with `total` and `other`.
    assert_eq!(names(side(1), side(2)), 5);
    assert_eq!(names(limited(1, json!(2)), side(2)), 4);
    assert_eq!(names(side(1), limited(2, json!(2))), 4);
    assert_eq!(names(limited(1, json!(1)), limited(2, json!(2))), 4);
    let wrong = json!({"left": side(1), "right": limited(2, json!(-1))});
    let answer = ask(server, "Diff", &wrong);
    assert!(answer.status == 400 && answer.text().contains("right: max_nodes"), "{}", answer.text());
}

fn small_limits(server: &Server, side: &Value) {
    for nodes in [json!("-1"), json!(2_000_000)] {
        let mut wrong = side.clone();
        wrong["maxNodes"] = nodes;
        assert_eq!(ask(server, "SelectMergeStacktraces", &wrong).status, 400);
    }
    for (field, value, said) in [
        ("step", json!("x"), "step: expected a number, found"),
        ("start", json!(true), "start: expected a whole number, found true"),
        ("groupBy", json!([1]), "groupBy[0]: expected a string"),
    ] {
        let mut wrong = side.clone();
        wrong[field] = value;
        let answer = ask(server, "SelectSeries", &wrong);
        assert!(answer.status == 400 && answer.text().contains(said), "{}", answer.text());
    }
    let mut as_text = side.clone();
    as_text["step"] = json!("15");
    assert_eq!(ask(server, "SelectSeries", &as_text).status, 200);
    for selector in ["{a=", "shop", "{a=~\"(\"}"] {
        let mut wrong = side.clone();
        wrong["labelSelector"] = json!(selector);
        let answer = ask(server, "SelectMergeStacktraces", &wrong);
        assert_eq!(answer.status, 400, "{selector}: {}", answer.text());
        assert!(answer.text().contains("invalid_argument"));
    }
}

/// Scenario: Grafana's data source: binary Connect, its health check without a time, and what it asks besides.
/// Guarantee: protobuf that decodes, the type that was just pushed, flags and versions.
#[test]
fn grafana_calls() {
    #[derive(Clone, PartialEq, Message)]
    struct Types {
        #[prost(message, repeated, tag = "1")]
        types: Vec<Pair>,
    }
    let (_store, server) = Server::fresh();
    ingest_stacks(&server, "shop", now_nanos() / 1_000_000_000, "main;a 10");
    let path = "/querier.v1.QuerierService/ProfileTypes";
    let answer = server.post(path, "application/proto", b"").unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(answer.headers.to_ascii_lowercase().contains("content-type: application/proto"), "{}", answer.headers);
    let types = Types::decode(&*answer.body).unwrap().types;
    assert_eq!((types[0].name.as_str(), types[0].value.as_str()), (CPU, "process_cpu"));
    let framed_answer = server.post(path, "application/grpc-web+proto", &framed(b"")).unwrap();
    assert_eq!(Types::decode(&framed_answer.body[5..5 + answer.body.len()]).unwrap().types, types);
    let flags = server.post("/capabilities.v1.FeatureFlagsService/GetFeatureFlags", "application/json", b"{}").unwrap();
    assert!(flags.text().contains("utf8LabelNames"), "{}", flags.text());
    let settings = server.post("/settings.v1.SettingsService/Get", "application/json", b"{}").unwrap();
    assert_eq!(settings.status, 200);
    assert_eq!(server.get_json("/api/v1/status/buildinfo")["status"], "success");
    assert_eq!(ask_json(&server, "GetProfileStats", &json!({}))["dataIngested"], true);
    assert_eq!(server.post(path, "application/proto", b"\xff").unwrap().status, 400);
}
