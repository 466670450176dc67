//! `hotspan push` as a person uses it: files of real profilers in, flame graphs out.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../../hotspan-formats/examples/large_recording/mod.rs"]
mod large_recording;
mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use large_recording::{inflated_chunk, moved_by};
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use serde_json::Value;
use support::Server;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../hotspan-formats/tests/fixtures").join(name)
}

fn push(server: &Server, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hotspan"));
    command.arg("push").args(arguments).args(["--server", &server.http]);
    command.stdin(Stdio::null()).output().unwrap()
}

fn stored(server: &Server, arguments: &[&str]) -> String {
    let output = push(server, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The flame graph of everything that a query finds, whenever it was.
fn flame(server: &Server, query: &str) -> Value {
    let query = query.replace('{', "%7B").replace('}', "%7D").replace('"', "%22");
    server.get_json(&format!("/api/v1/query?query={query}&from=1&until=2100-01-01T00:00:00Z"))["flamebearer"].clone()
}

fn has_name(graph: &Value, name: &str) -> bool {
    graph["names"].as_array().unwrap().iter().any(|other| other.as_str().unwrap().contains(name))
}

/// Scenario: a file of every format, pushed by its path alone. Guarantee: its format is told from its bytes, the
/// function that burned is in the flame graph of its type, under the service and label that were said. Values of a type that was said are
/// in its unit, and counted samples where a rate was said.
#[test]
fn every_format() {
    let (store, server) = Server::configured("");
    let files = [
        ("go-cpu.pb.gz", "cpu", "main.spin"),
        ("go-heap.pb.gz", "inuse_space", "main."),
        ("go-goroutine.pb.gz", "goroutine", "main."),
        ("async-cpu-alloc-lock.jfr", "cpu", "Burn.burn"),
        ("async-cpu-alloc-lock.jfr", "lock", "Burn.contend"),
        ("async-wall.jfr", "wall", "Burn.burnHot"),
        ("jdk.jfr.gz", "cpu", "Burn.burn"),
        ("node.cpuprofile", "cpu", "burn"),
        ("node.heapprofile", "inuse_space", "allocateKept"),
        ("async-itimer.collapsed", "cpu", "Burn.burnHot"),
        ("py-spy.collapsed", "cpu", "burn"),
        ("py-spy.speedscope.json", "cpu", "burn"),
        ("perf-script.txt", "cpu", "main.spin"),
    ];
    for (name, kind, function) in files {
        let path = fixture(name);
        let service = name.replace('.', "-");
        let mut arguments = vec![path.to_str().unwrap(), "--service", &service, "--label", "team=shop"];
        if name.ends_with(".collapsed") {
            arguments.extend(["--sample-rate", "100"]);
        }
        let said = stored(&server, &arguments);
        assert!(said.contains(" stored") && !said.contains(" 0 samples"), "{said}");
        let graph = flame(&server, &format!("{service}.{kind}{{team=\"shop\"}}"));
        assert!(has_name(&graph, function), "{name}: {graph}");
    }
    let plain = fixture("async-itimer.collapsed");
    let said = stored(&server, &[plain.to_str().unwrap(), "--service", "plain"]);
    assert!(said.ends_with("(process_cpu:samples)\n"), "a count without a rate is no time: {said}");
    assert!(has_name(&flame(&server, "plain.samples"), "Burn.burnHot"));
    stored(&server, &[plain.to_str().unwrap(), "--service", "plain", "--type", "wall"]);
    assert!(has_name(&flame(&server, "plain.wall"), "Burn.burnHot"));
    for (service, facts, total) in [
        ("plain-unit", &["--type", "cpu"] as &[&str], 5),
        ("plain-rate", &["--type", "cpu", "--sample-rate", "100"], 50_000_000),
        ("plain-five", &["--type", "process_cpu:cpu:nanoseconds:cpu:nanoseconds", "--sample-rate", "10"], 500_000_000),
        ("plain-bytes", &["--type", "alloc_space"], 5),
    ] {
        let file = store.path().join("counts.collapsed");
        std::fs::write(&file, "main;a 2\nmain;b 3\n").unwrap();
        stored(&server, &[&[file.to_str().unwrap(), "--service", service], facts].concat());
        let kind = if service == "plain-bytes" { "alloc_space" } else { "cpu" };
        assert_eq!(flame(&server, &format!("{service}.{kind}"))["numTicks"], total, "{facts:?}");
    }
    let path = fixture("async-itimer.otlp");
    stored(&server, &[path.to_str().unwrap(), "--service", "otlp"]);
    assert!(has_name(&flame(&server, "otlp.cpu"), "Burn.burnHot"));
    let again = stored(
        &server,
        &[fixture("go-cpu.pb.gz").to_str().unwrap(), "--service", "go-cpu-pb-gz", "--label", "team=shop"],
    );
    assert!(again.contains("had come before"), "{again}");
}

/// Scenario: a file with stacks deeper than the server keeps, and one without.
/// Guarantee: the first says how many frames were cut, the second says nothing of it.
#[test]
fn cut_stacks_are_told() {
    let (store, server) = Server::configured("limits.max_stack_depth = 2\n");
    let file = store.path().join("cpu.collapsed");
    for (stacks, said) in
        [("main;a;b;c;d 5\n", ", without 3 frames of stacks that are too deep ("), ("main;a 5\n", "stored (")]
    {
        std::fs::write(&file, stacks).unwrap();
        let line = stored(&server, &[file.to_str().unwrap(), "--service", "web"]);
        assert!(line.contains(said), "{line}");
    }
}

/// Scenario: the profile of one request, saved under its trace id, with the time it was taken at.
/// Guarantee: it is the flame graph of its span and of its trace, and it lies at that time.
#[test]
fn a_file_joins_its_span() {
    let (_store, server) = Server::configured("");
    let (trace, span) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00F067AA0BA902B7");
    let file = fixture("node.cpuprofile");
    let arguments = [
        file.to_str().unwrap(),
        "--service",
        "web",
        "--trace-id",
        trace,
        "--span-id",
        span,
        "--from",
        "2026-01-31T10:00:00Z",
        "--until",
        "2026-01-31T10:00:02Z",
    ];
    stored(&server, &arguments);
    assert!(has_name(&flame(&server, &format!("web.cpu{{span_id=\"{}\"}}", span.to_lowercase())), "burn"));
    assert!(has_name(&flame(&server, &format!("web.cpu{{trace_id=\"{trace}\"}}")), "burn"));
    let range = |from: &str, until: &str| {
        server.get_json(&format!("/api/v1/query?query=web.cpu&from={from}&until={until}"))["flamebearer"]["numTicks"]
            .clone()
    };
    assert_ne!(range("2026-01-31T09:59:59Z", "2026-01-31T10:10:00Z"), 0);
    assert_eq!(range("2026-01-31T10:10:00Z", "2026-01-31T10:20:00Z"), 0);
}

/// Scenario: a file that says no time, pushed with its end alone; one whose start is after its end; a form of two files of
/// which the second is broken.
/// Guarantee: the first lies where it ended; the second is refused; of the form nothing is stored, and the part is named.
#[test]
fn ends_and_parts() {
    let (store, server) = Server::configured("");
    let file = store.path().join("cpu.collapsed");
    std::fs::write(&file, "main;work 5\n").unwrap();
    let file = file.to_str().unwrap();
    stored(&server, &[file, "--service", "web", "--type", "cpu", "--until", "2026-01-31T10:00:00Z"]);
    let samples =
        |range: &str| server.get_json(&format!("/api/v1/query?query=web.cpu&{range}"))["exactness"]["samples"].clone();
    assert_eq!(samples("from=2026-01-31T09:59:00Z&until=2026-01-31T10:01:00Z"), 1);
    assert_eq!(samples("from=now-1h"), 0);
    let reversed = push(&server, &[file, "--service", "web", "--from", "now", "--until", "now-1h"]);
    let complaint = String::from_utf8(reversed.stderr).unwrap();
    assert!(!reversed.status.success() && complaint.contains("from must not be after until"), "{complaint}");

    let part = |name: &str, content: &str| {
        format!("--XX\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"x\"\r\n\r\n{content}\r\n")
    };
    let form = format!("{}{}--XX--\r\n", part("good", "main;work 5\n"), part("bad", "{\"cut"));
    let path = "/api/v1/profiles?service=form&type=cpu";
    let answer = server.post(path, "multipart/form-data; boundary=XX", form.as_bytes()).unwrap();
    assert!(answer.status == 400 && answer.text().contains("the part \\\"bad\\\" of the form: "), "{}", answer.text());
    assert_eq!(flame(&server, "form.cpu")["numTicks"], 0);
}

/// Scenario: files whose samples tell only how long after the start they were taken, pushed with nothing said, and with the time
/// when each recording ended or started.
/// Guarantee: all of a file is there at once and nothing of it lies ahead; it ends where it was said to end, or starts where it
/// was said to start.
#[test]
fn recordings_end_when_they_are_pushed() {
    let (_store, server) = Server::configured("");
    for (name, kind) in [("py-spy.speedscope.json", "cpu"), ("perf-script.txt", "cpu"), ("node.cpuprofile", "wall")] {
        let path = fixture(name);
        let service = name.replace('.', "-");
        let value = |service: &str, from: &str, until: &str| {
            let query = format!("/api/v1/query?query={service}.{kind}&from={from}&until={until}");
            server.get_json(&query)["flamebearer"]["numTicks"].as_i64().unwrap()
        };
        stored(&server, &[path.to_str().unwrap(), "--service", &service]);
        let now = support::now_nanos().to_string();
        let all = value(&service, "now-1h", "2100-01-01T00:00:00Z");
        assert_eq!(value(&service, "now-1h", &now), all, "{name}");
        // A moment passes between what is counted back from now here and there.
        for (flag, from, until) in [("--until", "now-2h", "now-1h"), ("--from", "now-3601s", "now-10m")] {
            let service = format!("{service}{flag}");
            stored(&server, &[path.to_str().unwrap(), "--service", &service, flag, "now-1h"]);
            assert_eq!(value(&service, from, until), all, "{name} {flag}");
        }
    }
}

/// Scenario: CPU time, and the sum of ever so many processes, exported from here as files and pushed again.
/// Guarantee: each stack has the value that it had, at once.
#[test]
fn exports_come_back() {
    let (store, server) = Server::configured("");
    let sum = store.path().join("sum.collapsed");
    std::fs::write(&sum, "main;a 6000000000000000\nmain;b 5\nmain 7\n").unwrap();
    stored(&server, &[sum.to_str().unwrap(), "--service", "sum", "--type", "cpu"]);
    stored(&server, &[fixture("go-cpu.pb.gz").to_str().unwrap(), "--service", "go"]);
    let export = |service: &str, file: &str| {
        let path = store.path().join(file);
        let mut command = Command::new(env!("CARGO_BIN_EXE_hotspan"));
        let query = format!("{service}.cpu");
        command.args([
            "flame",
            &query,
            "--from",
            "2020-01-01T00:00:00Z",
            "--until",
            "now",
            "-o",
            path.to_str().unwrap(),
        ]);
        let output = command.args(["--server", &server.http]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        path
    };
    let stacks = |service: &str, file: &str| {
        let text = std::fs::read_to_string(export(service, file)).unwrap();
        let mut stacks: Vec<String> = text.lines().map(str::to_owned).collect();
        stacks.sort();
        stacks
    };
    for service in ["sum", "go"] {
        let before = stacks(service, "before.collapsed");
        assert!(before.len() > 1, "{before:?}");
        for ending in ["collapsed", "speedscope.json"] {
            let file = export(service, &format!("{service}.{ending}"));
            let again = format!("{service}-{}", &ending[..5]);
            let mut arguments = vec![file.to_str().unwrap(), "--service", &again];
            if ending == "collapsed" {
                arguments.extend(["--type", "cpu"]);
            }
            stored(&server, &arguments);
            assert_eq!(stacks(&again, "after.collapsed"), before, "{again}");
        }
    }
}

/// Scenario: two stacks that together have more than fits into 64 bits; a difference of two profiles, a weight that is no value, and
/// bytes that are to be time.
/// Guarantee: the sum stays at the largest number there is, in every form; the others are refused, and say why.
#[test]
fn values_that_are_none() {
    let (store, server) = Server::configured("");
    let write = |name: &str, bytes: &[u8]| {
        let path = store.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let most = write("most.collapsed", b"main;a 9223372036854775807\nmain;b 9223372036854775807\n");
    stored(&server, &[&most, "--service", "most", "--type", "cpu"]);
    assert_eq!(flame(&server, "most.cpu")["numTicks"], i64::MAX);
    for format in ["text", "svg", "html", "pprof", "collapsed", "speedscope", "dot", "packed", "json"] {
        let answer = server.get(&format!("/api/v1/query?query=most.cpu&format={format}")).unwrap();
        assert_eq!(answer.status, 200, "{format}: {}", answer.text());
        assert!(!answer.text().contains("total -"), "{format}: {}", answer.text());
    }
    let bytes = push(&server, &[&most, "--service", "none", "--type", "alloc_space", "--sample-rate", "10"]);
    let complaint = String::from_utf8(bytes.stderr).unwrap();
    assert!(complaint.contains("sample_rate: it makes values time, which memory:alloc_space"), "{complaint}");
    let weight = write(
        "weight.speedscope.json",
        br#"{"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{"frames":[{"name":"a"}]},
        "profiles":[{"type":"sampled","name":"p","unit":"none","startValue":0,"endValue":1,"samples":[[0]],"weights":[1e30]}]}"#,
    );
    // Two sample types would be two values; this profile has one type, one sample and no stack.
    let mut difference = vec![0x0a, 4, 0x08, 1, 0x10, 2, 0x12, 11, 0x10];
    difference.extend([0xfc, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]);
    difference.extend(b"\x32\x00\x32\x03cpu\x32\x0bnanoseconds");
    let difference = write("difference.pb", &difference);
    for (file, reason) in [
        (&weight, "a weight of 0 or more that fits into 63 bits"),
        (&difference, "a difference of two profiles can't be stored, found -4"),
    ] {
        let refused = push(&server, &[file, "--service", "none"]);
        let complaint = String::from_utf8(refused.stderr).unwrap();
        assert!(!refused.status.success() && complaint.contains(reason), "{complaint}");
    }
}

/// Scenario: spans that name profiles in attributes, by the file they wrote, two of these with one name in different folders, and by
/// an id, beside one that names a file which never came; the files are pushed without any id of a span, one of them in a form.
/// Guarantee: each file is the flame graph of the span that names it, of its trace, and of no other.
#[test]
fn spans_name_their_profiles() {
    let (store, server) = Server::configured("");
    let (trace, start) = ([7; 16], support::now_nanos() - 60_000_000_000);
    let span = |id: u8, key: &str, value: &str| Span {
        trace_id: trace.to_vec(),
        span_id: vec![0, 0, 0, 0, 0, 0, 0, id],
        name: "GET /".to_owned(),
        start_time_unix_nano: start,
        end_time_unix_nano: start + 1_000_000,
        attributes: vec![support::text_attribute(key, value)],
        ..Span::default()
    };
    let path_in = |folder: &str| store.path().join(folder).join("cpu.collapsed").to_str().unwrap().to_owned();
    let spans = vec![
        span(1, "profile.file", "/var/profiles/node.cpuprofile"),
        span(2, "profile.id", "request 42"),
        span(3, "profile.file", "lost.jfr"),
        span(4, "profile.file", "of-a-form.collapsed"),
        span(5, "profile.file", &path_in("five")),
        span(6, "profile.file", &path_in("six")),
    ];
    let body = support::trace_request("web", spans).encode_to_vec();
    assert_eq!(server.post("/v1/traces", "application/x-protobuf", &body).unwrap().status, 200);
    stored(&server, &[fixture("node.cpuprofile").to_str().unwrap(), "--service", "web"]);
    stored(&server, &[fixture("async-itimer.jfr").to_str().unwrap(), "--service", "web", "--profile-id", "request 42"]);
    stored(&server, &[fixture("go-cpu.pb.gz").to_str().unwrap(), "--service", "web"]);
    let form = "--XX\r\nContent-Disposition: form-data; name=\"a\"; filename=\"of-a-form.collapsed\"\r\n\r\n\
                main;uploaded 5\r\n--XX--\r\n";
    let path = "/api/v1/profiles?service=web&type=cpu";
    assert_eq!(server.post(path, "multipart/form-data; boundary=XX", form.as_bytes()).unwrap().status, 200);
    for folder in ["five", "six"] {
        std::fs::create_dir(store.path().join(folder)).unwrap();
        std::fs::write(path_in(folder), format!("main;{folder} 5\n")).unwrap();
        stored(&server, &[&path_in(folder), "--service", "web", "--type", "cpu"]);
    }
    let of_span = |id: u8| flame(&server, &format!("web.cpu{{span_id=\"{id:016x}\"}}"));
    for (id, function) in [(4, "uploaded"), (5, "five"), (6, "six")] {
        assert!(has_name(&of_span(id), function) && of_span(id)["numTicks"] == 5, "{}", of_span(id));
    }
    assert!(has_name(&of_span(1), "burnHot") && !has_name(&of_span(1), "Burn.burnHot"), "{}", of_span(1));
    assert!(has_name(&of_span(2), "Burn.burnHot") && !has_name(&of_span(2), "main.spin"));
    assert_eq!(of_span(3)["numTicks"], 0);
    let whole = flame(&server, &format!("web.cpu{{trace_id=\"{}\"}}", "07".repeat(16)));
    let sum = [1, 2, 4, 5, 6].map(|id| of_span(id)["numTicks"].as_i64().unwrap()).iter().sum::<i64>();
    assert_eq!(whole["numTicks"].as_i64().unwrap(), sum);
    let samples = server.get_json("/api/v1/profiles?span_id=0000000000000001&limit=5");
    assert_eq!(samples["samples"][0]["span_id"], "0000000000000001");
    assert_eq!(samples["samples"][0]["trace_id"], "07".repeat(16));
}

/// Scenario: a span of another service names a file of the same name, another names a file that came long before it, one
/// names its file with a folder, and one has a number for an id. Two files come without a service.
/// Guarantee: names of files hold in their own service and at about their time, whole paths more than names, ids anywhere; a
/// file of nobody is of the service that names it, if it is the only one, and is found with that service's name.
#[test]
fn names_of_files_are_not_unique() {
    let (_store, server) = Server::configured("");
    let start = support::now_nanos() - 60_000_000_000;
    let number = |number: i64| KeyValue {
        key: "profile.id".to_owned(),
        value: Some(AnyValue { value: Some(any_value::Value::IntValue(number)) }),
        ..KeyValue::default()
    };
    let span = |id: u8, attribute: KeyValue| Span {
        trace_id: vec![id; 16],
        span_id: vec![0, 0, 0, 0, 0, 0, 0, id],
        name: "GET /".to_owned(),
        start_time_unix_nano: start,
        end_time_unix_nano: start + 1_000_000,
        attributes: vec![attribute],
        ..Span::default()
    };
    let file = |path: &str| support::text_attribute("profile.file", path);
    for (service, spans) in [
        (
            "shop",
            vec![
                span(1, file("run.txt")),
                span(4, file("old.txt")),
                span(5, number(42)),
                span(6, file("/tmp/alone.txt")),
            ],
        ),
        ("other", vec![span(2, file("run.txt"))]),
        ("paths", vec![span(3, file("/b/run.txt"))]),
    ] {
        let body = support::trace_request(service, spans).encode_to_vec();
        assert_eq!(server.post("/v1/traces", "application/x-protobuf", &body).unwrap().status, 200);
    }
    let upload = |query: &str, function: &str| {
        let path = format!("/api/v1/profiles?type=cpu&sample_rate=100&{query}");
        let answer = server.post(&path, "text/plain", format!("main;{function} 10\n").as_bytes()).unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text());
    };
    upload("service=shop&file=run.txt", "of_shop");
    upload("service=shop&file=old.txt&from=now-3d&until=now-3d", "of_old_days");
    upload("service=paths&file=%2Fa%2Frun.txt", "of_folder_a");
    upload("service=paths&file=%2Fb%2Frun.txt", "of_folder_b");
    upload("service=anything&profile_id=42", "of_id");
    // Nobody said whose these are: the first is named by three services, the second by one.
    upload("file=run.txt", "of_nobody");
    upload("file=alone.txt", "of_one");
    let of_trace = |id: u8| flame(&server, &format!("cpu{{trace_id=\"{}\"}}", format!("{id:02x}").repeat(16)));
    for (id, function) in [(1, "of_shop"), (3, "of_folder_b"), (5, "of_id"), (6, "of_one")] {
        let graph = of_trace(id);
        assert!(has_name(&graph, function) && graph["numTicks"] == 100_000_000, "{id}: {graph}");
    }
    for id in [2, 4] {
        assert_eq!(of_trace(id)["numTicks"], 0, "{id}");
    }
    // Whoever asks by the service of the span means the file as well, but nobody who asks by another one.
    upload("profile_id=43", "of_nobodys_id");
    let spans = vec![span(7, number(43))];
    let body = support::trace_request("shop", spans).encode_to_vec();
    assert_eq!(server.post("/v1/traces", "application/x-protobuf", &body).unwrap().status, 200);
    for (id, function) in [(6, "of_one"), (7, "of_nobodys_id")] {
        let of_span = |service: &str| flame(&server, &format!("{service}.cpu{{span_id=\"{id:016x}\"}}"));
        assert!(has_name(&of_span("shop"), function), "{id}: {}", of_span("shop"));
        assert_eq!(of_span("other")["numTicks"], 0, "{id}");
        assert_eq!(flame(&server, &format!("shop.alloc_space{{span_id=\"{id:016x}\"}}"))["numTicks"], 0, "{id}");
    }
}

/// Scenario: a file cut short, one of no format, one of a format that others read, one that is damaged and one that is not there,
/// beside a good one.
/// Guarantee: each is named with the byte, what was expected there and what it is, only the good one is stored, and the exit
/// code tells.
#[test]
fn broken_files_are_named_and_leave_nothing() {
    let (store, server) = Server::configured("");
    let cut = store.path().join("cut.jfr");
    std::fs::write(&cut, &std::fs::read(fixture("async-itimer.jfr")).unwrap()[..5000]).unwrap();
    let noise = store.path().join("noise.bin");
    std::fs::write(&noise, [0xff; 100]).unwrap();
    let stacks = store.path().join("cut.collapsed");
    std::fs::write(&stacks, "main;a 3\nmain;").unwrap();
    let good = fixture("go-cpu.pb.gz");
    let recording = store.path().join("perf.data");
    std::fs::write(&recording, b"PERFILE2\x68\0\0\0").unwrap();
    let damaged = store.path().join("damaged.gz");
    let mut bytes = gzip(&b"main;work 5\n".repeat(250));
    let checksum = bytes.len() - 8;
    bytes[checksum] ^= 1;
    std::fs::write(&damaged, bytes).unwrap();
    let [cut, noise, stacks, good, recording, damaged] =
        [&cut, &noise, &stacks, &good, &recording, &damaged].map(|path| path.to_str().unwrap());
    let files = [cut, noise, "not-there.jfr", good, stacks, recording, damaged];
    let output = push(&server, &[&files[..], &["--service", "mixed"]].concat());
    let complaints = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{complaints}");
    for part in [
        "cut.jfr: jfr: at byte 5000: expected a chunk of ",
        "noise.bin: profile: at byte 0: expected pprof, JFR, ",
        "perf.data: profile: at byte 0: expected pprof, JFR, ",
        "found a recording of perf; send what `perf script` prints of it",
        "damaged.gz: gzip: at byte 3000: expected intact compressed data (bytes are counted once decompressed), found ",
        "not-there.jfr: cannot be opened",
        "cut.collapsed: collapsed: at byte 14: expected a whole number at the end of the line",
        "6 of 7 files are not stored",
    ] {
        assert!(complaints.contains(part), "{complaints}");
    }
    assert!(String::from_utf8(output.stdout).unwrap().contains("go-cpu.pb.gz: 2 profiles with "));
    let graph = flame(&server, "mixed.cpu");
    assert!(has_name(&graph, "main.spin") && !has_name(&graph, "Burn"), "{graph}");

    let folder = push(&server, &[store.path().to_str().unwrap()]);
    assert!(String::from_utf8_lossy(&folder.stderr).contains(": is a directory; name the files in it"), "{folder:?}");
    let wrong_label = push(&server, &[files[3], "--label", "noequals"]);
    assert!(String::from_utf8_lossy(&wrong_label.stderr).contains("name=value"));
    let nobody = Command::new(env!("CARGO_BIN_EXE_hotspan"))
        .args(["push", files[3], "--server", "127.0.0.1:1"])
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&nobody.stderr).contains("hotspan serve"), "{nobody:?}");
}

/// Scenario: files of traces, as a collector writes them in protobuf and in JSON.
/// Guarantee: the answer says what they are and where they belong.
#[test]
fn traces_are_told_from_profiles() {
    let (store, server) = Server::configured("");
    let span = Span { trace_id: vec![1; 16], span_id: vec![2; 8], name: "GET /".to_owned(), ..Span::default() };
    let binary = store.path().join("traces.pb");
    std::fs::write(&binary, support::trace_request("shop", vec![span]).encode_to_vec()).unwrap();
    let text = store.path().join("traces.json");
    std::fs::write(&text, r#"{"resourceSpans":[{"resource":{},"scopeSpans":[]}]}"#).unwrap();
    for path in [binary, text] {
        let output = push(&server, &[path.to_str().unwrap()]);
        let complaint = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && complaint.contains("an OTLP file of traces"), "{path:?}: {complaint}");
        assert!(complaint.contains("/v1/traces"), "{path:?}: {complaint}");
    }
}

/// Scenario: a recording of many chunks that is far larger than a request may be, plain and gzipped, one with a chunk that is larger
/// than a request and than the room for requests, and one whose last chunk is broken.
/// Guarantee: all of the first is stored though memory stays bounded, and so is the second; of the broken one nothing is, though its
/// first chunks were right.
#[test]
fn long_recordings_pass_in_bounded_memory() {
    let (store, server) = Server::configured(
        "limits.max_bytes = \"1MiB\"\ningest.resident_bytes = \"4MiB\"\ningest.flush_interval = \"1ms\"\n\
         compaction.first_level_age = \"1h\"\ncompaction.first_level_bytes = \"1GiB\"\n",
    );
    const MANY: u64 = 240;
    let chunk = inflated_chunk(&std::fs::read(fixture("async-itimer.jfr")).unwrap(), 1 << 18);
    let recording = |count: u64| (0..count).flat_map(|at| moved_by(&chunk, at * 60)).collect::<Vec<u8>>();
    let push_bytes = |service: &str, bytes: &[u8]| {
        let path = store.path().join(format!("{service}.jfr"));
        std::fs::write(&path, bytes).unwrap();
        push(&server, &[path.to_str().unwrap(), "--service", service])
    };
    assert!(push_bytes("one", &recording(1)).status.success());
    let of_one = flame(&server, "one.cpu")["numTicks"].as_i64().unwrap();
    assert!(push_bytes("few", &recording(6)).status.success());
    let after_few = server.peak_memory();
    let many = push_bytes("many", &recording(MANY));
    assert!(many.status.success(), "{}", String::from_utf8_lossy(&many.stderr));
    let growth = server.peak_memory() - after_few;
    assert_eq!(flame(&server, "many.cpu")["numTicks"].as_i64().unwrap(), of_one * MANY as i64);
    assert!(growth < 30.0, "60 MB of recording took {growth} MB more than 1.5 MB of it");

    let large = inflated_chunk(&std::fs::read(fixture("async-itimer.jfr")).unwrap(), 5 << 20);
    let passed = push_bytes("large", &large);
    assert!(passed.status.success(), "{}", String::from_utf8_lossy(&passed.stderr));
    assert!(flame(&server, "large.cpu")["numTicks"].as_i64().unwrap() > 10 * of_one);

    let mut broken = recording(6);
    let cut = broken.len() - 100;
    broken.truncate(cut);
    let refused = push_bytes("broken", &broken);
    let complaint = String::from_utf8(refused.stderr).unwrap();
    assert!(
        complaint.contains(&format!("jfr: at byte {cut}: expected a chunk of {} bytes", chunk.len())),
        "{complaint}"
    );
    assert_eq!(flame(&server, "broken.cpu")["numTicks"], 0);

    let zipped = gzip(&recording(6));
    assert!(zipped.len() < 1 << 20, "as a request it is small");
    assert!(push_bytes("zipped", &zipped).status.success());
    assert_eq!(flame(&server, "zipped.cpu")["numTicks"].as_i64().unwrap(), of_one * 6);
    let text = push_bytes("text", "main;work 1\n".repeat(100_000).as_bytes());
    let complaint = String::from_utf8(text.stderr).unwrap();
    assert!(complaint.contains("more than 1048576 bytes") && complaint.contains("limits.max_bytes"), "{complaint}");
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut encoder, bytes).unwrap();
    encoder.finish().unwrap()
}
