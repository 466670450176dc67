//! `hotspan flame`, `top` and `diff` as a person uses them, against a real server.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::process::{Command, Output};

use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use serde_json::{Value, json};
use support::{Server, now_nanos, request, text_attribute, trace_request};

fn start() -> (tempfile::TempDir, Server) {
    let store = tempfile::tempdir().unwrap();
    let server = Server::start(store.path());
    server.wait_ready();
    (store, server)
}

fn hotspan(server: &Server, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hotspan"));
    command.args(arguments).args(["--server", &server.http]).output().unwrap()
}

fn printed(server: &Server, arguments: &[&str]) -> String {
    let output = hotspan(server, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Stacks of nanoseconds that took `seconds` to collect and ended a minute ago.
fn ingest(server: &Server, name: &str, seconds: u64, stacks: &str) {
    let until = now_nanos() / 1_000_000_000 - 60;
    let name = name.replace('{', "%7B").replace('}', "%7D");
    let path = format!("/ingest?name={name}&from={}&until={until}&sampleRate=1000000000", until - seconds);
    let answer = server.post(&path, "text/plain", stacks.as_bytes()).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());
}

/// Scenario: a service with one hot path, drawn in the terminal and written in every form.
/// Guarantee: heaviest first with bars, percentages and the hot path marked; each file holds the same sums.
#[test]
fn flame_in_every_form() {
    let (store, server) = start();
    ingest(
        &server,
        "order-service.cpu{region=eu}",
        10,
        "main;serve;parse 900000\nmain;serve;write 80000\nmain;idle 20000",
    );
    let text = printed(&server, &["flame", r#"order-service.cpu{region="eu"}"#, "--last", "1h"]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "total 1.00 ms");
    assert!(lines[1].starts_with("> 100.00%") && lines[1].ends_with(" main") && lines[1].contains('█'), "{text}");
    assert!(lines[3].starts_with("*  90.00%") && lines[3].trim_end().ends_with("parse"), "{text}");
    assert!(!text.contains('\u{1b}'), "a pipe gets no colours");
    // All are dated by the start of their profile: one window of the hour.
    assert_eq!(lines.last(), Some(&"  3 samples, in 0.4% of the time asked about"), "{text}");
    assert_eq!(printed(&server, &["flame", "order-service", "--min-percent", "50"]).lines().count(), 6);

    let file = |name: &str| store.path().join(name).to_str().unwrap().to_owned();
    for (name, mark) in [
        ("flame.svg", "<svg"),
        ("flame.html", "<!doctype html>"),
        ("flame.collapsed", "main;serve;parse 900000"),
        ("flame.speedscope.json", "speedscope"),
        ("flame.json", "\"numTicks\":1000000"),
        ("flame.dot", "digraph"),
    ] {
        assert_eq!(printed(&server, &["flame", "order-service.cpu", "-o", &file(name)]), "");
        let content = std::fs::read_to_string(file(name)).unwrap();
        assert!(content.contains(mark) && content.contains("parse"), "{name}: {content}");
    }
    printed(&server, &["flame", "order-service.cpu", "--format", "pprof", "-o", &file("flame.out")]);
    printed(&server, &["push", &file("flame.out"), "--service", "again"]);
    let again = printed(&server, &["top", "again.cpu", "-n", "2", "--last", "2h"]);
    assert!(again.contains(" 90.00%") && again.contains("parse") && again.contains("… 3 more functions"), "{again}");
    let top: Value = serde_json::from_str(&printed(&server, &["top", "order-service", "--json"])).unwrap();
    assert_eq!((&top["functions"][0]["name"], &top["functions"][0]["self"]), (&json!("parse"), &json!(900_000)));

    let wrong = hotspan(&server, &["flame", "order-service.cpu{region="]);
    assert!(!wrong.status.success() && String::from_utf8_lossy(&wrong.stderr).contains("character"), "{wrong:?}");
}

/// Scenario: a page saved by the command line, for whoever asks and for a tenant.
/// Guarantee: each of its links leads to the server, and to the same answer in the form that it names; a page for a tenant, whom
/// a browser can't name, has no links.
#[test]
fn links_of_saved_pages_work() {
    let (store, server) = start();
    ingest(&server, "order-service.cpu{region=eu}", 10, "main;parse 900000");
    let file = store.path().join("saved.html");
    let save = |more: &[&str]| {
        let query = r#"order-service.cpu{region="eu"}"#;
        printed(&server, &[&["flame", query, "--last", "1h", "-o", file.to_str().unwrap()], more].concat());
        std::fs::read_to_string(&file).unwrap()
    };
    let page = save(&[]);
    let links: Vec<String> =
        page.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap().replace("&amp;", "&")).collect();
    assert_eq!(links.len(), 6, "{page}");
    let base = format!("http://{}", server.http);
    for link in links {
        let path = link.strip_prefix(&base).unwrap_or_else(|| panic!("{link} is not of {base}"));
        let answer = server.get(path).unwrap();
        assert!(answer.status == 200 && !answer.body.is_empty(), "{link}: {}", answer.text());
        if path.ends_with("format=collapsed") {
            assert_eq!(answer.text().trim(), "main;parse 900000");
        }
    }
    let page = save(&["--tenant", "anonymous"]);
    assert!(page.contains("<svg") && !page.contains("href="), "{page}");
}

/// What a command says that has nothing to print.
fn complaint(server: &Server, arguments: &[&str]) -> String {
    let output = hotspan(server, arguments);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{arguments:?}: {output:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// Scenario: questions that no sample answers: a service that nobody knows, and samples that are older than the time asked for;
/// in every form, into files, and as a table.
/// Guarantee: the command fails, writes nothing, and says what there is instead or when; asked as it says, there is an answer.
#[test]
fn nothing_to_draw_is_an_error() {
    let (store, server) = start();
    ingest(&server, "order-service.cpu", 10, "main;serve 900000");
    let until = now_nanos() / 1_000_000_000 - 3 * 3600;
    let old = format!("/ingest?name=pushed.cpu&from={}&until={until}&sampleRate=1000000000", until - 10);
    assert_eq!(server.post(&old, "text/plain", b"main;work 900000").unwrap().status, 200);

    let nobody = complaint(&server, &["flame", "nobody.cpu"]);
    assert!(nobody.starts_with("hotspan: no samples") && nobody.contains("order-service"), "{nobody}");
    for name in ["flame.svg", "flame.pb.gz", "flame.html", "flame.json", "flame.collapsed", "flame.speedscope.json"] {
        let file = store.path().join(name);
        let told = complaint(&server, &["flame", "pushed.cpu", "-o", file.to_str().unwrap()]);
        assert!(told.contains("there are some ") && !told.contains("types that there are"), "{told}");
        assert!(!file.exists(), "{name}");
    }
    complaint(&server, &["top", "pushed.cpu", "--json"]);
    let told = complaint(&server, &["top", "pushed.cpu"]);
    let from = told.split("--from ").nth(1).unwrap().trim();
    assert!(printed(&server, &["top", "pushed.cpu", "--from", from]).contains("work"), "{told}");
}

/// Scenario: functions with long names, asked for with the width of a terminal and without one.
/// Guarantee: no line is wider than the terminal; what goes elsewhere is whole.
#[test]
fn answers_fit_the_screen() {
    let (_store, server) = start();
    let name = "shop::checkout::".repeat(12);
    ingest(&server, "order-service.cpu{v=1}", 10, &format!("main;{name} 900000"));
    ingest(&server, "order-service.cpu{v=2}", 10, &format!("main;{name} 300000"));
    let diff = "baseline=order-service.cpu%7Bv=1%7D&comparison=order-service.cpu%7Bv=2%7D";
    for path in [
        "/api/v1/query?query=order-service.cpu&format=text".to_owned(),
        "/api/v1/query?query=topk(5,order-service.cpu)&format=text".to_owned(),
        format!("/api/v1/diff?{diff}&format=text"),
    ] {
        assert!(server.get(&path).unwrap().text().contains(&name), "{path}");
        let narrow = server.get(&format!("{path}&width=80")).unwrap().text();
        assert!(narrow.contains('…') && narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
    }
}

/// Scenario: a wrong flag while a variable names the server. Guarantee: the usage line names no flag that is not needed.
#[test]
fn usage_names_what_is_needed() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hotspan"));
    let wrong = command.args(["flame", "shop.cpu", "--bogus"]).env("HOTSPAN_SERVER", "http://127.0.0.1:1").output();
    let told = String::from_utf8(wrong.unwrap().stderr).unwrap();
    assert!(told.contains("Usage: hotspan flame") && !told.contains("--server"), "{told}");
}

/// Scenario: two commits of a service, the second measured three times as long, with spans for their requests.
/// Guarantee: per second and per request the steady function does not change, the grown one does by the right
/// amount, new and vanished ones are marked; table, picture and JSON agree.
#[test]
fn differences_are_normalised() {
    let (store, server) = start();
    ingest(&server, "my-service{commit=abc123}", 10, "main;steady 1000000\nmain;grows 500000\nmain;old 30000");
    ingest(&server, "my-service{commit=def456}", 30, "main;steady 3000000\nmain;grows 6000000\nmain;young 90000");
    let now = now_nanos() - 120_000_000_000;
    let spans = |commit: &str, count: u8, seed: u8| {
        let span = |index: u8| Span {
            trace_id: vec![seed; 16],
            span_id: vec![seed, 0, 0, 0, 0, 0, 0, index + 1],
            name: "GET /".to_owned(),
            kind: 2,
            start_time_unix_nano: now,
            end_time_unix_nano: now + 1_000_000,
            attributes: vec![text_attribute("commit", commit)],
            ..Span::default()
        };
        let body = trace_request("my-service", (0..count).map(span).collect()).encode_to_vec();
        let headers = [("content-type", "application/x-protobuf")];
        assert_eq!(request(&server.http, "POST", "/v1/traces", &headers, &body).unwrap().status, 200);
    };
    spans("abc123", 5, 1);
    spans("def456", 15, 2);
    let sides = ["diff", "--baseline", "my-service{commit=abc123}", "--comparison", "my-service{commit=def456}"];
    let with = |more: &[&str]| printed(&server, &[&sides[..], &["--time-range", "1h"], more].concat());
    let text = with(&[]);
    let row = |name: &str| text.lines().find(|line| line.ends_with(&format!(" {name}"))).unwrap_or("").to_owned();
    assert!(text.contains("in 10.0 s of profiles") && text.contains("in 30.0 s of profiles"), "{text}");
    assert!(
        text.contains("per second  153.00 µs -> 303.00 µs (+98.0%)") || text.contains("153 µs -> 303 µs (+98.0%)"),
        "{text}"
    );
    assert!(row("grows").contains("+300.0%") && row("young").contains("new") && row("old").contains("gone"), "{text}");
    assert_eq!(row("steady"), "", "what did not change is not listed: {text}");
    let first = text.lines().position(|line| line.contains("function")).unwrap() + 1;
    assert!(text.lines().nth(first).unwrap().ends_with("grows"), "{text}");

    let answer: Value = serde_json::from_str(&with(&["--format", "json", "--per", "request"])).unwrap();
    assert_eq!((&answer["baseline"]["requests"], &answer["comparison"]["requests"]), (&json!(5.0), &json!(15.0)));
    let grows = answer["functions"].as_array().unwrap().iter().find(|row| row["name"] == "grows").unwrap().clone();
    assert_eq!(grows["self"], json!({"before": 100_000.0, "after": 400_000.0, "change": 300_000.0, "relative": 3.0}));
    let presence = |name: &str| {
        let rows = answer["functions"].as_array().unwrap();
        rows.iter().find(|row| row["name"] == name).unwrap()["presence"].clone()
    };
    assert_eq!(
        (presence("young"), presence("old"), presence("steady")),
        (json!("new"), json!("vanished"), json!("both"))
    );
    // Both as of the 15 requests of the comparison.
    assert_eq!((&answer["leftTicks"], &answer["rightTicks"]), (&json!(4_590_000), &json!(9_090_000)));
    let raw: Value = serde_json::from_str(&with(&["--format", "json", "--per", "none"])).unwrap();
    assert_eq!((&raw["leftTicks"], &raw["rightTicks"]), (&json!(1_530_000), &json!(9_090_000)));

    let picture = |layout: &str| {
        let path = store.path().join(format!("{layout}.svg"));
        with(&["-o", path.to_str().unwrap(), "--layout", layout]);
        std::fs::read_to_string(path).unwrap()
    };
    let (both, left, right) = (picture("both"), picture("baseline"), picture("comparison"));
    assert!(both.contains("\nnew</title>") && both.contains("\nvanished</title>"));
    assert!(left.contains("\nvanished</title>") && !left.contains("\nnew</title>"));
    assert!(right.contains("\nnew</title>") && !right.contains("\nvanished</title>"));

    let mixed = hotspan(&server, &["diff", "--baseline", "my-service.cpu", "--comparison", "my-service.wall"]);
    assert!(String::from_utf8_lossy(&mixed.stderr).contains("different profile types"), "{mixed:?}");
    let no_spans =
        ["diff", "--baseline", "my-service{commit=abc123}", "--comparison", "my-service", "--per", "request"];
    ingest(&server, "other", 10, "main 5");
    let no_spans = hotspan(&server, &[&no_spans[..4], &["other", "--per", "request"]].concat());
    assert!(String::from_utf8_lossy(&no_spans.stderr).contains("comparison: there are no spans"), "{no_spans:?}");
}

/// Scenario: a graph of more call paths than are shown, written as files for other tools, drawn, and asked for with more or
/// fewer nodes than there may be.
/// Guarantee: files have every path; pictures and text say how many they fold, and count functions over all paths; one
/// rule for the number of nodes, wherever it is given.
#[test]
fn files_are_whole_and_pictures_say_what_they_fold() {
    let (store, server) = start();
    let callers = (0..9000).map(|n| format!("main;caller{n};hot 10\n"));
    let stacks: String = callers.chain(["main;big 5000\n".to_owned()]).collect();
    ingest(&server, "wide.cpu", 10, &stacks);
    let written = |name: &str, more: &[&str]| {
        let file = store.path().join(name).to_str().unwrap().to_owned();
        printed(&server, &[&["flame", "wide.cpu", "-o", &file], more].concat());
        std::fs::read(file).unwrap()
    };
    let text = |name: &str, more: &[&str]| String::from_utf8(written(name, more)).unwrap();
    for more in [&[][..], &["--max-nodes", "10"]] {
        assert_eq!(text("wide.collapsed", more).lines().count(), 9001);
        let speedscope: Value = serde_json::from_str(&text("wide.speedscope.json", more)).unwrap();
        assert_eq!(speedscope["shared"]["frames"].as_array().unwrap().len(), 9003);
        std::fs::write(store.path().join("again.pb.gz"), written("wide.pb.gz", more)).unwrap();
    }
    printed(&server, &["push", store.path().join("again.pb.gz").to_str().unwrap(), "--service", "again"]);
    let again = server.get_json("/api/v1/query?query=topk(1,again.cpu)&from=now-2h");
    assert_eq!((&again["functions"][0]["name"], &again["functions"][0]["self"]), (&json!("hot"), &json!(90_000)));

    assert!(text("wide.svg", &[]).contains("small call paths folded into &quot;other&quot;"));
    let page = text("wide.html", &[]);
    let table = page.split("<table>").nth(1).unwrap();
    assert!(page.contains("small call paths folded into") && !table.contains("other"), "{table}");
    assert!(
        table.lines().nth(2).unwrap().contains("94.74%") && table.lines().nth(2).unwrap().contains("hot"),
        "{table}"
    );
    let dot = server.get("/api/v1/query?query=wide.cpu&format=dot").unwrap().text();
    assert!(dot.contains("8903 smaller functions not shown") && !dot.contains("other"), "{dot}");
    let few = printed(&server, &["flame", "wide.cpu", "--max-nodes", "2"]);
    assert!(few.contains("  … 18,000 small call paths are folded into \"other\""), "{few}");
    let diff = "/api/v1/diff?baseline=wide&comparison=again&per=none&from=now-2h";
    assert!(server.get(&format!("{diff}&format=svg")).unwrap().text().contains("small call paths folded into"));
    assert!(server.get_json(diff)["pruned_nodes"].as_u64().unwrap() > 9000);

    for path in ["/api/v1/profile?app=wide", "/api/v1/query?query=wide.cpu", "/pyroscope/render?query=wide.cpu", diff] {
        for nodes in ["2000000", "-1"] {
            let refused = server.get(&format!("{path}&max-nodes={nodes}")).unwrap();
            assert!(refused.status == 400 && refused.text().contains("max_nodes is "), "{path}: {}", refused.text());
        }
    }
    let body = json!({ "query": "{ } | flame(cpu)", "max_nodes": 2_000_000 }).to_string();
    assert_eq!(server.post("/api/v1/cohort", "application/json", body.as_bytes()).unwrap().status, 400);
    let default = server.get_json("/api/v1/profile?app=wide&max_nodes=0");
    assert_eq!(default["exactness"]["pruned_nodes"], 18_002 - 8_192);
}

/// Scenario: comparisons of which one side, or both, have no samples, as table, picture and JSON.
/// Guarantee: an exit code that tells, the side and what there is instead; not a table in which everything is gone.
#[test]
fn empty_sides_are_told() {
    let (store, server) = start();
    ingest(&server, "my-service.cpu{v=1}", 10, "main;work 1000000");
    let picture = store.path().join("empty.svg");
    let json = store.path().join("empty.json");
    let forms: [&[&str]; 4] =
        [&[], &["-o", picture.to_str().unwrap()], &["--format", "json"], &["-o", json.to_str().unwrap()]];
    for (baseline, comparison, side) in [
        ("my-service{v=1}", "my-service{v=nope}", "comparison"),
        ("my-service{v=nope}", "my-service{v=1}", "baseline"),
        ("nobody", "nobody", "baseline"),
    ] {
        for form in forms {
            let output =
                hotspan(&server, &[&["diff", "--baseline", baseline, "--comparison", comparison], form].concat());
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{said}");
            assert!(said.contains(&format!("{side}: no samples")), "{form:?}: {said}");
            let instead = match baseline {
                "nobody" => "services that have some: my-service",
                _ => "values of v that there are: 1",
            };
            assert!(said.contains(instead), "{form:?}: {said}");
        }
    }
    assert!(!picture.exists() && !json.exists());
}

/// Scenario: `flamegraph` asked for by a browser, by a script that wants JSON, by curl, and with weights.
/// Guarantee: a page that needs nothing else, flamebearer JSON, and text with marks; weights and case are understood.
#[test]
fn flamegraph_suits_the_asker() {
    let (_store, server) = start();
    ingest(&server, "shop.cpu", 10, "main;hot 90\nmain;cold 10");
    let get = |accept: &str| {
        let path = "/api/v1/profile?app=shop&format=flamegraph&from=now-1h";
        let answer = request(&server.http, "GET", path, &[("accept", accept)], &[]).unwrap();
        assert_eq!(answer.status, 200);
        let content_type = answer.headers.to_ascii_lowercase();
        (content_type, answer.text())
    };
    let (kind, page) = get("text/html,application/xhtml+xml,*/*;q=0.8");
    assert!(kind.contains("content-type: text/html") && page.contains("<svg") && page.contains("2 samples"), "{page}");
    assert!(page.contains("?app=shop&amp;from=now-1h&amp;format=pprof"), "{page}");
    assert!(!page.contains("src=") && !page.contains("<link"), "nothing is loaded");
    let (kind, json) = get("application/json");
    assert!(kind.contains("content-type: application/json"));
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap()["flamebearer"]["numTicks"], 100);
    let (kind, text) = get("*/*");
    assert!(
        kind.contains("content-type: text/plain") && text.contains("*  90.00%") && text.contains("> 100.00%"),
        "{text}"
    );
    for (accept, form) in [
        ("APPLICATION/JSON", "application/json"),
        ("text/html;q=0,*/*", "text/plain"),
        ("application/json;q=0.5,text/html", "text/html"),
    ] {
        let (kind, _) = get(accept);
        assert!(kind.contains(&format!("content-type: {form}")), "{accept}: {kind}");
    }
}

/// Scenario: formats, layouts, counts and parameters that mean nothing, over HTTP and at a terminal.
/// Guarantee: each is refused, with what is allowed instead; nothing is written.
#[test]
fn what_means_nothing_is_refused() {
    let (store, server) = start();
    ingest(&server, "shop.cpu", 10, "main;hot 90\nmain;cold 10");
    let diff = "/api/v1/diff?baseline=shop&comparison=shop&per=none";
    let trace = "00000000000000000000000000000001";
    for (path, told) in [
        (
            "/api/v1/query?query=topk(3,shop.cpu)&format=csv".to_owned(),
            "\"csv\" is not known; use json or text for topk",
        ),
        ("/api/v1/query?query=topk(3,shop.cpu)&format=svg".to_owned(), "use json or text"),
        ("/api/v1/query?query=shop.cpu&format=bogus".to_owned(), "use json, packed, flamegraph"),
        ("/api/v1/query?query=shop.cpu&format=text&lines=0".to_owned(), "lines is 0; it may be 1 or more"),
        ("/api/v1/profile?app=shop&format=text&min_percent=101".to_owned(), "min_percent is 101; it may be 0 to 100"),
        ("/api/v1/profile?app=shop&min_percent=NaN".to_owned(), "it may be 0 to 100"),
        (format!("{diff}&layout=x"), "layout \"x\" is not known; use baseline, comparison or both"),
        (format!("{diff}&format=csv"), "use json, text or svg"),
        (format!("{diff}&format=text&limit=0"), "limit is 0; it may be 1 or more"),
        (format!("/api/v1/profiles?trace_id={trace}&limit=0"), "limit is 0; it may be 1 to 10000"),
        (format!("/api/v1/profiles?trace_id={trace}&limit=10001"), "limit is 10001; it may be 1 to 10000"),
        (format!("/api/v1/trace/{trace}/spans?limit=20001"), "it may be 0 to 20000"),
        (format!("/api/v1/trace/{trace}/spans?ofset=1"), "\"ofset\" is not known; there are offset, limit, max_depth"),
        (format!("/api/v1/trace/{trace}/profile-summary?scpoe=span"), "there are scope, links"),
        ("/api/v1/functions/spans?function=hot&limit=10001".to_owned(), "limit is 10001; it may be 0 to 10000"),
        ("/api/v1/functions/spans?function=hot&servcie=a".to_owned(), "\"servcie\" is not known"),
        ("/api/v1/endpoints?functions=101".to_owned(), "functions is 101; it may be 0 to 100"),
        ("/api/v1/endpoints?sevice=a".to_owned(), "\"sevice\" is not known"),
        ("/api/v1/services?form=now-1h".to_owned(), "\"form\" is not known"),
        ("/api/v1/service-graph?form=now-1h".to_owned(), "\"form\" is not known"),
        ("/api/v1/source?file=a.rs&lines=3".to_owned(), "\"lines\" is not known; there are file, line, context"),
    ] {
        let answer = server.get(&path).unwrap();
        let error: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        assert_eq!(answer.status, 400, "{path}: {}", answer.text());
        assert!(error["error"].as_str().unwrap().contains(told), "{path}: {error}");
    }
    for (path, format) in [("ledger", "csv"), ("traces", "text"), ("top", "csv")] {
        let body = json!({ "query": "{ }", "format": format }).to_string();
        let path = format!("/api/v1/cohort/{path}");
        let answer = server.post(&path, "application/json", body.as_bytes()).unwrap();
        assert!(answer.status == 400 && answer.text().contains("is not known; use json"), "{path}: {}", answer.text());
    }
    let file = store.path().join("x.weird");
    let weird = file.to_str().unwrap();
    let of = ["--baseline", "shop", "--comparison", "shop", "--per", "none", "-o", weird];
    for (arguments, told) in [
        (vec!["flame", "shop", "-o", weird], "its ending names no form; use .txt, .svg, .html, .pb.gz"),
        ([&["diff"][..], &of].concat(), "use .txt, .svg or .json, or say --format"),
        (vec!["top", "shop", "-n", "0"], "0 is not in 1.."),
        (
            vec!["flame", "shop", "--last", "today"],
            "'today' for '--last <LENGTH>': a length of time is written like 15m",
        ),
        (vec!["query", "{ } | flame(cpu)", "--last", "0h"], "a length of time is written like 15m"),
        (vec!["diff", "--baseline", "shop", "--comparison", "shop", "-n", "0"], "0 is not in 1.."),
    ] {
        let output = hotspan(&server, &arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && said.contains(told), "{arguments:?}: {said}");
        assert!(!file.exists(), "{arguments:?}");
    }
    assert_eq!(server.get_json(&format!("{diff}&limit=0"))["functions"], json!([]));
    printed(&server, &["flame", "shop", "--format", "collapsed", "-o", weird]);
    assert!(std::fs::read_to_string(&file).unwrap().contains("main;hot 90"));
}

/// Scenario: help of commands that take a time, and the same time in the words of other commands.
/// Guarantee: what examples use is in the list; each command understands the words of all.
#[test]
fn the_length_of_time_is_in_the_help() {
    let (_store, server) = start();
    let help = printed(&server, &["diff", "--help"]);
    assert!(help.contains("[alias: --time-range]"), "{help}");
    // Nobody remembers which command calls the end `--to` and which `--until`.
    ingest(&server, "shop.cpu", 10, "main;hot 90");
    for question in [&["flame", "shop.cpu"][..], &["query", "{ } | flame(cpu)"], &["spans-of", "hot"]] {
        for times in [&["--last", "1h", "--to", "now"][..], &["--from", "now-1h", "--until", "now"]] {
            printed(&server, &[question, times].concat());
        }
    }
}

/// Scenario: memory in use, looked at three times before a change and once after it, twice as much; and CPU time of both.
/// Guarantee: texts and JSON say how many profiles a sum is of, and texts what one has, but of CPU time nothing of the kind; a
/// comparison is by profile, so that the change is a doubling, unless it is asked for sums.
#[test]
fn sums_of_snapshots_are_told() {
    let (_store, server) = Server::fresh();
    let now = now_nanos() / 1_000_000_000;
    let push = |kind: &str, version: &str, ago: i64, stacks: &str| {
        let from = now as i64 - ago;
        let path =
            format!("/api/v1/profiles?service=shop&type={kind}&label=version%3D{version}&from={from}&until={from}");
        let answer = server.post(&path, "text/plain", stacks.as_bytes()).unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text());
    };
    for ago in [200, 180, 160] {
        push("inuse_space", "1", ago, "main;cache 1048576");
    }
    push("inuse_space", "2", 100, "main;cache 2097152");
    push("process_cpu:cpu:nanoseconds:cpu:nanoseconds", "1", 200, "main 7");
    push("process_cpu:cpu:nanoseconds:cpu:nanoseconds", "1", 180, "main 7");
    let text = |query: &str| server.get(&format!("/api/v1/query?query={query}&format=text")).unwrap().text();
    let (first, all) = ("shop.inuse_space{version=\"1\"}", "shop.inuse_space");
    for question in [first.to_owned(), format!("topk(3,{first})")] {
        let told = text(&question);
        assert!(told.contains("the sum of 3 profiles, 1.00 MiB each on average"), "{told}");
    }
    assert!(text(all).contains("the sum of 4 profiles, 1.25 MiB each"), "{}", text(all));
    assert!(!text("shop.cpu").contains("profiles"), "{}", text("shop.cpu"));
    for (kind, profiles) in [("inuse_space", Some(4)), ("cpu", None)] {
        let (profile, query) = (format!("profile?app=shop&type={kind}"), format!("query?query=shop.{kind}"));
        for address in [profile, query, format!("query?query=topk(3,shop.{kind})")] {
            let summed = server.get_json(&format!("/api/v1/{address}"))["exactness"]["snapshots_summed"].as_u64();
            assert_eq!(summed, profiles, "{address}");
        }
    }
    let diff = |more: &str| {
        let sides = format!("baseline={first}&comparison=shop.inuse_space{{version=\"2\"}}");
        let answer = server.get_json(&format!("/api/v1/diff?{sides}{more}"));
        let of = |side: &str| answer[side]["per_unit"].as_f64().unwrap() / 1048576.0;
        (answer["per"].as_str().unwrap().to_owned(), of("baseline"), of("comparison"))
    };
    assert_eq!(diff(""), ("profile".to_owned(), 1.0, 2.0));
    assert_eq!(diff("&per=none"), (String::new(), 3.0, 2.0));
    let sides = ["--baseline", first, "--comparison", "shop.inuse_space{version=\"2\"}"];
    let heading = printed(&server, &[&["diff"], &sides[..]].concat());
    assert!(heading.contains("in 3 profiles,") && heading.contains("in 1 profile,"), "{heading}");
}
