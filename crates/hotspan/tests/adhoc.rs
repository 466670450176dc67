//! Pyroscope's ad hoc profiles, as Grafana's Ad hoc view uploads, lists, draws and compares them.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::path::Path;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hotspan_formats::pprof::{Header, PprofWriter};
use hotspan_model::{Frame, PathTable};
use prost::Message;
use serde_json::{Value, json};
use support::querier::{ask, ask_json};
use support::{Answer, Server, request};

fn method(name: &str) -> String {
    format!("/adhocprofiles.v1.AdHocProfileService/{name}")
}

/// A pprof file with counts and CPU time of these stacks; a sample takes 10 ms.
fn pprof(stacks: &[(&str, i64)]) -> Vec<u8> {
    let mut paths = PathTable::default();
    let mut samples = Vec::new();
    for (stack, count) in stacks {
        let frames: Vec<_> = stack.split(';').map(|name| paths.frame(Frame::named(name))).collect();
        samples.push((paths.path(&frames), *count));
    }
    let pair = |name: &str, unit: &str| (name.to_owned(), unit.to_owned());
    let header = Header {
        sample_types: vec![pair("samples", "count"), pair("cpu", "nanoseconds")],
        period_type: pair("cpu", "nanoseconds"),
        period: 10_000_000,
        ..Header::default()
    };
    let mut writer = PprofWriter::new(&header, &paths);
    for (path, count) in samples {
        writer.sample(path, &[count, count * 10_000_000], []);
    }
    writer.finish_gzip()
}

fn upload_of(name: &str, file: &[u8]) -> Value {
    json!({"name": name, "profile": STANDARD.encode(file)})
}

fn upload(server: &Server, name: &str, file: &[u8]) -> Value {
    ask_json(server, &method("Upload"), &upload_of(name, file))
}

/// The flame graph that an answer holds as text.
fn graph(answer: &Value) -> Value {
    serde_json::from_str(answer["flamebearerProfile"].as_str().unwrap()).unwrap()
}

fn id(answer: &Value) -> &str {
    answer["id"].as_str().unwrap()
}

/// The Connect code and the message of an answer that must be an error.
fn error(answer: &Answer) -> (u16, String, String) {
    let error: Value = serde_json::from_slice(&answer.body).unwrap_or_else(|_| panic!("{}", answer.text()));
    let text = |key: &str| error[key].as_str().unwrap_or_default().to_owned();
    (answer.status, text("code"), text("message"))
}

/// Scenario: the Ad hoc view with two files of two types each: uploads, the list, the other type, a comparison.
/// Guarantee: each flame graph has the values of the file and type that were asked for; the list has the latest first;
/// the comparison has both sides, in the type that was asked for or the first that both have.
#[test]
fn upload_look_compare() {
    let (_store, server) = Server::fresh();
    let before = upload(&server, "before.pb.gz", &pprof(&[("main;a", 3), ("main;b", 5)]));
    assert_eq!((&before["profileType"], &before["profileTypes"]), (&json!("samples"), &json!(["samples", "cpu"])));
    assert_eq!(before["name"], "before.pb.gz");
    assert!(id(&before).ends_with("-before.pb.gz"), "{before}");
    let drawn = graph(&before);
    assert_eq!(drawn["flamebearer"]["names"], json!(["total", "main", "b", "a"]));
    assert_eq!(drawn["flamebearer"]["levels"][2], json!([0, 3, 3, 3, 0, 5, 5, 2]));
    assert_eq!((&drawn["metadata"]["format"], &drawn["metadata"]["name"]), (&json!("single"), &json!("samples")));

    // As the view asks for another type.
    let cpu = ask_json(&server, &method("Get"), &json!({"id": id(&before), "profile_type": "cpu"}));
    assert_eq!((&cpu["id"], &cpu["uploadedAt"]), (&before["id"], &before["uploadedAt"]));
    assert_eq!((&cpu["profileType"], &graph(&cpu)["flamebearer"]["numTicks"]), (&json!("cpu"), &json!(80_000_000)));
    let again = ask_json(&server, &method("Get"), &json!({"id": id(&before)}));
    assert_eq!(again, before);
    let small = ask_json(&server, &method("Get"), &json!({"id": id(&before), "maxNodes": "2"}));
    let small = graph(&small)["flamebearer"].clone();
    assert!(small["names"].to_string().contains("other") && small["numTicks"] == 8, "{small}");

    let after = upload(&server, "after.pb.gz", &pprof(&[("main;a", 4), ("main;c", 7)]));
    let list = ask_json(&server, &method("List"), &json!({}));
    let entry = |of: &Value| json!({"id": of["id"], "name": of["name"], "uploadedAt": of["uploadedAt"]});
    assert_eq!(list, json!({"profiles": [entry(&after), entry(&before)]}));

    let sides = |profile_type: &str| json!({"leftId": id(&before), "rightId": id(&after), "profileType": profile_type});
    let diff = ask_json(&server, &method("Diff"), &sides("cpu"));
    assert_eq!(diff["profileTypes"], json!(["samples", "cpu"]));
    let diff = graph(&diff);
    assert_eq!((&diff["leftTicks"], &diff["rightTicks"]), (&json!(80_000_000), &json!(110_000_000)));
    assert_eq!((&diff["metadata"]["format"], &diff["metadata"]["name"]), (&json!("double"), &json!("cpu")));
    let first = graph(&ask_json(&server, &method("Diff"), &sides("")));
    assert_eq!(first["flamebearer"]["levels"][0], json!([0, 8, 0, 0, 11, 0, 0]));

    // A file that Grafana exported, with nothing but samples in time, has one type in common.
    let exported = upload(&server, "export.json", cpu["flamebearerProfile"].as_str().unwrap().as_bytes());
    assert_eq!(graph(&exported)["flamebearer"], graph(&cpu)["flamebearer"]);
    let sides = json!({"left_id": id(&after), "right_id": id(&exported)});
    let diff = ask_json(&server, &method("Diff"), &sides);
    assert_eq!((&diff["profileTypes"], &graph(&diff)["rightTicks"]), (&json!(["cpu"]), &json!(80_000_000)));
}

#[derive(Clone, PartialEq, Message)]
struct UploadRequest {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    profile: String,
    #[prost(int64, optional, tag = "3")]
    max_nodes: Option<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct GetRequest {
    #[prost(string, tag = "1")]
    id: String,
    #[prost(string, optional, tag = "2")]
    profile_type: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct ProfileAnswer {
    #[prost(string, tag = "1")]
    id: String,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(int64, tag = "3")]
    uploaded_at: i64,
    #[prost(string, tag = "4")]
    profile_type: String,
    #[prost(string, repeated, tag = "5")]
    profile_types: Vec<String>,
    #[prost(string, tag = "6")]
    flamebearer_profile: String,
}

#[derive(Clone, PartialEq, Message)]
struct ListAnswer {
    #[prost(message, repeated, tag = "1")]
    profiles: Vec<ProfileAnswer>,
}

#[derive(Clone, PartialEq, Message)]
struct DiffRequest {
    #[prost(string, tag = "1")]
    left_id: String,
    #[prost(string, tag = "2")]
    right_id: String,
    #[prost(string, optional, tag = "3")]
    profile_type: Option<String>,
    #[prost(int64, optional, tag = "4")]
    max_nodes: Option<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct DiffAnswer {
    #[prost(string, repeated, tag = "1")]
    profile_types: Vec<String>,
    #[prost(string, tag = "2")]
    flamebearer_profile: String,
}

/// Calls with binary Connect.
fn call<A: Message + Default>(server: &Server, name: &str, message: &impl Message) -> A {
    let answer = server.post(&method(name), "application/proto", &message.encode_to_vec()).unwrap();
    assert_eq!(answer.status, 200, "{name}: {}", answer.text());
    A::decode(&*answer.body).unwrap()
}

/// Scenario: the four methods in protobuf, over Connect and gRPC-Web, with a limit on the nodes.
/// Guarantee: answers decode with the field numbers of the protocol, and are those of JSON.
#[test]
fn in_protobuf() {
    let (_store, server) = Server::fresh();
    let profile = STANDARD.encode(pprof(&[("main;a", 3), ("main;b", 5)]));
    let message = UploadRequest { name: "a b.pb.gz".to_owned(), profile, max_nodes: Some(2) };
    let uploaded: ProfileAnswer = call(&server, "Upload", &message);
    assert_eq!((uploaded.name.as_str(), uploaded.profile_type.as_str()), ("a_b.pb.gz", "samples"));
    assert!(uploaded.uploaded_at > 1_700_000_000_000, "{uploaded:?}");
    assert!(uploaded.flamebearer_profile.contains("other"), "{uploaded:?}");
    let asked = GetRequest { id: uploaded.id.clone(), profile_type: Some("cpu".to_owned()) };
    let cpu: ProfileAnswer = call(&server, "Get", &asked);
    assert_eq!((&cpu.id, &cpu.profile_types), (&uploaded.id, &vec!["samples".to_owned(), "cpu".to_owned()]));
    let json = ask_json(&server, &method("Get"), &json!({"id": uploaded.id, "profileType": "cpu"}));
    assert_eq!(json["flamebearerProfile"], cpu.flamebearer_profile);
    let list: ListAnswer = call(&server, "List", &());
    assert_eq!((list.profiles.len(), &list.profiles[0].id), (1, &uploaded.id));
    assert_eq!(list.profiles[0].uploaded_at, uploaded.uploaded_at);
    let sides = DiffRequest { left_id: uploaded.id.clone(), right_id: uploaded.id, ..DiffRequest::default() };
    let diff: DiffAnswer = call(&server, "Diff", &sides);
    assert_eq!(diff.profile_types, ["samples", "cpu"]);
    assert!(diff.flamebearer_profile.contains(r#""format":"double""#), "{diff:?}");

    let mut framed = vec![0];
    framed.extend_from_slice(&(asked.encoded_len() as u32).to_be_bytes());
    framed.extend_from_slice(&asked.encode_to_vec());
    let web = server.post(&method("Get"), "application/grpc-web+proto", &framed).unwrap();
    assert!(web.text().contains("grpc-status: 0"), "{}", web.text());
    assert_eq!(ProfileAnswer::decode(&web.body[5..5 + cpu.encoded_len()]).unwrap(), cpu);
}

/// Scenario: files of every format that profilers leave, one after another.
/// Guarantee: each is drawn with the function that burned, and its first type is among those that it has.
#[test]
fn files_of_any_format() {
    let (_store, server) = Server::fresh();
    let files = [
        ("go-heap.pb.gz", ""),
        ("async-cpu-alloc-lock.jfr", "Burn"),
        ("jdk.jfr.gz", "Burn.spin"),
        ("node.cpuprofile", "spin"),
        ("node.heapprofile", "allocateKept"),
        ("py-spy.speedscope.json", "spin"),
        ("py-spy.collapsed", "spin"),
        ("perf-script.txt", "main.spin"),
        ("async-itimer.otlp", "Burn.spin"),
    ];
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../hotspan-formats/tests/fixtures");
    for (name, function) in files {
        let file = std::fs::read(folder.join(name)).unwrap();
        let answer = upload(&server, name, &file);
        let types = answer["profileTypes"].as_array().unwrap();
        assert_eq!(types[0], answer["profileType"], "{name}");
        assert!(graph(&answer)["flamebearer"]["names"].to_string().contains(function), "{name}: {types:?}");
        for other in types {
            let asked = json!({"id": id(&answer), "profileType": other});
            assert_eq!(ask_json(&server, &method("Get"), &asked)["profileType"], *other, "{name}");
        }
    }
    assert_eq!(ask_json(&server, &method("List"), &json!({}))["profiles"].as_array().unwrap().len(), files.len());
    let sides = json!({"leftId": "", "rightId": ""});
    assert_eq!(error(&ask(&server, &method("Diff"), &sides)).1, "invalid_argument");
}

/// Scenario: requests that are wrong in one way each.
/// Guarantee: the code that Connect has for it, a message that names the field and the fault, and nothing is kept.
#[test]
fn wrong_requests_change_nothing() {
    let (_store, server) = Server::configured("[limits]\nmax_bytes = \"64KiB\"\nmax_adhoc_bytes = \"4KiB\"\n");
    let zeros = hotspan_formats::gzip(&vec![b'0'; 1 << 20]);
    // Incompressible, and larger than all that is kept.
    let noise: String = (0..300u64).map(|n| format!("{:016x} 1\n", n.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
    let uploads = [
        (json!({"name": "a", "profile": "!!!!"}), 400, "invalid_argument", "profile is not base64"),
        (json!({"name": "a", "profile": ""}), 400, "invalid_argument", "found nothing"),
        (json!({"name": "a", "profile": 7}), 400, "invalid_argument", "message"),
        (upload_of("a", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"), 400, "invalid_argument", "expected pprof, JFR"),
        (upload_of("a", &pprof(&[("main", 1)])[..40]), 400, "invalid_argument", "gzip"),
        (upload_of("a", b"{\"flamebearer\":{\"names\":[],\"levels\":[[1]]}}"), 400, "invalid_argument", "four numbers"),
        (upload_of("a", &zeros), 413, "resource_exhausted", "decompressed bytes"),
        (upload_of("a", noise.as_bytes()), 413, "resource_exhausted", "max_adhoc_bytes"),
        (upload_of("a", &[b'a'; 65 << 10]), 413, "resource_exhausted", "65536 bytes"),
        (
            json!({"name": "a", "profile": STANDARD.encode("a 1"), "maxNodes": -1}),
            400,
            "invalid_argument",
            "max_nodes is -1",
        ),
    ];
    for (message, status, code, said) in uploads {
        let answer = error(&ask(&server, &method("Upload"), &message));
        assert_eq!((answer.0, answer.1.as_str()), (status, code), "{said}: {}", answer.2);
        assert!(answer.2.contains(said), "{said}: {}", answer.2);
    }
    assert_eq!(ask_json(&server, &method("List"), &json!({})), json!({"profiles": []}));

    let kept = upload(&server, "../../../kept", &pprof(&[("main", 1)]));
    let space = upload(&server, "space", br#"{"flamebearer":{"names":["total"],"levels":[[0,1,1,0]]},"metadata":{"name":"inuse_space","units":"bytes"}}"#);
    let (kept, space) = (id(&kept), id(&space));
    let unknown = kept.replace("-kept", "-other");
    let questions = [
        ("Get", json!({"id": unknown}), 404, "not_found", unknown.as_str()),
        ("Get", json!({"id": "../kept"}), 400, "invalid_argument", "id: "),
        ("Get", json!({}), 400, "invalid_argument", "id: "),
        ("Get", json!({"id": kept, "profileType": "wall"}), 400, "invalid_argument", "samples, cpu"),
        ("Get", json!({"id": kept, "maxNodes": 1 << 30}), 400, "invalid_argument", "max_nodes"),
        ("Diff", json!({"leftId": kept, "rightId": unknown}), 404, "not_found", unknown.as_str()),
        ("Diff", json!({"leftId": kept}), 400, "invalid_argument", "right_id: "),
        ("Diff", json!({"leftId": kept, "rightId": space}), 400, "invalid_argument", "right_id has inuse_space"),
        ("Diff", json!({"leftId": kept, "rightId": kept, "profileType": "x"}), 400, "invalid_argument", "samples, cpu"),
    ];
    for (name, message, status, code, said) in questions {
        let answer = error(&ask(&server, &method(name), &message));
        assert_eq!((answer.0, answer.1.as_str()), (status, code), "{message}: {}", answer.2);
        assert!(answer.2.contains(said), "{message}: {}", answer.2);
    }
}

/// Scenario: two tenants of one server, which is killed and started again; then its store is checked.
/// Guarantee: each sees its own profiles alone, those are still there and the same, and the store is called sound.
#[test]
fn tenants_and_restarts() {
    let (store, mut server) = Server::configured("multi_tenancy = true\n");
    let as_tenant = |server: &Server, tenant: &str, name: &str, message: &Value| {
        let headers = [("content-type", "application/json"), ("x-scope-orgid", tenant)];
        request(&server.http, "POST", &method(name), &headers, message.to_string().as_bytes()).unwrap()
    };
    let of_shop = upload_of("shop.pb.gz", &pprof(&[("main;shop", 3)]));
    let uploaded: Value = serde_json::from_slice(&as_tenant(&server, "shop", "Upload", &of_shop).body).unwrap();
    // Names that begin alike are two tenants all the same.
    assert_eq!(as_tenant(&server, "shop2", "List", &json!({})).text(), r#"{"profiles":[]}"#);
    let asked = json!({"id": id(&uploaded)});
    let refused = error(&as_tenant(&server, "shop2", "Get", &asked));
    assert_eq!((refused.0, refused.1.as_str()), (404, "not_found"), "{}", refused.2);
    let both = json!({"leftId": id(&uploaded), "rightId": id(&uploaded)});
    assert_eq!(error(&as_tenant(&server, "shop2", "Diff", &both)).0, 404);
    assert_eq!(error(&ask(&server, &method("List"), &json!({}))).1, "unauthenticated");

    server.kill();
    let config = store.path().join("hotspan.toml");
    let mut server = Server::start_with(store.path(), &["--config", config.to_str().unwrap()]);
    server.wait_ready();
    let again: Value = serde_json::from_slice(&as_tenant(&server, "shop", "Get", &asked).body).unwrap();
    assert_eq!(again, uploaded);
    assert!(as_tenant(&server, "shop", "List", &json!({})).text().contains(id(&uploaded)));
    assert!(server.terminate().success());
    let check = Command::new(env!("CARGO_BIN_EXE_hotspan"))
        .args(["store", "check", "--json", "--store"])
        .arg(store.path())
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&check.stdout).unwrap();
    assert_eq!((&report["sound"], &report["orphans"]), (&json!(true), &json!([])), "{report}");
}
