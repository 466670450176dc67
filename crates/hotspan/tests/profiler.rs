//! The profiler for Rust services against the real server.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hotspan_profiler::{Compression, Ctx, Destination, Profiler};
use support::Server;

/// There is one profiler per process.
fn one_at_a_time() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

#[inline(never)]
fn sum_of_squares(count: u64) -> u64 {
    (0..count).fold(0, |sum: u64, number| std::hint::black_box(sum.wrapping_add(number.wrapping_mul(number))))
}

/// Works inside a span until some samples are certain.
fn work(profiler: &Profiler, request: &Ctx) {
    let _inside = request.attach();
    while profiler.status().sampled_cpu < Duration::from_millis(300) {
        sum_of_squares(200_000);
    }
}

/// Scenario: a service sends its profiles by gRPC and by HTTP, with gzip and with zstd, and as Pyroscope does.
/// Guarantee: the server shows the function for each of them; by OTLP, also for the span alone.
#[test]
fn every_way_of_sending_arrives() {
    let _turn = one_at_a_time();
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    server.wait_ready();
    let grpc = format!("http://{}", server.address("otlp-grpc"));
    let http = format!("http://{}", server.address("otlp-http"));
    let pyroscope = format!("http://{}", server.http);
    let headers = Vec::new;
    let by_grpc = |compression| Destination::OtlpGrpc { endpoint: grpc.clone(), headers: headers(), compression };
    let by_http = |compression| Destination::Otlp { endpoint: http.clone(), headers: headers(), compression };
    let ways = [
        ("by-grpc-gzip", by_grpc(Compression::Gzip)),
        ("by-grpc-zstd", by_grpc(Compression::Zstd)),
        ("by-http-gzip", by_http(Compression::Gzip)),
        ("by-http-zstd", by_http(Compression::Zstd)),
        ("by-push", Destination::Pyroscope { endpoint: pyroscope, headers: headers() }),
    ];
    for (index, (service, destination)) in ways.into_iter().enumerate() {
        let span_id = [index as u8 + 1; 8];
        let profiler = Profiler::builder(service).ignore_environment().destination(destination).start().unwrap();
        work(&profiler, &Ctx::for_request([7; 16], span_id));
        profiler.flush();
        // Ending it waits until the last upload is acknowledged, and what is acknowledged can be asked for.
        drop(profiler);
        let names = |path: &str| server.get_json(path)["flamebearer"]["names"].to_string();
        let all = names(&format!("/api/v1/profile?service={service}&type=cpu"));
        assert!(all.contains("sum_of_squares"), "{service}: {all}");
        if service != "by-push" {
            let span: String = span_id.iter().map(|byte| format!("{byte:02x}")).collect();
            let of_span = names(&format!("/api/v1/profile?span_id={span}&type=cpu"));
            assert!(of_span.contains("sum_of_squares"), "{service}: {of_span}");
        }
    }
}
