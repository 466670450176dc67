//! SQL by HTTP and by command, on a real server.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use serde_json::{Value, json};
use support::{Server, now_nanos, trace_request};

fn server_with_spans(store: &std::path::Path) -> Server {
    let server = Server::start(store);
    server.wait_ready();
    let now = now_nanos();
    for number in 1..=3u8 {
        let span = Span {
            trace_id: vec![7; 16],
            span_id: vec![number; 8],
            name: format!("operation-{number}"),
            start_time_unix_nano: now,
            end_time_unix_nano: now + 1000 * u64::from(number),
            ..Span::default()
        };
        let body = trace_request("shop", vec![span]).encode_to_vec();
        assert_eq!(server.post("/v1/traces", "application/x-protobuf", &body).unwrap().status, 200);
    }
    server
}

fn ask(server: &Server, body: &Value) -> (u16, String) {
    let answer = server.post("/api/v1/sql", "application/json", body.to_string().as_bytes()).unwrap();
    (answer.status, answer.text())
}

/// Scenario: good and bad statements over HTTP, in each format, and a look at what was asked.
/// Guarantee: rows as objects, CSV as text; errors are 400 with a message; every question is in the log.
#[test]
fn by_http() {
    let store = tempfile::tempdir().unwrap();
    let server = server_with_spans(store.path());
    let query = "SELECT name, duration FROM spans ORDER BY name";
    let (status, text) = ask(&server, &json!({ "query": query }));
    assert_eq!(status, 200, "{text}");
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(answer["columns"], json!([{"name": "name", "type": "Utf8"}, {"name": "duration", "type": "Int64"}]));
    assert_eq!(answer["rows"][2], json!({"name": "operation-3", "duration": 3000}));

    let (_, csv) = ask(&server, &json!({ "query": query, "format": "csv" }));
    assert_eq!(csv, "name,duration\noperation-1,1000\noperation-2,2000\noperation-3,3000\n");

    for (body, message) in [
        (json!({ "query": "SELECT nme FROM spans" }), "nme"),
        (json!({ "query": query, "format": "xml" }), "json, csv or arrow"),
        (json!({ "query": "DROP TABLE spans" }), "read-only"),
        (json!({ "query": "insert into spans values (1)" }), "SQL is read-only here: INSERT is not possible"),
        (json!({ "query": "EXPLAIN DELETE FROM spans" }), "read-only"),
        (json!({ "query": "SELECT min(attributes) FROM spans" }), "not implemented for type Map"),
        (json!({ "query": "SELECT 9223372036854775807 + 1" }), "9223372036854775807 + 1 does not fit into Int64"),
        (json!({ "query": "SELECT from_unixtime(9223372036854775807)" }), "a time beyond all dates"),
        (json!({ "query": "SELECT from_unixtime(9223372036854775807)", "format": "csv" }), "a time beyond all dates"),
        // In the second batch of rows.
        (json!({ "query": "SELECT 1000 / (value - 9000) FROM range(10000)", "format": "arrow" }), "Divide by zero"),
    ] {
        let (status, text) = ask(&server, &body);
        assert_eq!(status, 400, "{text}");
        assert!(text.contains(message), "{text}");
    }
    server.get("/api/search?q=%7B%20duration%20%3E%201ms%20%7D").unwrap();
    let asked = json!({ "query": "SELECT kind, query, status FROM hotspan.queries ORDER BY id" });
    let answer: Value = serde_json::from_str(&ask(&server, &asked).1).unwrap();
    let rows = answer["rows"].as_array().unwrap();
    assert!(rows.contains(&json!({"kind": "sql", "query": "DROP TABLE spans", "status": "failed"})), "{rows:?}");
    let search = json!({"kind": "/api/search", "query": "q={ duration > 1ms }", "status": "done"});
    assert!(rows.contains(&search), "{rows:?}");
}

/// Scenario: a form, as `curl -d` sends it: with and without a format, with a charset behind its type, and as large as JSON may not be.
/// Guarantee: it is answered as the same JSON is, with the same limits.
#[test]
fn by_form() {
    let store = tempfile::tempdir().unwrap();
    let server = server_with_spans(store.path());
    let form = "application/x-www-form-urlencoded";
    let ask_form = |content_type: &str, body: &str| {
        let answer = server.post("/api/v1/sql", content_type, body.as_bytes()).unwrap();
        (answer.status, answer.text())
    };
    let query = "SELECT count(*) AS n FROM spans WHERE name LIKE 'operation-%'";
    let escaped = "query=SELECT count(*) AS n FROM spans WHERE name LIKE 'operation-%25'";
    assert_eq!(ask_form(form, escaped), ask(&server, &json!({ "query": query })));
    let with_format = format!("{escaped}&format=csv");
    assert_eq!(ask_form(&format!("{form}; charset=UTF-8"), &with_format), (200, "n\n3\n".to_owned()));
    for bad in ["query=SELECT+nme+FROM+spans", "query=SELECT+1&format=xml"] {
        let (status, text) = ask_form(form, bad);
        assert_eq!(status, 400, "{text}");
    }
    let long = "x".repeat(3 << 20);
    let (by_form, by_json) = (ask_form(form, &format!("query={long}")), ask(&server, &json!({ "query": long })));
    assert_eq!(by_form.0, by_json.0, "{} {}", by_form.1, by_json.1);
    assert!(by_form.0 >= 400);
}

/// Scenario: a division by zero after some hundred thousand rows, as CSV, Arrow and JSON, over HTTP and by command.
/// Guarantee: CSV says why in its last line, CSV and Arrow are cut so that no reader takes them for whole, JSON is whole and says
/// why; the command fails with the reason.
#[test]
fn an_answer_that_fails_says_why() {
    let (_store, server) = Server::fresh();
    let query = "SELECT 1000 / (value - 200000) AS x FROM range(400000)";
    let raw = |format: &str| {
        let body = json!({ "query": query, "format": format }).to_string();
        let mut client = TcpStream::connect(server.address("http")).unwrap();
        let head = format!(
            "POST /api/v1/sql HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        client.write_all(format!("{head}{body}").as_bytes()).unwrap();
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).unwrap();
        answer
    };
    let ends_as_it_should = |answer: &[u8]| answer.ends_with(b"\r\n0\r\n\r\n");
    let csv = raw("csv");
    let text = String::from_utf8_lossy(&csv);
    assert!(text.starts_with("HTTP/1.1 200") && text.contains("\n0\n"), "{}", &text[..200]);
    assert!(text.contains("\n# error: Divide by zero error\n"), "{}", &text[text.len() - 200..]);
    assert!(!ends_as_it_should(&csv));
    let arrow = raw("arrow");
    assert!(arrow.len() > 10_000 && !ends_as_it_should(&arrow));
    let (status, text) = ask(&server, &json!({ "query": query }));
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((status, &answer["error"]), (200, &json!("Divide by zero error")));
    assert!(answer["row_count"].as_u64().unwrap() > 0);
    for format in ["csv", "json", "table"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hotspan"));
        let run = command.args(["sql", query, "--format", format, "--server", &server.http]).output().unwrap();
        let said = String::from_utf8_lossy(&run.stderr);
        assert!(!run.status.success() && said.contains("Divide by zero"), "{format}: {said}");
    }
}

/// Scenario: bodies that are no question: no JSON, a wrong key, a form without a query, another content type.
/// Guarantee: each error is JSON and names what is wrong.
#[test]
fn wrong_bodies_are_named() {
    let (_store, server) = Server::fresh();
    for (content_type, body, status, names) in [
        ("application/json", "{\"query\":", 400, "EOF"),
        ("application/json", "{\"qury\":\"SELECT 1\"}", 422, "qury"),
        ("application/x-www-form-urlencoded", "SELECT 1", 422, "query=STATEMENT"),
        ("application/x-www-form-urlencoded", "query=SELECT+1&fromat=csv", 422, "fromat"),
        ("text/plain", "SELECT 1", 415, "application/json or application/x-www-form-urlencoded"),
    ] {
        let answer = server.post("/api/v1/sql", content_type, body.as_bytes()).unwrap();
        let text = answer.text();
        assert_eq!(answer.status, status, "{text}");
        let error: Value = serde_json::from_str(&text).unwrap();
        assert!(error["error"].as_str().unwrap().contains(names), "{text}");
    }
}

/// Scenario: the same rows as an Arrow stream. Guarantee: any Arrow reader finds them.
#[test]
fn as_arrow() {
    let store = tempfile::tempdir().unwrap();
    let server = server_with_spans(store.path());
    let body = json!({ "query": "SELECT name, duration FROM spans ORDER BY name", "format": "arrow" }).to_string();
    let answer = server.post("/api/v1/sql", "application/json", body.as_bytes()).unwrap();
    assert_eq!(answer.status, 200);
    let reader = arrow::ipc::reader::StreamReader::try_new(answer.body.as_slice(), None).unwrap();
    let batches: Vec<_> = reader.map(Result::unwrap).collect();
    assert_eq!(batches.iter().map(|batch| batch.num_rows()).sum::<usize>(), 3);
    assert_eq!(batches[0].schema().field(1).name(), "duration");
}

/// Scenario: somebody asks for what would take hours, and goes away.
/// Guarantee: the question is given up, as the log of questions says.
#[test]
fn a_client_that_goes_away_ends_its_question() {
    let store = tempfile::tempdir().unwrap();
    let server = server_with_spans(store.path());
    let tables: Vec<String> = (0..30).map(|number| format!("spans s{number}")).collect();
    let body = json!({ "query": format!("SELECT count(*) FROM {}", tables.join(", ")) }).to_string();
    let mut client = TcpStream::connect(server.address("http")).unwrap();
    let length = body.len();
    let head = format!(
        "POST /api/v1/sql HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    );
    client.write_all(format!("{head}{body}").as_bytes()).unwrap();
    let wait_for = |status: &str| {
        let log =
            json!({ "query": "SELECT status FROM hotspan.queries WHERE query LIKE '%spans s29%' AND kind = 'sql'" });
        for _ in 0..300 {
            let answer: Value = serde_json::from_str(&ask(&server, &log).1).unwrap();
            if answer["rows"].as_array().unwrap().iter().any(|row| row["status"] == status) {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("the question was never {status}");
    };
    wait_for("running");
    drop(client);
    wait_for("cancelled");
}

/// Scenario: the command asks a server, once well and once badly.
/// Guarantee: a table on the terminal, and a single text as it is; a wrong statement ends the command with the server's message.
#[test]
fn by_command() {
    let store = tempfile::tempdir().unwrap();
    let server = server_with_spans(store.path());
    let run = |statement: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hotspan"));
        command.args(["sql", statement, "--server", &server.http]).output().unwrap()
    };
    let good = run("SELECT service, count(*) AS spans FROM spans GROUP BY service");
    assert_eq!(String::from_utf8_lossy(&good.stdout), "service  spans\nshop         3\n(1 row)\n");
    let stacks = run("SELECT 'main;a 1' || chr(10) || 'main;b 2' AS stacks");
    assert_eq!(String::from_utf8_lossy(&stacks.stdout), "main;a 1\nmain;b 2\n");
    let bad = run("SELECT nothing FROM spans");
    assert!(!bad.status.success());
    assert!(String::from_utf8_lossy(&bad.stderr).contains("nothing"), "{}", String::from_utf8_lossy(&bad.stderr));
}
