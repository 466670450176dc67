//! One connection: HTTP/1.1 or HTTP/2 without TLS, whichever the client speaks.

use std::convert::Infallible;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulConnection;
use tokio::net::TcpStream;
use tower::ServiceExt;

use crate::request_stream::RequestStream;
use crate::under_way::{ConnectionRequests, Requests};

/// How long a connection of HTTP/1 is kept between two requests: longer than the pools of clients keep theirs, so that none
/// sends into a connection that is just being closed. A head may take no longer either, however it trickles.
const KEPT_BETWEEN_REQUESTS: Duration = Duration::from_secs(600);
/// The least time that a peer of HTTP/2 has to show that it is there.
const LEAST_PATIENCE: Duration = Duration::from_secs(5);

/// Serves a connection. `max_idle` is how long its peer may be silent in the head of a request.
pub(crate) fn connection(
    stream: TcpStream,
    router: Router,
    requests: Requests,
    max_idle: Duration,
) -> impl GracefulConnection<Error = Box<dyn std::error::Error + Send + Sync>> + Send {
    // Answers are small and awaited: do not hold them back to fill a packet.
    let _ = stream.set_nodelay(true);
    let requests = ConnectionRequests::new(requests);
    let stream = RequestStream::new(stream, requests.clone(), max_idle);
    let service = service_fn(move |request: Request<Incoming>| {
        let under_way = requests.begin();
        let answer = router.clone().oneshot(request.map(Body::new));
        async move { Ok::<_, Infallible>(under_way.until_sent(answer.await?)) }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http2()
        // gRPC senders push megabytes at a time: the defaults would make them wait for window updates.
        .initial_connection_window_size(4 << 20)
        .initial_stream_window_size(1 << 20)
        .max_concurrent_streams(1024)
        .max_header_list_size(64 << 10)
        // A peer that is there answers a ping, however long it has nothing to ask; one in the middle of a head can't.
        .timer(TokioTimer::new())
        .keep_alive_interval(max_idle)
        .keep_alive_timeout(max_idle.max(LEAST_PATIENCE));
    builder
        .http1()
        .max_buf_size(64 << 10)
        .timer(TokioTimer::new())
        .header_read_timeout(max_idle.max(KEPT_BETWEEN_REQUESTS));
    builder.serve_connection_with_upgrades(TokioIo::new(stream), service).into_owned()
}
