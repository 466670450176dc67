//! Pulling profiles: `[[scrape]]` against a Go service with `net/http/pprof`, and against targets that misbehave.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicI64};
use std::time::{Duration, Instant};

use hotspan_formats::pprof::{Header, PprofWriter};
use hotspan_model::{Frame, PathTable};
use serde_json::{Value, json};
use support::{Server, request};

/// Asks for the targets until they are as they should be.
fn targets_when(server: &Server, what: &str, ready: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let targets = server.get_json("/api/v1/targets")["targets"].as_array().unwrap().clone();
        if ready(&targets) {
            return targets;
        }
        assert!(Instant::now() < deadline, "{what}: {targets:#?}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn flame(server: &Server, query: &str) -> Value {
    server.get_json(&format!("/api/v1/query?query={query}&from=now-1h"))["flamebearer"].clone()
}

fn has_name(graph: &Value, name: &str) -> bool {
    graph["names"].as_array().unwrap().iter().any(|other| other == name)
}

/// The Go service; killed when dropped.
struct GoService {
    child: Child,
    address: String,
}

impl GoService {
    /// Builds and starts it; none where there is no Go.
    fn start(folder: &Path) -> Option<Self> {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/scraped.go");
        let binary = folder.join("scraped");
        let built =
            Command::new("go").args(["build", "-o"]).arg(&binary).arg(program).env("GOFLAGS", "").status().ok()?;
        assert!(built.success());
        let mut child = Command::new(binary).stdout(Stdio::piped()).spawn().unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
        Some(Self { child, address: address.trim().to_owned() })
    }
}

impl Drop for GoService {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Scenario: a Go service that burns, allocates and contends, scraped for all profiles it has.
/// Guarantee: each profile shows the function that caused it under the service's labels; what counts since the
/// start is stored as what was added, and so is far below the total since the start.
#[test]
fn a_go_service_is_scraped() {
    let folder = tempfile::tempdir().unwrap();
    let Some(service) = GoService::start(folder.path()) else { return };
    let config = format!(
        "[[scrape]]\nservice = 'go-shop'\ntargets = ['{}']\ninterval = '2s'\njitter = '50ms'\nlabels = {{ region = 'eu' }}\n\
         profiles = ['profile', 'heap', 'allocs', 'goroutine', 'mutex', 'block', 'threadcreate']\n",
        service.address
    );
    // What the service has allocated before anybody looked must not count.
    std::thread::sleep(Duration::from_secs(2));
    let (_store, server) = Server::configured(&config);
    let twice =
        |targets: &[Value]| targets.len() == 7 && targets.iter().all(|target| target["scrapes"].as_u64().unwrap() >= 3);
    let targets = targets_when(&server, "every profile was scraped three times", twice);
    for target in &targets {
        assert_eq!((&target["health"], &target["failures"]), (&json!("up"), &json!(0)), "{target}");
        assert_eq!((&target["service"], &target["target"]), (&json!("go-shop"), &json!(service.address)));
    }
    for (kind, function) in [
        ("cpu", "main.burn"),
        ("alloc_space", "main.allocate"),
        ("inuse_space", "main.allocate"),
        ("goroutine", "main.contend"),
        ("mutex", "main.contend"),
        ("block", "main.contend"),
    ] {
        let graph = flame(&server, &format!("go-shop.{kind}%7Bregion%3D%22eu%22%7D"));
        assert!(has_name(&graph, function), "{kind}: {graph}");
    }
    assert!(
        flame(&server, &format!("go-shop.cpu%7Binstance%3D%22{}%22%7D", service.address))["numTicks"].as_i64().unwrap()
            > 0
    );
    // Two goroutines share a mutex: in the time that was watched, nobody can have waited longer than it lasted.
    let scraped: f64 = targets.iter().map(|target| target["scrapes"].as_f64().unwrap()).fold(0.0, f64::max);
    let waited = flame(&server, "go-shop.mutex")["numTicks"].as_i64().unwrap();
    assert!(waited > 0 && (waited as f64) < (scraped + 1.0) * 2.5e9, "{waited} ns in {scraped} scrapes");
    assert!(server.get("/metrics").unwrap().text().contains("hotspan_scrapes_total"));
}

/// Answers every request of a target with a status and a body, several at once, until the test ends.
fn target(answer: &'static (dyn Fn(&str) -> (u16, Vec<u8>) + Sync)) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            std::thread::spawn(move || {
                let mut head = [0; 2048];
                let length = stream.read(&mut head).unwrap_or(0);
                let path = String::from_utf8_lossy(&head[..length]).split(' ').nth(1).unwrap_or_default().to_owned();
                let (status, body) = answer(&path);
                let length = body.len();
                let head = format!("HTTP/1.1 {status} x\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
                let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
            });
        }
    });
    address
}

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../hotspan-formats/tests/fixtures").join(name)).unwrap()
}

/// Scenario: a target that serves real profiles of a Go program, beside one that refuses, one that serves
/// nonsense, one that never answers and one that is not there.
/// Guarantee: the good one is stored under every profile type it has; each of the others is down with its reason.
#[test]
fn targets_that_misbehave_are_named() {
    let good = target(&|path| match path {
        "/pprof/goroutine" => (200, fixture("go-goroutine.pb.gz")),
        "/pprof/heap" => (200, fixture("go-heap.pb.gz")),
        "/pprof/profile?seconds=1" => (200, fixture("go-cpu.pb.gz")),
        other => (404, format!("no {other} here").into_bytes()),
    });
    let refuses = target(&|_| (503, b"profiling is off".to_vec()));
    let nonsense = target(&|_| (200, b"<html>hello</html>".to_vec()));
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let config = format!(
        "[[scrape]]\nservice = 'good'\ntargets = ['{good}']\nprofiles = ['cpu', 'heap', 'goroutine', 'mutex']\n\
         path = '/pprof'\ninterval = '1s'\njitter = '0s'\n\
         [[scrape]]\nservice = 'bad'\ntargets = ['{refuses}', '{nonsense}', '{}', '127.0.0.1:1']\n\
         profiles = ['goroutine']\ninterval = '1s'\njitter = '0s'\ntimeout = '200ms'\n",
        silent.local_addr().unwrap()
    );
    let (_store, server) = Server::configured(&config);
    let all =
        |targets: &[Value]| targets.len() == 8 && targets.iter().all(|target| target["scrapes"].as_u64().unwrap() >= 1);
    let targets = targets_when(&server, "every target was asked", all);
    let error = |target: &Value| target["last_error"].as_str().unwrap_or("").to_owned();
    let reasons = [
        "",
        "",
        "",
        "404",
        "profiling is off",
        "no goroutine profile in pprof: it is a web page",
        "no answer in time",
        "refused",
    ];
    assert_eq!(targets.len(), reasons.len());
    for (target, reason) in targets.iter().zip(reasons) {
        let health = if reason.is_empty() { "up" } else { "down" };
        assert_eq!(target["health"], health, "{target}");
        assert!(error(target).to_ascii_lowercase().contains(reason), "{target}");
    }
    let types = server
        .post("/querier.v1.QuerierService/ProfileTypes", "application/json", b"{\"start\":1,\"end\":4102444800000}")
        .unwrap();
    let types = types.text();
    for kind in ["process_cpu:cpu:", "memory:inuse_space:", "goroutine:goroutine:"] {
        assert!(types.contains(kind), "{types}");
    }
    assert!(!types.contains("memory:alloc_space"), "the first scrape of what counts since the start says nothing yet");
}

/// Scenario: a target that answers whatever it is asked for with its heap, as behind a wrong `path`.
/// Guarantee: it is down for all that is no heap, told what came instead, and the heap is stored as nothing else.
#[test]
fn another_profile_than_was_asked_for_is_refused() {
    let address = target(&|_| (200, fixture("go-heap.pb.gz")));
    let config = format!(
        "[[scrape]]\nservice = 'heaps'\ntargets = ['{address}']\ninterval = '1s'\njitter = '0s'\ndelta = false\n\
         profiles = ['heap', 'allocs', 'cpu', 'goroutine', 'mutex', 'block', 'threadcreate']\n"
    );
    let (_store, server) = Server::configured(&config);
    let all =
        |targets: &[Value]| targets.len() == 7 && targets.iter().all(|target| target["scrapes"].as_u64().unwrap() >= 1);
    let targets = targets_when(&server, "every profile was asked for", all);
    for target in &targets[..2] {
        assert_eq!((&target["health"], &target["last_error"]), (&json!("up"), &json!(null)), "{target}");
    }
    for target in &targets[2..] {
        let kind = target["profile"].as_str().unwrap();
        let reason =
            format!("the answer is no {kind} profile: it has alloc_objects, alloc_space, inuse_objects, inuse_space");
        assert_eq!((&target["health"], &target["last_error"]), (&json!("down"), &json!(reason)), "{target}");
    }
    let types = server
        .post("/querier.v1.QuerierService/ProfileTypes", "application/json", b"{\"start\":1,\"end\":4102444800000}")
        .unwrap()
        .text();
    assert!(types.contains("memory:alloc_space:"), "{types}");
    for kind in ["process_cpu:", "goroutine:", "mutex:", "block:", "threadcreate:"] {
        assert!(!types.contains(kind), "{types}");
    }
}

/// What the target below says was allocated since its start: a hundred bytes more each time that anybody asks.
static ALLOCATED: AtomicI64 = AtomicI64::new(5000);
static ALLOCS_ANSWERS: AtomicBool = AtomicBool::new(false);

fn memory_profile(allocated: i64) -> Vec<u8> {
    let mut paths = PathTable::default();
    let frame = paths.frame(Frame::named("main.allocate"));
    let path = paths.path(&[frame]);
    let pair = |name: &str, unit: &str| (name.to_owned(), unit.to_owned());
    let header = Header {
        sample_types: vec![pair("alloc_space", "bytes"), pair("inuse_space", "bytes")],
        period_type: pair("space", "bytes"),
        ..Header::default()
    };
    let mut writer = PprofWriter::new(&header, &paths);
    writer.sample(path, &[allocated, 7], []);
    writer.finish_gzip()
}

fn growing_memory_profile() -> Vec<u8> {
    memory_profile(ALLOCATED.fetch_add(100, Relaxed) + 100)
}

/// Scenario: heap and allocs of one target are scraped; allocs is down at first, and answers later on.
/// Guarantee: allocations are stored all the time, from whichever answers, and each once.
#[test]
fn allocations_while_one_profile_is_down() {
    let address = target(&|path| match path {
        "/debug/pprof/heap" => (200, growing_memory_profile()),
        _ if ALLOCS_ANSWERS.load(Relaxed) => (200, growing_memory_profile()),
        _ => (503, b"not now".to_vec()),
    });
    let config = format!(
        "[[scrape]]\nservice = 'memory'\ntargets = ['{address}']\nprofiles = ['heap', 'allocs']\n\
         interval = '1s'\njitter = '0s'\n"
    );
    let (_store, server) = Server::configured(&config);
    let scraped = |count: u64| {
        move |targets: &[Value]| {
            targets.len() == 2 && targets.iter().all(|target| target["scrapes"].as_u64().unwrap() >= count)
        }
    };
    let stored = || flame(&server, "memory.alloc_space")["numTicks"].as_i64().unwrap();
    targets_when(&server, "allocs was down for a while", scraped(4));
    let without_allocs = stored();
    assert!(without_allocs > 0, "heap has the allocations as well");
    ALLOCS_ANSWERS.store(true, Relaxed);
    targets_when(&server, "both answered for a while", scraped(8));
    let (all, allocated) = (stored(), ALLOCATED.load(Relaxed) - 5000);
    // The first answer is where counting starts, and an answer may be under way.
    assert!(all > without_allocs && all <= allocated - 100, "{all} of {allocated}");
    assert!(all >= allocated - 500, "{all} of {allocated}");
}

/// Scenario: allocs of a target hangs; heap, which knows the same last values, answers.
/// Guarantee: heap is scraped at its interval all the same, and its scrapes take as long as its own answers do.
#[test]
fn a_profile_that_hangs_holds_up_no_other() {
    let address = target(&|path| {
        if path.ends_with("/allocs") {
            std::thread::sleep(Duration::from_secs(60));
        }
        (200, memory_profile(5000))
    });
    let config = format!(
        "[[scrape]]\nservice = 'memory'\ntargets = ['{address}']\nprofiles = ['heap', 'allocs']\n\
         interval = '1s'\njitter = '0s'\ntimeout = '30s'\n"
    );
    let (_store, server) = Server::configured(&config);
    let heap_often = |targets: &[Value]| targets.len() == 2 && targets[0]["scrapes"].as_u64().unwrap() >= 4;
    let targets = targets_when(&server, "heap was scraped several times", heap_often);
    assert_eq!((&targets[0]["profile"], &targets[0]["failures"]), (&json!("heap"), &json!(0)));
    assert_eq!((&targets[1]["profile"], &targets[1]["scrapes"]), (&json!("allocs"), &json!(0)), "it still hangs");
    assert!(targets[0]["last_scrape_seconds"].as_f64().unwrap() < 5.0, "{}", targets[0]);
}

/// Scenario: targets of two tenants, one with a password, asked for by each, by a stranger and by nobody in particular.
/// Guarantee: everyone sees how their own targets do and none of the others; nobody sees a password.
#[test]
fn targets_of_tenants() {
    let (_store, server) = Server::configured(
        "multi_tenancy = true\n\
         [[scrape]]\nservice = 'red'\ntenant = 'a'\ntargets = ['http://me:secret@127.0.0.1:1']\nprofiles = ['heap', 'mutex']\n\
         [[scrape]]\nservice = 'blue'\ntenant = 'b'\ntargets = ['127.0.0.1:1']\nprofiles = ['heap']\n",
    );
    let ask = |headers: &[(&str, &str)]| request(&server.http, "GET", "/api/v1/targets", headers, b"").unwrap();
    let services = |tenant: &str| {
        let answer: Value = serde_json::from_slice(&ask(&[("x-scope-orgid", tenant)]).body).unwrap();
        let targets = answer["targets"].as_array().unwrap().clone();
        targets.iter().map(|target| target["service"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let deadline = Instant::now() + Duration::from_secs(20);
    while services("a").is_empty() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(services("a"), ["red", "red"]);
    assert_eq!(services("b"), ["blue"]);
    let shown = ask(&[("x-scope-orgid", "a")]).text();
    assert!(shown.contains("\"http://127.0.0.1:1/debug/pprof/heap\"") && !shown.contains("secret"), "{shown}");
    assert!(services("c").is_empty());
    let nobody = ask(&[]);
    assert!(nobody.status == 401 && nobody.text().contains("X-Scope-OrgID"), "{}", nobody.text());
}

/// Scenario: a configuration whose scrape is wrong, and one that is right.
/// Guarantee: what is wrong is named with its place; what is right is shown with every key.
#[test]
fn a_wrong_scrape_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("hotspan.toml");
    std::fs::write(&file, "[[scrape]]\nservice = 'a'\ntargets = ['b:1']\nprofiles = ['memory']\n").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_hotspan")).args(["config", "check"]).arg(&file).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        !output.status.success() && text.contains("hotspan.toml:4:12: scrape.profiles: [\"memory\"] is not"),
        "{text}"
    );
    let repeated = "[[scrape]]\nservice = 'a'\ntargets = ['b:1', 'http://b:1/']\n\
                    [[scrape]]\nservice = 'a'\ntargets = ['b:1']\nprofiles = ['goroutine', 'cpu', 'profile']\n";
    std::fs::write(&file, repeated).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_hotspan")).args(["config", "check"]).arg(&file).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!output.status.success(), "{text}");
    for part in ["hotspan.toml:3:11: scrape.targets: ", "hotspan.toml:7:12: scrape.profiles: ", "cpu"] {
        assert!(text.contains(part), "{text}");
    }
    std::fs::write(&file, "[[scrape]]\nservice = 'a'\ntargets = ['b:1']\n").unwrap();
    let show = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hotspan"));
        let shown = command.args(["config", "show", "--config"]).arg(&file).args(more).output().unwrap();
        String::from_utf8(shown.stdout).unwrap()
    };
    assert!(show(&[]).contains("[[scrape]]\nservice = \"a\"\ntargets = [\"b:1\"]"), "{}", show(&[]));
    assert!(show(&["--json"]).contains("\"scrape[0].interval\""));
}
