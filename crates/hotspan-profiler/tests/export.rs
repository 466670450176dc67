//! What leaves the process is valid, complete, and never waited for.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

mod support;

use hotspan_profiler::{Ctx, Destination, Profiler, Redaction, Status, Symbols};
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use prost::Message;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::time::{Duration, Instant};
use support::{burn, decode, one_at_a_time};

/// Accepts uploads until told to stop; returns the heads and bodies.
fn collect_uploads(listener: TcpListener, count: usize) -> std::thread::JoinHandle<Vec<(String, Vec<u8>)>> {
    std::thread::spawn(move || {
        (0..count)
            .map(|_| {
                let mut reader = BufReader::new(listener.accept().unwrap().0);
                let mut head = String::new();
                while reader.read_line(&mut head).unwrap() > 2 {}
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
                let mut body = vec![0; length.parse().unwrap()];
                reader.read_exact(&mut body).unwrap();
                reader.get_mut().write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
                (head, body)
            })
            .collect()
    })
}

fn gunzip(bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(bytes).read_to_end(&mut plain).unwrap();
    plain
}

#[inline(never)]
fn exported_work() {
    burn(500);
}

/// Scenario: a profile goes to a server over HTTP and is decoded with the protocol's own types.
/// Guarantee: every index is in range, element zero of each table is null, values match times, ids and names are there.
#[test]
fn uploads_are_valid_otlp() {
    let _turn = one_at_a_time();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let server = collect_uploads(listener, 1);
    let profiler = Profiler::builder("orders")
        .ignore_environment()
        .adaptive(support::FIXED_RATE)
        .endpoint(endpoint)
        .tag("region", "eu")
        .start()
        .unwrap();
    {
        let _inside = Ctx::for_request([5; 16], [6; 8]).attach();
        exported_work();
    }
    drop(profiler);
    let (head, body) = server.join().unwrap().remove(0);
    assert!(head.starts_with("POST /v1development/profiles HTTP/1.1"), "{head}");
    let request = ExportProfilesServiceRequest::decode(gunzip(&body).as_slice()).unwrap();
    let dictionary = request.dictionary.as_ref().unwrap();
    assert_eq!(dictionary.string_table[0], "");
    assert_eq!(dictionary.link_table[0].span_id, [0; 8]);
    assert!(dictionary.stack_table[0].location_indices.is_empty());
    let in_range = |index: i32, length: usize| usize::try_from(index).is_ok_and(|index| index < length);
    for location in &dictionary.location_table {
        assert!(in_range(location.mapping_index, dictionary.mapping_table.len()));
        assert!(location.lines.iter().all(|line| in_range(line.function_index, dictionary.function_table.len())));
        assert!(location.attribute_indices.iter().all(|index| in_range(*index, dictionary.attribute_table.len())));
    }
    for function in &dictionary.function_table {
        assert!(in_range(function.name_strindex, dictionary.string_table.len()));
        assert!(in_range(function.filename_strindex, dictionary.string_table.len()));
    }
    assert!(
        dictionary
            .stack_table
            .iter()
            .flat_map(|s| &s.location_indices)
            .all(|i| in_range(*i, dictionary.location_table.len()))
    );
    let keys = |attribute: i32| {
        dictionary.string_table[dictionary.attribute_table[attribute as usize].key_strindex as usize].as_str()
    };
    let program = dictionary
        .mapping_table
        .iter()
        .find(|mapping| dictionary.string_table[mapping.filename_strindex as usize].contains("/export-"));
    let ids: Vec<&str> = program.unwrap().attribute_indices.iter().map(|index| keys(*index)).collect();
    assert!(ids.contains(&"process.executable.build_id.htlhash"), "{ids:?}");
    let resource = &request.resource_profiles[0].resource.as_ref().unwrap().attributes;
    let has = |key: &str, value: &str| {
        resource.iter().any(|attribute| {
            attribute.key == key
                && attribute.value.as_ref().unwrap().value == Some(Value::StringValue(value.to_owned()))
        })
    };
    assert!(has("service.name", "orders") && has("region", "eu"));
    let profile = &request.resource_profiles[0].scope_profiles[0].profiles[0];
    assert_eq!((profile.profile_id.len(), profile.period), (16, 10_000_000));
    assert!(profile.time_unix_nano > 0 && profile.duration_nano > 0);
    for sample in &profile.samples {
        assert!(in_range(sample.link_index, dictionary.link_table.len()));
        assert_eq!(sample.values.len(), sample.timestamps_unix_nano.len());
    }
    let seen = decode(&gunzip(&body));
    let linked: Vec<_> = seen.iter().filter(|sample| sample.mentions("exported_work")).collect();
    // By weight: a starved thread is asked more seldom, and each sample then stands for more.
    let seconds = support::total(linked.iter().copied(), "cpu") / 1e9;
    assert!((0.35..0.65).contains(&seconds), "{seconds} s of 0.5 in {} samples", linked.len());
    assert!(linked.iter().all(|sample| sample.span_id == [6; 8] && sample.trace_id == [5; 16]));
}

/// Scenario: names and tags match redaction patterns, and symbols are switched off.
/// Guarantee: nothing that matches leaves the process, in any table; without symbols only addresses do.
#[test]
fn secrets_stay_inside() {
    let _turn = one_at_a_time();
    for symbols in [Symbols::Lines, Symbols::Names, Symbols::Off] {
        let (sender, uploads) = std::sync::mpsc::channel();
        let profiler = Profiler::builder("orders")
            .ignore_environment()
            .tag("owner", "agent-x")
            .symbols(symbols)
            .redact(Redaction::matching(["*exported_work*", "agent-*"]))
            .on_upload(move |bytes| sender.send(bytes.to_vec()).unwrap())
            .start()
            .unwrap();
        exported_work();
        drop(profiler);
        let upload = uploads.recv().unwrap();
        let contains = |needle: &[u8]| upload.windows(needle.len()).any(|window| window == needle);
        assert!(!contains(b"exported_work") && !contains(b"agent-x"), "{symbols:?}");
        assert!(contains(b"[redacted]"));
        assert_eq!(contains(b"::burn"), symbols != Symbols::Off);
    }
}

/// Scenario: the server does not answer at all while the service works and then shuts down.
/// Guarantee: work is not delayed, shutting down takes seconds at most, and the loss is counted.
#[test]
fn a_dead_server_blocks_nobody() {
    let _turn = one_at_a_time();
    // Bound but never accepted from: connections succeed and then hang.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let profiler = Profiler::builder("orders")
        .ignore_environment()
        .adaptive(support::FIXED_RATE)
        .endpoint(endpoint)
        .upload_interval(Duration::from_millis(100))
        .configure(|config| config.upload_timeout = Duration::from_millis(700))
        .start()
        .unwrap();
    let before = support::thread_cpu_ns();
    burn(1_500);
    assert!(support::thread_cpu_ns() - before < 1_600_000_000);
    profiler.flush();
    // Symbols are read before the first upload, which takes its time on a busy machine; then the upload times out.
    let began = Instant::now();
    let counted = |status: &Status| status.last_error.is_some() && status.dropped_uploads > 0;
    while !counted(&profiler.status()) && began.elapsed() < Duration::from_secs(30) {
        burn(50);
    }
    let status = profiler.status();
    assert!(status.delivered_uploads == 0 && counted(&status), "{status:?}");
    let began = Instant::now();
    drop(profiler);
    assert!(began.elapsed() < Duration::from_secs(5));
}

/// Scenario: the profile grows over its size limit long before the next upload is due.
/// Guarantee: it is sent early, by itself, and what follows begins anew.
#[test]
fn a_large_profile_is_sent_early() {
    let _turn = one_at_a_time();
    let (sender, uploads) = std::sync::mpsc::channel();
    let profiler = Profiler::builder("orders")
        .ignore_environment()
        .adaptive(support::FIXED_RATE)
        .upload_interval(Duration::from_secs(3_600))
        .configure(|config| config.max_profile_size = 1_000)
        .on_upload(move |bytes| sender.send(bytes.to_vec()).unwrap())
        .start()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut arrived = Vec::new();
    while arrived.len() < 2 {
        assert!(Instant::now() < deadline, "{:?}", profiler.status());
        exported_work();
        arrived.extend(uploads.try_iter());
    }
    assert!(arrived.iter().all(|upload| decode(upload).iter().any(|sample| sample.mentions("exported_work"))));
    drop(profiler);
}

/// Scenario: a Pyroscope server is the destination.
/// Guarantee: it receives a push request whose labels and gzipped pprof decode, with the samples' spans as labels.
#[test]
fn pyroscope_receives_pprof() {
    #[derive(Clone, PartialEq, Message)]
    struct Push {
        #[prost(message, repeated, tag = "1")]
        series: Vec<Series>,
    }
    #[derive(Clone, PartialEq, Message)]
    struct Series {
        #[prost(message, repeated, tag = "1")]
        labels: Vec<Label>,
        #[prost(message, repeated, tag = "2")]
        samples: Vec<RawSample>,
    }
    #[derive(Clone, PartialEq, Message)]
    struct Label {
        #[prost(string, tag = "1")]
        name: String,
        #[prost(string, tag = "2")]
        value: String,
    }
    #[derive(Clone, PartialEq, Message)]
    struct RawSample {
        #[prost(bytes = "vec", tag = "1")]
        profile: Vec<u8>,
    }
    #[derive(Clone, PartialEq, Message)]
    struct Pprof {
        #[prost(message, repeated, tag = "2")]
        samples: Vec<PprofSample>,
        #[prost(string, repeated, tag = "6")]
        strings: Vec<String>,
    }
    #[derive(Clone, PartialEq, Message)]
    struct PprofSample {
        #[prost(uint64, repeated, tag = "1")]
        locations: Vec<u64>,
        #[prost(int64, repeated, tag = "2")]
        values: Vec<i64>,
    }

    let _turn = one_at_a_time();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let server = collect_uploads(listener, 1);
    let destination = Destination::Pyroscope { endpoint, headers: vec![("x-scope-orgid".into(), "t".into())] };
    let profiler = Profiler::builder("orders")
        .ignore_environment()
        .adaptive(support::FIXED_RATE)
        .destination(destination)
        .start()
        .unwrap();
    {
        let _inside = Ctx::for_request([5; 16], [6; 8]).attach();
        exported_work();
    }
    drop(profiler);
    let (head, body) = server.join().unwrap().remove(0);
    assert!(head.starts_with("POST /push.v1.PusherService/Push HTTP/1.1"), "{head}");
    let push = Push::decode(body.as_slice()).unwrap();
    let label =
        |name: &str| push.series[0].labels.iter().find(|label| label.name == name).map(|label| label.value.as_str());
    assert_eq!((label("__name__"), label("service_name")), (Some("process_cpu"), Some("orders")));
    let pprof = Pprof::decode(gunzip(&push.series[0].samples[0].profile).as_slice()).unwrap();
    let total: i64 = pprof.samples.iter().flat_map(|sample| &sample.values).sum();
    assert!(total > 300_000_000, "{total}");
    assert!(pprof.strings.iter().any(|text| text.contains("exported_work")));
    assert!(pprof.strings.contains(&"0606060606060606".to_owned()));
}
