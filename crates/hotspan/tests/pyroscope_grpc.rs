//! Push and the querier over native gRPC, as SDKs and tools speak it that know no HTTP/1.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use prost::Message;
use support::Server;
use support::grpc::call;
use support::push_messages::{Pair, PushRequest, PushSeries, RawSample};
use support::querier::CPU;
use tonic::codec::CompressionEncoding::{Gzip, Zstd};
use tonic::{Code, Status};

#[derive(Clone, Copy, PartialEq, Message)]
struct Empty {}

/// `SelectMergeStacktracesRequest`.
#[derive(Clone, PartialEq, Message)]
struct Selection {
    #[prost(string, tag = "1")]
    profile_type_id: String,
    #[prost(string, tag = "2")]
    label_selector: String,
    #[prost(int64, tag = "3")]
    start: i64,
    #[prost(int64, tag = "4")]
    end: i64,
    #[prost(message, optional, tag = "7")]
    stack_trace_selector: Option<StackTraceSelector>,
}

#[derive(Clone, PartialEq, Message)]
struct StackTraceSelector {
    #[prost(message, optional, tag = "3")]
    frame_filter: Option<FrameFilter>,
}

#[derive(Clone, PartialEq, Message)]
struct FrameFilter {
    #[prost(string, repeated, tag = "1")]
    include_function_names: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    exclude_function_names: Vec<String>,
    #[prost(string, repeated, tag = "3")]
    include_function_name_regexes: Vec<String>,
    #[prost(string, repeated, tag = "4")]
    exclude_function_name_regexes: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
struct Stacktraces {
    #[prost(message, optional, tag = "1")]
    graph: Option<FlameGraph>,
}

#[derive(Clone, PartialEq, Message)]
struct FlameGraph {
    #[prost(string, repeated, tag = "1")]
    names: Vec<String>,
    #[prost(int64, tag = "3")]
    total: i64,
}

#[derive(Clone, PartialEq, Message)]
struct SeriesQuestion {
    #[prost(string, tag = "1")]
    profile_type_id: String,
    #[prost(string, tag = "2")]
    label_selector: String,
    #[prost(int64, tag = "3")]
    start: i64,
    #[prost(int64, tag = "4")]
    end: i64,
    #[prost(double, tag = "6")]
    step: f64,
}

#[derive(Clone, PartialEq, Message)]
struct SeriesAnswer {
    #[prost(message, repeated, tag = "1")]
    series: Vec<OneSeries>,
}

#[derive(Clone, PartialEq, Message)]
struct OneSeries {
    #[prost(message, repeated, tag = "2")]
    points: Vec<Point>,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct Point {
    #[prost(double, tag = "1")]
    value: f64,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct TimeRange {
    #[prost(int64, tag = "1")]
    start: i64,
    #[prost(int64, tag = "2")]
    end: i64,
}

/// A type begins with its id and its name.
#[derive(Clone, PartialEq, Message)]
struct ProfileTypes {
    #[prost(message, repeated, tag = "1")]
    types: Vec<Pair>,
}

#[derive(Clone, PartialEq, Message)]
struct LabelValuesRequest {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(int64, tag = "3")]
    start: i64,
    #[prost(int64, tag = "4")]
    end: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Names {
    #[prost(string, repeated, tag = "1")]
    names: Vec<String>,
}

const PUSH: &str = "/push.v1.PusherService/Push";
const FOREVER: i64 = 4_102_444_800_000;

fn querier(method: &str) -> String {
    format!("/querier.v1.QuerierService/{method}")
}

fn pushed(service: &str, raw_profile: Vec<u8>) -> PushRequest {
    let pair = |name: &str, value: &str| Pair { name: name.to_owned(), value: value.to_owned() };
    let labels = vec![pair("service_name", service), pair("__name__", "process_cpu")];
    PushRequest {
        series: vec![PushSeries { labels, samples: vec![RawSample { raw_profile, ..RawSample::default() }] }],
    }
}

fn go_profile() -> Vec<u8> {
    std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../hotspan-formats/tests/fixtures/go-cpu.pb.gz")).unwrap()
}

fn selection(service: &str) -> Selection {
    Selection {
        profile_type_id: CPU.to_owned(),
        label_selector: format!("{{service_name={service:?}}}"),
        start: 1,
        end: FOREVER,
        stack_trace_selector: None,
    }
}

/// Scenario: a real gRPC client pushes a profile plain, with gzip and with zstd, and asks for it again.
/// Guarantee: each is taken, and types, labels, values over time and flame graphs of it are told, filtered where asked.
#[tokio::test(flavor = "multi_thread")]
async fn push_and_ask() {
    let (_store, server) = Server::fresh();
    let address = server.address("http").to_owned();
    let mut totals = Vec::new();
    for (service, encoding) in [("plain", None), ("gzip", Some(Gzip)), ("zstd", Some(Zstd))] {
        let Empty {} = call(&address, PUSH, &pushed(service, go_profile()), encoding, None).await.unwrap();
        let graph: Stacktraces =
            call(&address, &querier("SelectMergeStacktraces"), &selection(service), encoding, None).await.unwrap();
        let graph = graph.graph.unwrap();
        assert!(graph.names.iter().any(|name| name == "main.spin"), "{service}: {:?}", graph.names);
        totals.push(graph.total);
    }
    assert!(totals[0] > 0 && totals.iter().all(|total| *total == totals[0]), "{totals:?}");

    let whenever = TimeRange { start: 1, end: FOREVER };
    let types: ProfileTypes = call(&address, &querier("ProfileTypes"), &whenever, None, None).await.unwrap();
    assert!(types.types.iter().any(|one| one.name == CPU && one.value == "process_cpu"), "{types:?}");
    let question = LabelValuesRequest { name: "service_name".to_owned(), start: 1, end: FOREVER };
    let services: Names = call(&address, &querier("LabelValues"), &question, None, None).await.unwrap();
    assert_eq!(services.names, ["gzip", "plain", "zstd"]);

    let Selection { profile_type_id, label_selector, start, end, .. } = selection("plain");
    let question = SeriesQuestion { profile_type_id, label_selector, start, end, step: 3600.0 };
    let series: SeriesAnswer = call(&address, &querier("SelectSeries"), &question, None, None).await.unwrap();
    let sum: f64 = series.series.iter().flat_map(|one| &one.points).map(|point| point.value).sum();
    assert_eq!(sum as i64, totals[0]);

    let filtered = |frame_filter: FrameFilter| {
        let stack_trace_selector = Some(StackTraceSelector { frame_filter: Some(frame_filter) });
        let (address, question) = (address.clone(), Selection { stack_trace_selector, ..selection("plain") });
        async move {
            let graph: Stacktraces =
                call(&address, &querier("SelectMergeStacktraces"), &question, None, None).await.unwrap();
            graph.graph.unwrap().total
        }
    };
    let spin = vec!["main.spin".to_owned()];
    let with = filtered(FrameFilter { include_function_names: spin.clone(), ..FrameFilter::default() }).await;
    let without = filtered(FrameFilter { exclude_function_names: spin, ..FrameFilter::default() }).await;
    assert!(with > 0 && with + without == totals[0], "{with} and {without} of {}", totals[0]);
    let pattern = vec![r"^main\.sp".to_owned()];
    let matching =
        filtered(FrameFilter { include_function_name_regexes: pattern.clone(), ..FrameFilter::default() }).await;
    let others = filtered(FrameFilter { exclude_function_name_regexes: pattern, ..FrameFilter::default() }).await;
    assert_eq!((matching, others), (with, without));
}

/// Scenario: calls that are wrong: a profile that is none, a selector that can't be read, a method that is not there, and
/// a missing or foreign tenant.
/// Guarantee: the code that gRPC clients act on with what is wrong in words; nothing stored, nothing shown.
#[tokio::test(flavor = "multi_thread")]
async fn errors_and_tenants() {
    let (_store, server) = Server::configured("multi_tenancy = true\n");
    let address = server.address("http").to_owned();
    let graph_of = |tenant: Option<&'static str>, question: Selection| {
        let address = address.clone();
        async move { call::<_, Stacktraces>(&address, &querier("SelectMergeStacktraces"), &question, None, tenant).await }
    };
    let refused = |error: Status, code: Code, said: &str| {
        assert_eq!(error.code(), code, "{error}");
        assert!(error.message().contains(said), "{error}");
    };
    let push = |tenant: Option<&'static str>, request: PushRequest| {
        let address = address.clone();
        async move { call::<_, Empty>(&address, PUSH, &request, None, tenant).await }
    };
    let broken = push(Some("a"), pushed("shop", b"no profile".to_vec())).await.unwrap_err();
    refused(broken, Code::InvalidArgument, "series[0]");
    refused(push(None, pushed("shop", go_profile())).await.unwrap_err(), Code::Unauthenticated, "X-Scope-OrgID");
    push(Some("a"), pushed("shop", go_profile())).await.unwrap();

    let total = |answer: Result<Stacktraces, Status>| answer.unwrap().graph.unwrap_or_default().total;
    assert!(total(graph_of(Some("a"), selection("shop")).await) > 0);
    assert_eq!(total(graph_of(Some("b"), selection("shop")).await), 0);
    refused(graph_of(None, selection("shop")).await.unwrap_err(), Code::Unauthenticated, "X-Scope-OrgID");

    let wrong = Selection { label_selector: "{a=".to_owned(), ..selection("shop") };
    refused(graph_of(Some("a"), wrong).await.unwrap_err(), Code::InvalidArgument, "character");
    let bracket = vec!["[".to_owned()];
    let frame_filter = FrameFilter { include_function_name_regexes: bracket, ..FrameFilter::default() };
    let stack_trace_selector = Some(StackTraceSelector { frame_filter: Some(frame_filter) });
    let wrong = Selection { stack_trace_selector, ..selection("shop") };
    refused(graph_of(Some("a"), wrong).await.unwrap_err(), Code::InvalidArgument, "include_function_name_regexes");
    let nowhere = call::<_, Empty>(&address, &querier("SelectNothing"), &Empty {}, None, Some("a")).await;
    refused(nowhere.unwrap_err(), Code::Unimplemented, "SelectNothing");
}
