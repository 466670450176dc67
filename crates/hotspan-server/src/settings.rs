//! What a server can be told.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use hotspan_formats::{ClockWindow, Limits};
use hotspan_lake::compaction::CompactionOptions;
use hotspan_lake::retention::RetentionOptions;
use hotspan_lake::{IngestOptions, Table};
use hotspan_sql::SqlOptions;

use crate::listeners::Address;
use crate::scrape::ScrapeJob;
use crate::self_tracing::SelfTracingSettings;

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
    /// Largest file that can be uploaded; what does not fit into a request's limits is kept on disk meanwhile.
    pub max_upload_bytes: u64,
    /// How long a sender may be silent in the middle of a request.
    pub max_idle: Duration,
    /// How old spans and samples may be when they come; zero for as old as they are kept.
    pub max_age: Duration,
    /// How far ahead of the server's clock spans and samples may be.
    pub max_ahead: Duration,
    /// Bytes of ad hoc profiles that are kept for each tenant.
    pub max_adhoc_bytes: u64,
    /// Bounds of the write path.
    pub ingest: IngestOptions,
    /// When segments are compacted.
    pub compaction: CompactionOptions,
    /// How long data is kept.
    pub retention: RetentionOptions,
    /// Services that are asked for their profiles.
    pub scrape: Vec<ScrapeJob>,
    /// Folder of the source code that is shown beside the lines of flame graphs.
    pub source: Option<PathBuf>,
    /// Memory for columns of spans that are kept decoded between questions.
    pub column_cache_bytes: usize,
    /// How long after a start what the first questions need is read ahead, while nobody asks.
    pub warm_up: Duration,
    /// Limits of SQL statements.
    pub sql: SqlOptions,
    /// Whether requests must name their tenant.
    pub multi_tenancy: bool,
    /// How long stopping waits for requests that are under way, and for each part of the server to end.
    pub shutdown_grace: Duration,
    /// What is logged, and how.
    pub log: LogSettings,
    /// Whether the server traces and profiles itself.
    pub self_tracing: SelfTracingSettings,
}

impl Settings {
    /// The times that are taken at `now` of what goes into a table: none that retention would remove at once (R4).
    pub(crate) fn clock(&self, table: Table, now: i64) -> ClockWindow {
        let kept = self.retention.of(table);
        let (age, setting) = match table {
            _ if !self.max_age.is_zero() && self.max_age < kept => (self.max_age, "limits.max_age"),
            Table::Spans | Table::Traces => (kept, "retention.spans"),
            _ => (kept, "retention.samples"),
        };
        ClockWindow::new(now, age, self.max_ahead, setting)
    }
}

/// What is logged, and how.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogSettings {
    /// Which lines are written.
    pub level: LogFilter,
    /// How they are written.
    pub format: LogFormat,
}

/// A level, or levels by module: `info`, or `info,hotspan_lake=debug`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFilter(String);

impl Default for LogFilter {
    fn default() -> Self {
        Self("info".to_owned())
    }
}

impl fmt::Display for LogFilter {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// A text that is no [`LogFilter`] or [`LogFormat`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not known to the log")]
pub struct LogTextError;

impl FromStr for LogFilter {
    type Err = LogTextError;

    fn from_str(text: &str) -> Result<Self, LogTextError> {
        let is_level = |level: &str| ["off", "error", "warn", "info", "debug", "trace"].contains(&level);
        let is_module =
            |module: &str| !module.is_empty() && module.chars().all(|c| c.is_alphanumeric() || "_:".contains(c));
        let is_directive = |directive: &str| match directive.split_once('=') {
            Some((module, level)) => is_module(module) && is_level(level),
            None => is_level(directive),
        };
        if text.split(',').all(is_directive) { Ok(Self(text.to_owned())) } else { Err(LogTextError) }
    }
}

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// For people on a terminal, for machines elsewhere.
    #[default]
    Auto,
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

impl fmt::Display for LogFormat {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Auto => "auto",
            Self::Text => "text",
            Self::Json => "json",
        })
    }
}

impl FromStr for LogFormat {
    type Err = LogTextError;

    fn from_str(text: &str) -> Result<Self, LogTextError> {
        [Self::Auto, Self::Text, Self::Json].into_iter().find(|format| format.to_string() == text).ok_or(LogTextError)
    }
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
            max_upload_bytes: 4 << 30,
            max_idle: Duration::from_secs(15),
            max_age: Duration::ZERO,
            max_ahead: Duration::from_secs(24 * 3600),
            max_adhoc_bytes: 1 << 30,
            ingest: IngestOptions::default(),
            compaction: CompactionOptions::default(),
            retention: RetentionOptions::default(),
            scrape: Vec::new(),
            source: None,
            column_cache_bytes: hotspan_lake::segment::COLUMN_CACHE_BYTES,
            warm_up: Duration::from_secs(3),
            sql: SqlOptions::default(),
            multi_tenancy: false,
            shutdown_grace: Duration::from_secs(10),
            log: LogSettings::default(),
            self_tracing: SelfTracingSettings::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 24 * 3600 * 1_000_000_000;

    /// Scenario: a server as it is shipped, one that takes three days, and one that would take more than it keeps.
    /// Guarantee: nothing is taken that retention would remove at once, and the setting that decides is named.
    #[test]
    fn what_is_taken_is_kept() {
        let now = 20_000 * DAY;
        let of = |days: u64| Settings { max_age: Duration::from_secs(days * 24 * 3600), ..Settings::default() };
        let told = |settings: &Settings, table, age: i64| settings.clock(table, now).check(now - age * DAY).err();
        for (settings, table, most, setting) in [
            (of(0), Table::Spans, 14, "retention.spans"),
            (of(0), Table::Samples, 7, "retention.samples"),
            (of(3), Table::Spans, 3, "limits.max_age"),
            (of(3), Table::Samples, 3, "limits.max_age"),
            (of(1000), Table::Spans, 14, "retention.spans"),
        ] {
            assert_eq!(told(&settings, table, most), None);
            let refused = told(&settings, table, most + 1).unwrap().to_string();
            assert!(refused.contains(setting), "{refused}");
        }
        assert!(Settings::default().clock(Table::Spans, now).check(now + 2 * DAY).is_err());
    }
}
