//! Profiles without samples: an idle service is as idle as it was, by whichever door its profiles come.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[allow(dead_code, reason = "files are only written here")]
#[path = "support/pprof_file.rs"]
mod pprof_file;
mod support;

use pprof_file::{PprofFile, ValueType};
use prost::Message;
use support::push_messages::{Pair, PushRequest, PushSeries, RawSample};
use support::querier::ingest_stacks;
use support::{Server, now_nanos, profile_request};

const SECOND: u64 = 1_000_000_000;

/// What a CPU profiler writes when nothing ran in ten seconds.
fn empty_pprof(second: u64) -> Vec<u8> {
    let mut file = PprofFile { strings: vec![String::new()], ..PprofFile::default() };
    let mut value_type = |kind: &str, unit: &str| ValueType { kind: file.text(kind), unit: file.text(unit) };
    let (samples, cpu) = (value_type("samples", "count"), value_type("cpu", "nanoseconds"));
    let (time, duration) = ((second * SECOND) as i64, 10 * SECOND as i64);
    PprofFile { sample_types: vec![samples, cpu], period_type: Some(cpu), period: 10_000_000, time, duration, ..file }
        .encode_to_vec()
}

fn taken(server: &Server, path: &str, content_type: &str, body: &[u8]) {
    let answer = server.post(path, content_type, body).unwrap();
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
}

/// Scenario: a second of CPU time in ten, and then nothing for ten seconds at a time: in pprof on `/ingest`, by Push and as a
/// file, as stacks of which there are none, and over OTLP; another version of it is busy, and another service idle.
/// Guarantee: each of them counts with its seconds, once, under its own labels; what is compared by second is what was used.
#[test]
fn idle_profiles_count_by_every_door() {
    let (_store, server) = Server::fresh();
    let start = now_nanos() / SECOND - 600;
    ingest_stacks(&server, "shop{version=1}", start, "main;work 1000000000");
    ingest_stacks(&server, "shop{version=2}", start, "main;work 1000000000");
    let raw = format!("/ingest?name=shop%7Bversion%3D1%7D&format=pprof&from={}&until={}", start + 10, start + 20);
    // Retries count nothing twice.
    for _ in 0..2 {
        taken(&server, &raw, "application/octet-stream", &empty_pprof(start + 10));
    }
    let pair = |name: &str, value: &str| Pair { name: name.to_owned(), value: value.to_owned() };
    let labels = vec![pair("service_name", "shop"), pair("__name__", "process_cpu"), pair("version", "1")];
    let samples = vec![RawSample { raw_profile: empty_pprof(start + 20), id: "1".to_owned() }];
    let push = PushRequest { series: vec![PushSeries { labels, samples }] };
    taken(&server, "/push.v1.PusherService/Push", "application/proto", &push.encode_to_vec());
    let file = "/api/v1/profiles?service=shop&label=version%3D1";
    taken(&server, file, "application/octet-stream", &empty_pprof(start + 30));
    ingest_stacks(&server, "shop{version=1}", start + 40, "");
    ingest_stacks(&server, "stock{version=1}", start + 40, "");
    let mut otlp = profile_request("shop", [7; 16], &[]);
    let profile = &mut otlp.resource_profiles[0].scope_profiles[0].profiles[0];
    (profile.time_unix_nano, profile.duration_nano) = ((start + 50) * SECOND, 10 * SECOND);
    let resource = otlp.resource_profiles[0].resource.as_mut().unwrap();
    resource.attributes.push(support::text_attribute("version", "1"));
    taken(&server, "/v1development/profiles", "application/x-protobuf", &otlp.encode_to_vec());

    let sides = "baseline=shop.cpu{version=\"1\"}&comparison=shop.cpu{version=\"2\"}&from=now-1h";
    let diff = |more: &str| {
        let answer = server.get_json(&format!("/api/v1/diff?{sides}{more}"));
        ["baseline", "comparison"].map(|side| answer[side].clone())
    };
    let [idle, busy] = diff("&per=second");
    assert_eq!((idle["seconds"].as_f64(), busy["seconds"].as_f64()), (Some(60.0), Some(10.0)), "{idle} {busy}");
    assert_eq!(idle["per_unit"].as_f64().map(|rate| rate.round()), Some(16_666_667.0), "{idle}");
    let [idle, busy] = diff("&per=profile");
    assert_eq!((idle["profiles"].as_f64(), busy["profiles"].as_f64()), (Some(6.0), Some(1.0)), "{idle} {busy}");
}
