//! Listeners: which ports are open, and what each of them serves.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use axum::Router;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::app::App;
use crate::connection::connection;
use crate::self_tracing::trace_request;
use crate::settings::Settings;
use crate::under_way::Requests;

/// How long connections may take to end that have no request under way.
const LAST_MOMENT: Duration = Duration::from_secs(1);

/// Where to listen: an address, or nowhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A host and a port; port 0 takes a free one.
    At(String),
    /// Do not listen.
    Off,
}

impl Address {
    /// A port of this machine that other machines can't reach.
    pub fn local(port: u16) -> Self {
        Self::At(format!("127.0.0.1:{port}"))
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "off" {
            return Ok(Self::Off);
        }
        let wrong = || format!("{text:?} is not an address; use host:port such as 127.0.0.1:4040, :4040, or off");
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        port.parse::<u16>().map_err(|_| wrong())?;
        // As in most servers, a bare port listens on every interface.
        Ok(Self::At(if host.is_empty() { format!("0.0.0.0:{port}") } else { text.to_owned() }))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(address) => out.write_str(address),
            Self::Off => out.write_str("off"),
        }
    }
}

/// What a listener serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Everything.
    Http,
    /// OTLP over gRPC.
    OtlpGrpc,
    /// OTLP over HTTP.
    OtlpHttp,
    /// Tempo's API.
    Tempo,
}

impl Role {
    /// The name under which its address is printed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::OtlpGrpc => "otlp-grpc",
            Self::OtlpHttp => "otlp-http",
            Self::Tempo => "tempo",
        }
    }

    fn router(self, app: Arc<App>) -> Router {
        match self {
            Self::Http => crate::api::everything(app),
            Self::OtlpGrpc | Self::OtlpHttp => crate::receive::otlp_alone(app),
            Self::Tempo => crate::api::tempo_alone(app),
        }
    }
}

/// A listener and the address it got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BoundListener {
    /// What it serves.
    pub role: Role,
    /// Where.
    pub address: SocketAddr,
}

/// All listeners of a server.
#[derive(Debug)]
pub struct Listeners {
    bound: Vec<BoundListener>,
    sockets: Vec<(Role, TcpListener)>,
}

impl Listeners {
    /// Opens all ports, or says which one can't be had.
    pub async fn bind(settings: &Settings) -> anyhow::Result<Self> {
        let wanted = [
            (Role::Http, &settings.http),
            (Role::OtlpGrpc, &settings.otlp_grpc),
            (Role::OtlpHttp, &settings.otlp_http),
            (Role::Tempo, &settings.tempo),
        ];
        let mut listeners = Self { bound: Vec::new(), sockets: Vec::new() };
        for (role, address) in wanted {
            let Address::At(address) = address else { continue };
            let name = role.name();
            let socket = TcpListener::bind(address).await.with_context(|| {
                format!("cannot listen on {address}; choose another address with --{name} ADDR, or --{name} off")
            })?;
            listeners.bound.push(BoundListener { role, address: socket.local_addr()? });
            listeners.sockets.push((role, socket));
        }
        Ok(listeners)
    }

    /// The addresses in use.
    pub fn bound(&self) -> &[BoundListener] {
        &self.bound
    }

    /// Answers whoever comes, also while the server ends, until it is told to close.
    pub(crate) fn serve(self, app: &Arc<App>) -> Serving {
        let mut serving = Serving::default();
        for (role, socket) in self.sockets {
            let mut router = role.router(Arc::clone(app));
            if app.request_gate.get().is_some() {
                router = router.layer(axum::middleware::from_fn_with_state(Arc::clone(app), trace_request));
            }
            let (close, cut_off) = (serving.close.clone(), serving.cut_off.child_token());
            let requests = serving.requests.clone();
            let router = crate::api::naming_methods(router);
            serving.sockets.spawn(serve_socket(socket, router, requests, app.settings.max_idle, close, cut_off));
        }
        serving
    }
}

/// Listeners that are being served.
#[derive(Debug, Default)]
pub(crate) struct Serving {
    requests: Requests,
    sockets: JoinSet<()>,
    close: CancellationToken,
    cut_off: CancellationToken,
}

impl Serving {
    /// Waits for the requests that began before the server was stopping, and cuts off those that take longer than `grace`.
    pub(crate) async fn finish_requests(&self, grace: Duration) {
        self.requests.complete();
        if tokio::time::timeout(grace, self.requests.are_over()).await.is_err() {
            let requests = self.requests.count();
            warn!(requests, "some requests did not finish in time and were cut off");
            self.close.cancel();
            self.cut_off.cancel();
        }
    }

    /// Closes the ports and the connections. From here on, whoever comes is refused.
    pub(crate) async fn close(mut self) -> anyhow::Result<()> {
        self.close.cancel();
        while let Some(finished) = self.sockets.join_next().await {
            finished?;
        }
        Ok(())
    }
}

async fn serve_socket(
    socket: TcpListener,
    router: Router,
    requests: Requests,
    max_idle: Duration,
    close: CancellationToken,
    cut_off: CancellationToken,
) {
    let graceful = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            () = close.cancelled() => break,
            accepted = socket.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                let connection = connection(stream, router.clone(), requests.clone(), max_idle);
                let connection = graceful.watch(connection);
                let cut_off = cut_off.clone();
                tokio::spawn(async move {
                    if let Some(Err(error)) = cut_off.run_until_cancelled_owned(connection).await {
                        debug!(%peer, %error, "connection ended");
                    }
                });
            }
            Err(error) => {
                // Out of file descriptors, mostly: wait for some to come free instead of spinning.
                warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
    drop(socket);
    // What is left are answers on their way and connections without a request: half a head, or a peer that doesn't answer.
    let _ = tokio::time::timeout(LAST_MOMENT, graceful.shutdown()).await;
    cut_off.cancel();
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use http::{Request, header};
    use http_body_util::BodyExt as _;
    use tower::ServiceExt as _;

    use super::*;

    /// Scenario: every way to send and to ask, before the store is open and while the server ends.
    /// Guarantee: each is told to come back, senders by gRPC in its own words, and nobody gets a 500.
    #[tokio::test]
    async fn without_a_store_everybody_is_told_to_retry() {
        let requests = [
            ("POST", "/v1/traces", "application/x-protobuf", ""),
            ("POST", "/v1development/profiles", "application/json", "{}"),
            ("POST", "/ingest?name=shop&format=pprof", "application/octet-stream", "x"),
            ("POST", "/push.v1.PusherService/Push", "application/json", "{\"series\":[]}"),
            ("POST", "/api/v1/profiles?service=shop", "application/octet-stream", "x"),
            ("POST", "/opentelemetry.proto.collector.trace.v1.TraceService/Export", "application/grpc", "\0\0\0\0\0"),
            ("GET", "/api/search?q=%7B%7D", "", ""),
            ("GET", "/api/v1/query?query=shop.cpu", "", ""),
            ("POST", "/querier.v1.QuerierService/LabelNames", "application/json", "{}"),
            ("POST", "/api/v1/sql", "application/json", "{\"query\":\"SELECT 1\"}"),
            ("GET", "/ready", "", ""),
        ];
        for is_stopping in [false, true] {
            let app = Arc::new(App::new(Settings::default()).unwrap());
            if is_stopping {
                app.begin_stop();
            }
            for (method, path, content_type, body) in requests {
                let request = Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, content_type);
                let answer = Role::Http.router(Arc::clone(&app)).oneshot(request.body(Body::from(body)).unwrap()).await;
                let (head, body) = answer.unwrap().into_parts();
                let body = body.collect().await.unwrap();
                let told = body.trailers().and_then(|trailers| trailers.get("grpc-status")).cloned();
                let is_retryable = match content_type {
                    "application/grpc" => told.is_some_and(|code| code == "14"),
                    _ => head.status == http::StatusCode::SERVICE_UNAVAILABLE,
                };
                assert!(is_retryable, "{path}: {head:?}");
            }
        }
    }
}
