//! Uploads over TLS and over gRPC, against servers that speak the real protocols.
#![cfg(feature = "grpc")]
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use hotspan_profiler::{Compression, Destination};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, LazyLock};
use std::thread::JoinHandle;
use std::time::Duration;
use support::{Recording, burn, one_at_a_time};

/// A certificate for localhost that this process trusts, and how to serve it.
static TRUSTED: LazyLock<Arc<rustls::ServerConfig>> = LazyLock::new(|| {
    let (config, pem) = certificate_of_localhost();
    let file = std::env::temp_dir().join(format!("hotspan-profiler-ca-{}.pem", std::process::id()));
    std::fs::write(&file, pem).unwrap();
    // SAFETY: set once, while the turn of `one_at_a_time` is held and no profiler reads the environment.
    unsafe { std::env::set_var("OTEL_EXPORTER_OTLP_CERTIFICATE", file) };
    config
});

fn certificate_of_localhost() -> (Arc<rustls::ServerConfig>, String) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let mut config = config.with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key).unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    (Arc::new(config), made.cert.pem())
}

/// Serves HTTP requests over TLS until the test ends, and hands on their bodies.
fn serve_https(config: Arc<rustls::ServerConfig>) -> (u16, Receiver<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (bodies, received) = channel();
    std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            if let Some(body) = serve_one(Arc::clone(&config), stream)
                && bodies.send(body).is_err()
            {
                return;
            }
        }
    });
    (port, received)
}

/// The body of one request; nothing if the client does not trust the certificate.
fn serve_one(config: Arc<rustls::ServerConfig>, stream: TcpStream) -> Option<Vec<u8>> {
    let session = rustls::ServerConnection::new(config).unwrap();
    let mut reader = BufReader::new(rustls::StreamOwned::new(session, stream));
    let mut head = String::new();
    while reader.read_line(&mut head).ok()? > 2 {}
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?.parse().ok()?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    reader.get_mut().write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n").ok()?;
    reader.get_mut().flush().ok()?;
    Some(body)
}

/// What a gRPC server saw: the encoding and the framed message.
type Call = (String, Vec<u8>);

/// Serves one gRPC call, over TLS if there is a configuration, and answers with a status.
fn serve_grpc(tls: Option<Arc<rustls::ServerConfig>>, status: &'static str) -> (SocketAddr, JoinHandle<Call>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serving = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            listener.set_nonblocking(true).unwrap();
            let stream = tokio::net::TcpListener::from_std(listener).unwrap().accept().await.unwrap().0;
            match tls {
                Some(config) => {
                    let stream = tokio_rustls::TlsAcceptor::from(config).accept(stream).await.unwrap();
                    answer_call(stream, status).await
                }
                None => answer_call(stream, status).await,
            }
        })
    });
    (address, serving)
}

async fn answer_call(stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin, status: &'static str) -> Call {
    let mut connection = h2::server::handshake(stream).await.unwrap();
    let (request, mut respond) = connection.accept().await.unwrap().unwrap();
    let expected = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export";
    assert_eq!(request.uri().path(), expected);
    let encoding = request.headers().get("grpc-encoding").map_or("", |value| value.to_str().unwrap()).to_owned();
    let mut body = request.into_body();
    let mut framed = Vec::new();
    let reading = async {
        while let Some(chunk) = body.data().await {
            let chunk = chunk.unwrap();
            body.flow_control().release_capacity(chunk.len()).unwrap();
            framed.extend_from_slice(&chunk);
        }
        let mut answer = respond.send_response(http::Response::new(()), false).unwrap();
        answer.send_data(bytes::Bytes::from_static(&[0, 0, 0, 0, 0]), false).unwrap();
        let mut trailers = http::HeaderMap::new();
        trailers.insert("grpc-status", http::HeaderValue::from_static(status));
        answer.send_trailers(trailers).unwrap();
    };
    // The connection has to be driven while the request is read, and until the client has gone.
    tokio::join!(reading, async { while connection.accept().await.is_some() {} });
    (encoding, framed)
}

/// Scenario: an upload over HTTPS to a server whose certificate the operator named.
/// Guarantee: it arrives, and is the profile.
#[test]
fn uploads_go_over_tls() {
    let _turn = one_at_a_time();
    let (port, received) = serve_https(Arc::clone(&TRUSTED));
    let recording = Recording::start(|builder| builder.endpoint(format!("https://localhost:{port}")));
    burn(200);
    assert!(!recording.finish().is_empty());
    let body = received.recv_timeout(Duration::from_secs(60)).expect("the upload");
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(body.as_slice()).read_to_end(&mut plain).unwrap();
    assert!(support::decode(&plain).iter().any(|sample| sample.mentions("burn")));
}

/// Scenario: a server with a certificate that nobody vouches for.
/// Guarantee: nothing is sent to it, and the status says why.
#[test]
fn strangers_get_nothing() {
    let _turn = one_at_a_time();
    let (port, received) = serve_https(certificate_of_localhost().0);
    let recording = Recording::start(|builder| builder.endpoint(format!("https://localhost:{port}")));
    burn(100);
    recording.profiler.flush();
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    let error = loop {
        if let Some(error) = recording.profiler.status().last_error {
            break error;
        }
        assert!(std::time::Instant::now() < deadline, "no error");
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(error.contains("refused") && error.contains("certificate"), "{error}");
    drop(recording);
    assert_eq!(received.try_recv().ok(), None);
}

/// Scenario: uploads over gRPC, plain and with TLS, compressed by gzip and by zstd.
/// Guarantee: each arrives as one framed message that unpacks to the profile.
#[test]
fn uploads_go_over_grpc() {
    let _turn = one_at_a_time();
    let mut ways = vec![(None, Compression::Gzip), (Some(Arc::clone(&TRUSTED)), Compression::None)];
    if cfg!(feature = "zstd") {
        ways.push((None, "zstd".parse().unwrap()));
    }
    for (tls, compression) in ways {
        let scheme = if tls.is_some() { "https" } else { "http" };
        let (address, serving) = serve_grpc(tls, "0");
        let endpoint = format!("{scheme}://localhost:{}", address.port());
        let destination = Destination::OtlpGrpc { endpoint, headers: Vec::new(), compression };
        let recording = Recording::start(|builder| builder.destination(destination));
        burn(200);
        recording.finish();
        let (encoding, framed) = serving.join().unwrap();
        let length = u32::from_be_bytes(framed[1..5].try_into().unwrap()) as usize;
        assert_eq!((framed[0], length), (u8::from(!encoding.is_empty()), framed.len() - 5));
        let mut plain = Vec::new();
        match encoding.as_str() {
            "gzip" => drop(flate2::read::GzDecoder::new(&framed[5..]).read_to_end(&mut plain).unwrap()),
            #[cfg(feature = "zstd")]
            "zstd" => plain = zstd::stream::decode_all(&framed[5..]).unwrap(),
            _ => plain.extend_from_slice(&framed[5..]),
        }
        assert!(support::decode(&plain).iter().any(|sample| sample.mentions("burn")), "{compression:?}");
    }
}

/// Scenario: a gRPC server that refuses for good.
/// Guarantee: the upload is dropped and counted, with the status as its reason.
#[test]
fn a_refusal_is_told() {
    let _turn = one_at_a_time();
    let (address, serving) = serve_grpc(None, "3");
    let endpoint = format!("http://localhost:{}", address.port());
    let recording = Recording::start(|builder| builder.destination(Destination::otlp_grpc(endpoint)));
    burn(100);
    recording.profiler.flush();
    serving.join().unwrap();
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    while recording.profiler.status().dropped_uploads == 0 {
        assert!(std::time::Instant::now() < deadline, "{:?}", recording.profiler.status());
        std::thread::sleep(Duration::from_millis(20));
        recording.profiler.flush();
    }
    let error = recording.profiler.status().last_error.unwrap();
    assert!(error.contains("gRPC status 3"), "{error}");
}
