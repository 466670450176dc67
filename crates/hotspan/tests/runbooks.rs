//! The questions of runbooks, as they are asked with curl and scripts: short names, ids in any spelling, and mistakes.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use support::querier::{CPU, always, ask_json, ingest_stacks};
use support::{Server, now_nanos};

const SPAN: &str = "00f067aa0ba902b7";
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// Scenario: the questions of runbooks, asked with curl: names by self value, `topk`, every format of a profile.
/// Guarantee: the hottest function first, ids of either case or in base64, and pprof that can be read back.
#[test]
fn script_queries() {
    let (_store, server) = Server::fresh();
    let now = now_nanos() / 1_000_000_000 - 60;
    let name = format!("order-service.cpu{{span_id={SPAN},trace_id={TRACE}}}");
    ingest_stacks(&server, &name, now, "main;cold 1\nmain;hot 50\nmain;warm;hot 5\nmain;warm 20");
    ingest_stacks(&server, "order-service.cpu", now, "main;elsewhere 1000");
    let base64_span = STANDARD.encode(0x00f0_67aa_0ba9_02b7_u64.to_be_bytes());
    for span in [SPAN.to_owned(), SPAN.to_uppercase(), SPAN.trim_start_matches('0').to_owned(), base64_span] {
        let path = format!("/api/v1/query?query=order-service.cpu%7Bspan_id%3D%22{span}%22%7D&format=json");
        let answer = server.get_json(&path);
        assert_eq!(answer["flamebearer"]["numTicks"], 76, "{span}");
        assert_eq!(answer["flamebearer"]["names"].as_array().unwrap()[..3], ["hot", "warm", "cold"], "{span}");
    }
    let path =
        "/api/v1/query?query=topk(2,%20order-service.cpu%7Bspan_id%3D%22f067aa0ba902b7%22%7D)&from=now-1h&until=now";
    let top = server.get_json(path);
    assert_eq!(top["functions"][0]["name"], "hot");
    assert_eq!((&top["functions"][0]["self"], top["functions"].as_array().unwrap().len()), (&json!(55), 2));
    let samples = server.get_json(&format!("/api/v1/profiles?trace_id={TRACE}&start_time=now-1h&end_time=now"));
    assert_eq!((&samples["total"], &samples["next_offset"]), (&json!(4), &Value::Null));
    let spans = server.get_json("/api/v1/functions/spans?function=hot");
    let facts = ["value", "unlinked_value", "unknown_value", "unknown_spans"].map(|name| spans[name].as_i64());
    assert_eq!(facts, [Some(55), Some(0), Some(55), Some(1)], "the span is not stored: {spans}");
    let names = server.get_json("/api/v1/query?query=order-service.cpu&format=json")["flamebearer"]["names"].clone();
    assert_eq!(names.as_array().unwrap().last(), Some(&json!("total")), "no function, so not among the top ones");
    assert_eq!(samples["samples"][0]["span_id"], SPAN);
    assert_eq!(samples["samples"][0]["stack_trace"].as_array().unwrap().last().unwrap()["function"], "main");

    let of = |format: &str| {
        server.get(&format!("/api/v1/profile?app=order-service&span_id={SPAN}&format={format}")).unwrap()
    };
    let pprof = of("pprof");
    assert_eq!(pprof.status, 200);
    let again = server.post("/api/v1/profiles?service=again", "application/octet-stream", &pprof.body).unwrap();
    assert_eq!(again.status, 200, "{}", again.text());
    assert_eq!(server.get_json("/api/v1/query?query=again.cpu")["flamebearer"]["numTicks"], 76);
    assert!(of("collapsed").text().contains("main;warm;hot 5"));
    assert!(of("speedscope").text().contains("speedscope"));
    assert!(of("svg").text().contains("<svg") && of("flamegraph").text().contains("hot"));
    assert_eq!(of("nonsense").status, 400);
    let unreadable = server.get("/api/v1/profiles?span_id=1&limit=x").unwrap();
    let error: Value = serde_json::from_slice(&unreadable.body).unwrap();
    assert!(unreadable.status == 400 && error["error"].as_str().unwrap().contains("limit"), "{error}");
    for wrong in ["query=topk(x,y)", "query=a:b", "query=cpu&from=tomorrow", ""] {
        assert_eq!(server.get(&format!("/api/v1/query?{wrong}")).unwrap().status, 400, "{wrong}");
    }
}

/// Scenario: the addresses of runbooks as they are printed there, quotes, braces, angle brackets and all, and as tools that
/// escape only some of it send them. Guarantee: they are answered as if all of it were escaped.
#[test]
fn addresses_as_they_are_printed() {
    let (_store, server) = Server::fresh();
    let now = now_nanos() / 1_000_000_000 - 60;
    ingest_stacks(&server, &format!("shop.cpu{{span_id={SPAN}}}"), now, "main;hot 50");
    ingest_stacks(&server, "shop.cpu", now, "main;elsewhere 1000");
    for query in [format!("shop.cpu{{span_id=\"{SPAN}\"}}"), format!("shop.cpu%7Bspan_id=\"{SPAN}\"}}")] {
        let answer = server.get_json(&format!("/api/v1/query?query={query}&from=now-1h&until=now&format=json"));
        assert_eq!(answer["flamebearer"]["numTicks"], 50, "{query}");
        let top = server.get_json(&format!("/api/v1/query?query=topk(10,{query})"));
        assert_eq!(top["functions"][0]["name"], "hot", "{query}");
    }
    for question in ["{duration>500ms}", "{name=\"x\"}"] {
        let found = server.get_json(&format!("/api/search?q={question}"));
        assert!(found["traces"].is_array(), "{question}: {found}");
    }
}

/// Scenario: a time that ends at the very moment of a sample, in seconds and nanoseconds, and one without any length.
/// Guarantee: all of our own addresses leave the sample out and refuse the empty time; those of Pyroscope count it.
#[test]
fn the_end_of_a_time() {
    let (_store, server) = Server::fresh();
    let now = now_nanos() / 1_000_000_000 - 60;
    ingest_stacks(&server, "shop.cpu", now, "main;hot 50");
    for until in [now.to_string(), format!("{now}000000000")] {
        let total = |path: &str, from: u64| {
            let answer = server.get(&format!("{path}&from={from}&until={until}")).unwrap();
            let json: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
            (answer.status, json["flamebearer"]["numTicks"].as_i64())
        };
        for own in ["/api/v1/query?query=shop.cpu", "/api/v1/profile?app=shop&format=json"] {
            assert_eq!(total(own, now - 60), (200, Some(0)), "{own} {until}");
            assert_eq!(total(own, now).0, 400, "{own} {until}");
        }
        for from in [now - 60, now] {
            assert_eq!(total("/pyroscope/render?query=shop.cpu", from), (200, Some(50)), "{until}");
        }
    }
}

/// Scenario: an id whose base64 has plus signs, and a time with an offset, in addresses in which nothing is escaped.
/// Guarantee: the samples of that span are found wherever an address takes an id; the offset counts.
#[test]
fn plus_signs_in_addresses() {
    let (_store, server) = Server::fresh();
    let now = now_nanos() / 1_000_000_000 - 60;
    ingest_stacks(&server, "shop.cpu{span_id=fbefbe0102030405}", now, "main;hot 50");
    ingest_stacks(&server, "shop.cpu", now, "main;elsewhere 1000");
    for id in ["++++AQIDBAU=", "%2B%2B%2B%2BAQIDBAU%3D", "----AQIDBAU"] {
        let total = |path: &str| server.get_json(path)["flamebearer"]["numTicks"].clone();
        assert_eq!(total(&format!("/api/v1/profile?app=shop&span_id={id}")), 50, "{id}");
        assert_eq!(total(&format!("/api/v1/query?query=shop.cpu%7Bspan_id=%22{id}%22%7D")), 50, "{id}");
        assert_eq!(server.get_json(&format!("/api/v1/profiles?span_id={id}"))["total"], 1, "{id}");
    }
    let found = |from: &str, until: &str| {
        let path = format!("/api/v1/query?query=shop.cpu&from={from}&until={until}");
        server.get_json(&path)["exactness"]["samples"] == 2
    };
    // The clock of a place that is an hour ahead.
    let ahead = |second: u64| {
        let text = hotspan_server::time_as_text((second as i64 + 3600) * 1_000_000_000);
        text.replace('Z', "+01:00")
    };
    assert!(found(&ahead(now), &ahead(now + 60)) && !found(&ahead(now - 120), &ahead(now - 60)));
}

/// Scenario: questions with a mistake: functions that there are none of, misspelt parameters, ids that are empty or none,
/// times that are none or the wrong way round; and ids in labels, in Datadog's decimal spelling too.
/// Guarantee: 400 with what is wrong instead of an answer about something else; the ids find their span.
#[test]
fn mistakes_are_told() {
    let (_store, server) = Server::fresh();
    let now = now_nanos() / 1_000_000_000 - 60;
    ingest_stacks(&server, "shop.cpu{span_id=00000000000004d2}", now, "main;hot 50");
    ingest_stacks(&server, "shop.cpu", now, "main;elsewhere 1000");
    for (path, named) in [
        ("/api/v1/query?query=rate(shop.cpu)", "'('"),
        ("/api/v1/query?query=topk(2,shop.cpu", "topk(10, query)"),
        ("/api/v1/query?query=topk(2,shop.cpu)%20by%20(x)", "')'"),
        ("/api/v1/query?query=", "empty"),
        ("/api/v1/query?query=shop.cpu&form=now-1h", "\\\"form\\\" is not known; there are query, from"),
        ("/api/v1/query?query=shop.cpu%7Bspan_id=%22%22%7D", "span_id"),
        ("/api/v1/query?query=shop.cpu%7Blocal_root_span_id=%224d2%22%7D", "local_root_span_id"),
        ("/api/v1/query?query=shop.cpu&from=nan", "from"),
        ("/api/v1/profile?ap=shop", "\\\"ap\\\" is not known; there are app"),
        ("/api/v1/profile?app=shop&span_id=", "span_id"),
        ("/api/v1/profile?app=shop&labels=%7Bspan_id=x%7D", "span_id"),
        ("/api/v1/profiles?span_id=", "span_id is empty"),
        ("/api/v1/profiles?span_id=4d2&strat_time=now-1h", "strat_time"),
        ("/api/v1/profiles?span_id=4d2&start_time=now&end_time=now-1h", "start_time"),
        ("/api/v1/diff?baseline=shop&comparison=shop&form=now-1h", "\\\"form\\\""),
        ("/pyroscope/render?query=sum(shop.cpu)", "'('"),
    ] {
        let answer = server.get(path).unwrap();
        assert!(answer.status == 400 && answer.text().contains(named), "{path}: {} {}", answer.status, answer.text());
    }
    for selector in ["span_id=%224d2%22", "dd.span_id=%221234%22", "%22span%20id%22=%221234%22"] {
        let total = |path: &str| server.get_json(path)["flamebearer"]["numTicks"].clone();
        assert_eq!(total(&format!("/api/v1/query?query=shop.cpu%7B{selector}%7D")), 50, "{selector}");
        assert_eq!(total(&format!("/api/v1/profile?app=shop&labels=%7B{selector}%7D")), 50, "{selector}");
    }
    let top = server.get_json("/api/v1/query?query=TOPK%20(1,%20shop.cpu)");
    assert_eq!(top["functions"][0]["name"], "elsewhere");
}

/// Scenario: suffixes under which `/ingest` takes stacks, one of them beyond Pyroscope's; stacks without a time; Java's allocations
/// and contention under their general names, and .NET's and Node.js'; a type that only one source declares, by what it counts and by
/// its profile; one that two declare, and a suffix that is no type.
/// Guarantee: what came in under a short name is found under it; what could be either is refused, and what is nothing is
/// told with what there is.
#[test]
fn short_names_of_types() {
    let (_store, server) = Server::fresh();
    let now = now_nanos() / 1_000_000_000 - 60;
    let suffixes =
        ["live", "exceptions", "lock_duration", "lock_count", "alloc_in_new_tlab_bytes", "goroutines", "off_cpu"];
    for (at, suffix) in suffixes.iter().enumerate() {
        ingest_stacks(&server, &format!("app.{suffix}"), now, &format!("main;work {}", at + 1));
    }
    for (kind, value) in [("wibble:wobble:count:x:count", 50), ("a:twice:count::", 60), ("b:twice:count::", 70)] {
        let path = format!("/api/v1/profiles?service=app&type={kind}&from={now}");
        let answer = server.post(&path, "text/plain", format!("main;own {value}\n").as_bytes()).unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    let undated = server.post("/ingest?name=undated.live&from=0&until=0", "text/plain", b"main;work 8\n").unwrap();
    assert_eq!(undated.status, 200, "{}", undated.text());
    for (service, kind, value) in [
        ("net", "lock:lock_count:count::", 4),
        ("net", "lock:lock_time:nanoseconds::", 80),
        ("node", "memory:space:bytes:space:bytes", 90),
    ] {
        let path = format!("/api/v1/profiles?service={service}&type={kind}&from={now}");
        assert_eq!(server.post(&path, "text/plain", format!("main;own {value}\n").as_bytes()).unwrap().status, 200);
    }
    let total = |path: &str| server.get_json(path)["flamebearer"]["numTicks"].clone();
    for (name, value) in
        [("net.lock", 80), ("net.lock_count", 4), ("node.inuse_space", 90), ("node.space", 90), ("undated.live", 8)]
    {
        assert_eq!(total(&format!("/api/v1/query?query={name}")), value, "{name}");
    }
    for (at, suffix) in suffixes.iter().enumerate() {
        assert_eq!(total(&format!("/api/v1/query?query=app.{suffix}")), at + 1, "{suffix}");
    }
    for (name, value) in [("alloc_space", 5), ("lock", 3), ("inuse_objects", 1), ("wobble", 50), ("wibble", 50)] {
        assert_eq!(total(&format!("/api/v1/query?query=app.{name}")), value, "{name}");
        assert_eq!(total(&format!("/pyroscope/render?query={name}%7Bservice_name=app%7D")), value, "{name}");
        assert_eq!(total(&format!("/api/v1/profile?app=app&type={name}")), value, "{name}");
    }
    let both = server.get("/api/v1/query?query=app.twice").unwrap();
    assert!(both.status == 400 && both.text().contains("a:twice:count:: or b:twice:count::"), "{}", both.text());
    assert_eq!(server.get("/api/v1/profile?app=app&type=nothing").unwrap().status, 400);
    let nothing = server.get("/api/v1/query?query=app.nothing&format=text").unwrap().text();
    assert!(nothing.contains("types that there are of app: ") && nothing.contains("memory:live:count"), "{nothing}");
}

/// Scenario: a function that has nearly all of the time, a little in each of 9,000 callers: no path of it is large.
/// Guarantee: it is the first name, as it is the first of `topk`; what was folded is at the end, and not marked as hot.
#[test]
fn the_hottest_function_of_a_wide_graph() {
    let (_store, server) = Server::fresh();
    let callers = (0..9000).map(|n| format!("main;caller{n};hot 10\n"));
    let stacks: String = callers.chain((0..9).map(|n| format!("main;big{n} 500\n"))).collect();
    ingest_stacks(&server, "wide.cpu", now_nanos() / 1_000_000_000 - 60, &stacks);
    let graph = server.get_json("/api/v1/query?query=wide.cpu&format=json");
    let names: Vec<&str> = graph["flamebearer"]["names"].as_array().unwrap().iter().flat_map(Value::as_str).collect();
    assert_eq!(names[0], "hot");
    assert!(names[1..10].iter().all(|name| name.starts_with("big")), "{:?}", &names[..10]);
    assert_eq!(names[names.len() - 2..], ["other", "total"]);
    assert!(graph["exactness"]["pruned_nodes"].as_u64().unwrap() > 9000, "{}", graph["exactness"]);
    assert_eq!(graph["flamebearer"]["levels"][0][3], names.len() - 1);
    let top = server.get_json("/api/v1/query?query=topk(1,wide.cpu)");
    assert_eq!((&top["functions"][0]["name"], &top["functions"][0]["self"]), (&json!("hot"), &json!(90_000)));
    let text = server.get("/api/v1/query?query=wide.cpu&format=text").unwrap().text();
    let other = text.lines().find(|line| line.ends_with("other")).unwrap();
    assert!(other.starts_with("  ") && text.contains("folded into \"other\""), "{text}");
}

/// Scenario: a function at the end of 18,000 call paths, none of them large, in the call graphs of all addresses.
/// Guarantee: they are one call graph, which has the function with all of its time and nothing folded; an asker who says how many
/// nodes there may be has as many functions.
#[test]
fn call_graphs_agree() {
    let (_store, server) = Server::fresh();
    let path = |n: u32| format!("main;k{};w{n};hot 2\nmain;k{};w{n} 3\n", n % 100, n % 100);
    let stacks: String = (0..18_000).map(path).collect();
    ingest_stacks(&server, "many.cpu", now_nanos() / 1_000_000_000 - 60, &stacks);
    let text = |address: &str| server.get(address).unwrap().text();
    let connect = |method: &str, nodes: u32| {
        let message = json!({
            "profileTypeID": CPU, "labelSelector": r#"{service_name="many"}"#, "format": 3, "maxNodes": nodes,
        });
        ask_json(&server, method, &always(message))["dot"].as_str().unwrap().to_owned()
    };
    let graph = text("/api/v1/profile?app=many&format=dot");
    assert!(graph.contains("hot\\n36.0 µs of 36.0 µs (40.00%)") && !graph.contains("other"), "{graph}");
    assert_eq!(text("/pyroscope/render?query=many.cpu&format=dot"), graph);
    assert_eq!(connect("SelectMergeStacktraces", 0), graph);
    let few = connect("SelectMergeStacktraces", 2);
    assert!(few.contains("18100 smaller functions not shown") && few.contains("hot\\n"), "{few}");
    assert_eq!(connect("SelectMergeSpanProfile", 2), few);
    assert_eq!(text("/pyroscope/render?query=many.cpu&format=dot&max-nodes=2"), few);
}
