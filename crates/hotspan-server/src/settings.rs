//! What a server can be told.

use std::path::PathBuf;
use std::time::Duration;

use hotspan_formats::Limits;
use hotspan_lake::IngestOptions;
use hotspan_lake::compaction::CompactionOptions;
use hotspan_lake::retention::RetentionOptions;

use crate::listeners::Address;

/// Everything that a server is started with.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The folder that the store is in.
    pub store: PathBuf,
    /// Web page, Hotspan API, Pyroscope and everything else.
    pub http: Address,
    /// OTLP over gRPC.
    pub otlp_grpc: Address,
    /// OTLP over HTTP.
    pub otlp_http: Address,
    /// Tempo's API.
    pub tempo: Address,
    /// Limits on what one request may hold.
    pub limits: Limits,
    /// Bounds of the write path.
    pub ingest: IngestOptions,
    /// When segments are compacted.
    pub compaction: CompactionOptions,
    /// How long data is kept.
    pub retention: RetentionOptions,
    /// Whether requests must name their tenant.
    pub multi_tenancy: bool,
    /// How long stopping waits for requests that are under way.
    pub shutdown_grace: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            store: PathBuf::from("hotspan-data"),
            http: Address::local(4040),
            otlp_grpc: Address::local(4317),
            otlp_http: Address::local(4318),
            tempo: Address::local(3200),
            limits: Limits::default(),
            ingest: IngestOptions::default(),
            compaction: CompactionOptions::default(),
            retention: RetentionOptions::default(),
            multi_tenancy: false,
            shutdown_grace: Duration::from_secs(10),
        }
    }
}
