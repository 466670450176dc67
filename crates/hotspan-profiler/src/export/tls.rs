//! Whom to trust: the certificates of the system, and those of a file that the operator names.

use super::http::Url;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// OpenTelemetry's variable for a file of certificates, in addition to the system's.
const CERTIFICATE_VARIABLE: &str = "OTEL_EXPORTER_OTLP_CERTIFICATE";

/// What a connection needs; `protocols` are those that are offered, the best first.
///
/// Read anew for each connection: there is one in ten seconds, and certificates are replaced while services run.
pub(super) fn client_config(protocols: &[&[u8]]) -> io::Result<Arc<ClientConfig>> {
    let mut roots = RootCertStore::empty();
    // Certificates of the system that can't be read are somebody else's trouble, as long as one fits.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(file) = std::env::var_os(CERTIFICATE_VARIABLE).filter(|file| !file.is_empty()) {
        roots.add_parsable_certificates(certificates_in(Path::new(&file))?);
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let mut config = config.map_err(io::Error::other)?.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    Ok(Arc::new(config))
}

fn certificates_in(file: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let certificates = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    certificates.map_err(|error| io::Error::other(format!("{CERTIFICATE_VARIABLE}: {}: {error}", file.display())))
}

/// The name that the server's certificate must have.
pub(super) fn server_name(url: &Url) -> io::Result<ServerName<'static>> {
    ServerName::try_from(url.host().to_owned()).map_err(io::Error::other)
}
