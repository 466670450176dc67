//! A real server as a child process, and a plain HTTP client to talk to it.

// Each test file uses a part of this.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used)]

pub(crate) mod demo;
pub(crate) mod grpc;
pub(crate) mod push_messages;
pub(crate) mod python;
pub(crate) mod querier;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::profiles::v1development::{
    Function, Line, Link, Location, Profile, ProfilesDictionary, ResourceProfiles, Sample, ScopeProfiles, Stack,
    ValueType,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};

/// A running server. It is killed when dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) http: String,
    pub(crate) addresses: Vec<(String, String)>,
}

impl Server {
    /// Starts a server on free ports.
    pub(crate) fn start(store: &Path) -> Self {
        Self::start_with(store, &[])
    }

    /// Starts a server on free ports with further arguments.
    pub(crate) fn start_with(store: &Path, arguments: &[&str]) -> Self {
        Self::start_command(Command::new(env!("CARGO_BIN_EXE_hotspan")), store, arguments)
    }

    /// Starts a server through another program, which must become it.
    pub(crate) fn start_inside(program: &str, program_arguments: &[&str], store: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new(program);
        command.args(program_arguments).arg(env!("CARGO_BIN_EXE_hotspan"));
        Self::start_command(command, store, arguments)
    }

    fn start_command(mut command: Command, store: &Path, arguments: &[&str]) -> Self {
        let mut child = command
            .args(["serve", "--store"])
            .arg(store)
            .args(["--http", "127.0.0.1:0", "--otlp-grpc", "127.0.0.1:0"])
            .args(["--otlp-http", "127.0.0.1:0", "--tempo", "127.0.0.1:0"])
            .args(arguments)
            .env("HOTSPAN_LOG_LEVEL", "warn")
            // Fixtures were recorded long ago, and what is older than its retention is not taken.
            .env("HOTSPAN_RETENTION_SAMPLES", "36500d")
            // Tests count what they sent; those about the server's own data turn it on by flag.
            .env("HOTSPAN_SELF_TRACING_ENABLED", "false")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut addresses = Vec::new();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        while addresses.len() < 4 {
            let line = lines.next().expect("the server prints four addresses").unwrap();
            let (name, address) = line.split_once(' ').unwrap();
            addresses.push((name.to_owned(), address.to_owned()));
        }
        let http = addresses[0].1.clone();
        Self { child, http, addresses }
    }

    /// A ready server on a store that is gone with the folder.
    pub(crate) fn fresh() -> (tempfile::TempDir, Self) {
        let store = tempfile::tempdir().unwrap();
        let server = Self::start(store.path());
        server.wait_ready();
        (store, server)
    }

    /// A ready server with this configuration, on a store that is gone with the folder.
    pub(crate) fn configured(config: &str) -> (tempfile::TempDir, Self) {
        let store = tempfile::tempdir().unwrap();
        let file = store.path().join("hotspan.toml");
        std::fs::write(&file, config).unwrap();
        let server = Self::start_with(store.path(), &["--config", file.to_str().unwrap()]);
        server.wait_ready();
        (store, server)
    }

    /// Waits until the store is open.
    pub(crate) fn wait_ready(&self) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while Instant::now() < deadline {
            if let Ok(answer) = self.get("/ready")
                && answer.status == 200
            {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("the server did not become ready");
    }

    /// Waits until no segment is young: how soon they stop being so, the server was told at its start.
    pub(crate) fn wait_compacted(&self) {
        self.wait_for_tables(|table| table["level"] != 0);
    }

    /// Waits until all that was received is merged for good, which only what is of hours that are over is.
    pub(crate) fn wait_merged(&self) {
        let is_of_hours =
            |table: &serde_json::Value| ["spans", "samples", "profiles"].iter().any(|name| table["table"] == *name);
        self.wait_for_tables(|table| table["level"] == 3 || table["level"] != 0 && !is_of_hours(table));
    }

    fn wait_for_tables(&self, is_done: impl Fn(&serde_json::Value) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let status = self.get_json("/api/v1/status");
            let tables = status["store"]["tables"].as_array().unwrap();
            if !tables.is_empty() && tables.iter().all(&is_done) {
                return;
            }
            assert!(Instant::now() < deadline, "not compacted: {status}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// The address of a listener by its name.
    pub(crate) fn address(&self, name: &str) -> &str {
        &self.addresses.iter().find(|(other, _)| other == name).unwrap().1
    }

    pub(crate) fn get(&self, path: &str) -> std::io::Result<Answer> {
        request(&self.http, "GET", path, &[], &[])
    }

    pub(crate) fn get_json(&self, path: &str) -> serde_json::Value {
        let answer = self.get(path).unwrap();
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        serde_json::from_slice(&answer.body).unwrap()
    }

    pub(crate) fn post(&self, path: &str, content_type: &str, body: &[u8]) -> std::io::Result<Answer> {
        request(&self.http, "POST", path, &[("content-type", content_type)], body)
    }

    /// The answer to a question, which must be a good one.
    pub(crate) fn post_json(&self, path: &str, body: &serde_json::Value) -> serde_json::Value {
        post_json(&self.http, path, body)
    }

    /// Megabytes of the largest resident set so far.
    pub(crate) fn peak_memory(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<f64>().unwrap() / 1e3
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends the process at once, as a crash would.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks the process to end, and waits for it.
    pub(crate) fn terminate(&mut self) -> std::process::ExitStatus {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        wait_for_end(&mut self.child)
    }
}

/// Waits for a process to end, and tells what its threads are doing if it does not.
pub(crate) fn wait_for_end(child: &mut Child) -> std::process::ExitStatus {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        assert!(Instant::now() < deadline, "process {} does not end:\n{}", child.id(), threads_of(child.id()));
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The threads of a process as the kernel tells of them: state, CPU time, and where each waits.
fn threads_of(pid: u32) -> String {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let lines = threads.map(|thread| {
        let folder = thread.unwrap().path();
        let read = |file: &str| std::fs::read_to_string(folder.join(file)).unwrap_or_default();
        format!("{} | waits in {:?} | {}", read("stat").trim(), read("wchan"), read("syscall").trim())
    });
    lines.collect::<Vec<_>>().join("\n")
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An HTTP answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// The JSON that a server answers to JSON; the answer must be a good one.
pub(crate) fn post_json(address: &str, path: &str, body: &serde_json::Value) -> serde_json::Value {
    let headers = [("content-type", "application/json")];
    let answer = request(address, "POST", path, &headers, body.to_string().as_bytes()).unwrap();
    assert_eq!(answer.status, 200, "{path} {body}: {}", answer.text());
    serde_json::from_slice(&answer.body).unwrap()
}

/// One request over a connection of its own.
pub(crate) fn request(
    address: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> std::io::Result<Answer> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    let mut head = format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)?;
    let mut raw = Vec::new();
    stream.read_to_end(&mut raw)?;
    let end =
        raw.windows(4).position(|window| window == b"\r\n\r\n").ok_or_else(|| std::io::Error::other("no answer"))?;
    let head = String::from_utf8_lossy(&raw[..end]).into_owned();
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
    let mut body = raw[end + 4..].to_vec();
    if head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
        body = unchunk(&body);
    }
    Ok(Answer { status, headers: head, body })
}

fn unchunk(mut chunked: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = chunked.windows(2).position(|window| window == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&chunked[..end]).unwrap().trim(), 16).unwrap();
        if size == 0 {
            break;
        }
        body.extend_from_slice(&chunked[end + 2..end + 2 + size]);
        chunked = &chunked[end + 2 + size + 2..];
    }
    body
}

pub(crate) fn text_attribute(key: &str, value: &str) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(Value::StringValue(value.to_owned())) }),
        ..KeyValue::default()
    }
}

/// A trace request of one service.
pub(crate) fn trace_request(service: &str, spans: Vec<Span>) -> ExportTraceServiceRequest {
    ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans {
            resource: Some(Resource {
                attributes: vec![text_attribute("service.name", service)],
                ..Resource::default()
            }),
            scope_spans: vec![ScopeSpans {
                scope: Some(InstrumentationScope { name: "test".to_owned(), ..InstrumentationScope::default() }),
                spans,
                ..ScopeSpans::default()
            }],
            ..ResourceSpans::default()
        }],
    }
}

/// Nanoseconds since 1970.
pub(crate) fn now_nanos() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64
}

/// A sample for [`profile_request`].
pub(crate) struct TestSample<'a> {
    /// Functions, the root first.
    pub(crate) stack: &'a [&'a str],
    pub(crate) value: i64,
    pub(crate) time: u64,
    pub(crate) trace_id: [u8; 16],
    pub(crate) span_id: [u8; 8],
}

/// A request with one CPU profile of one service.
pub(crate) fn profile_request(
    service: &str,
    profile_id: [u8; 16],
    samples: &[TestSample<'_>],
) -> ExportProfilesServiceRequest {
    let mut strings = vec![String::new(), "cpu".to_owned(), "nanoseconds".to_owned()];
    let mut intern = |text: &str| -> i32 {
        if let Some(at) = strings.iter().position(|other| other == text) {
            return at as i32;
        }
        strings.push(text.to_owned());
        (strings.len() - 1) as i32
    };
    let mut functions = vec![Function::default()];
    let mut locations = vec![Location::default()];
    let mut stacks = vec![Stack::default()];
    let mut links = vec![Link::default()];
    let mut encoded = Vec::new();
    for sample in samples {
        let mut stack = Stack::default();
        for name in sample.stack.iter().rev() {
            let name_strindex = intern(name);
            let filename_strindex = intern(&format!("{name}.rs"));
            functions.push(Function { name_strindex, filename_strindex, ..Function::default() });
            let line = Line { function_index: (functions.len() - 1) as i32, line: 7, column: 3 };
            locations.push(Location { lines: vec![line], ..Location::default() });
            stack.location_indices.push((locations.len() - 1) as i32);
        }
        stacks.push(stack);
        links.push(Link { trace_id: sample.trace_id.to_vec(), span_id: sample.span_id.to_vec() });
        encoded.push(Sample {
            stack_index: (stacks.len() - 1) as i32,
            link_index: (links.len() - 1) as i32,
            values: vec![sample.value],
            timestamps_unix_nano: vec![sample.time],
            ..Sample::default()
        });
    }
    let cpu = ValueType { type_strindex: 1, unit_strindex: 2 };
    let profile = Profile {
        sample_type: Some(cpu),
        period_type: Some(cpu),
        period: 10_000_000,
        samples: encoded,
        time_unix_nano: samples.first().map_or(0, |sample| sample.time),
        duration_nano: 15_000_000_000,
        profile_id: profile_id.to_vec(),
        ..Profile::default()
    };
    ExportProfilesServiceRequest {
        resource_profiles: vec![ResourceProfiles {
            resource: Some(Resource {
                attributes: vec![text_attribute("service.name", service)],
                ..Resource::default()
            }),
            scope_profiles: vec![ScopeProfiles { profiles: vec![profile], ..ScopeProfiles::default() }],
            ..ResourceProfiles::default()
        }],
        dictionary: Some(ProfilesDictionary {
            function_table: functions,
            location_table: locations,
            stack_table: stacks,
            link_table: links,
            string_table: strings,
            mapping_table: vec![Default::default()],
            attribute_table: vec![Default::default()],
        }),
    }
}

/// Text as it stands in an address.
pub(crate) fn percent_encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}
