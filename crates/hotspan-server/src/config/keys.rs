//! The table of keys. Reading, showing, checking, flags and documentation all come from it; defaults come
//! from [`Settings::default`].

use super::field::{Field, Kind};
use crate::settings::Settings;

/// A key of the configuration.
#[derive(Debug)]
pub struct Key {
    /// Its name: section and key, as in `ingest.flush_interval`.
    pub name: &'static str,
    /// What it is for, in one line.
    pub doc: &'static str,
    /// Its flag, if it has one.
    pub flag: Option<&'static str>,
    /// Whether its value must never be printed.
    pub secret: bool,
    /// The least value that makes sense.
    pub at_least: Option<&'static str>,
    /// The greatest value that makes sense.
    pub at_most: Option<&'static str>,
    field: fn(&mut Settings) -> Field<'_>,
}

impl Key {
    const fn new(name: &'static str, doc: &'static str, field: fn(&mut Settings) -> Field<'_>) -> Self {
        Self { name, doc, flag: None, secret: false, at_least: None, at_most: None, field }
    }

    const fn flag(self, flag: &'static str) -> Self {
        Self { flag: Some(flag), ..self }
    }

    const fn at_least(self, least: &'static str) -> Self {
        Self { at_least: Some(least), ..self }
    }

    const fn at_most(self, most: &'static str) -> Self {
        Self { at_most: Some(most), ..self }
    }

    /// The key of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        KEYS.iter().find(|key| key.name == name)
    }

    /// The part of the name before the dot.
    pub fn section(&self) -> Option<&'static str> {
        self.name.split_once('.').map(|(section, _)| section)
    }

    /// The environment variable that sets it.
    pub fn variable(&self) -> String {
        format!("HOTSPAN_{}", self.name.to_uppercase().replace('.', "_"))
    }

    /// The type of its value.
    pub fn kind(&self) -> Kind {
        (self.field)(&mut Settings::default()).kind()
    }

    /// Its value when nobody says anything.
    pub fn default_text(&self) -> String {
        (self.field)(&mut Settings::default()).text()
    }

    /// Its value as text; none if it must not be printed.
    pub(super) fn shown(&self, settings: &Settings) -> Option<String> {
        // Fields are borrowed for writing, so reading is done on a copy.
        (!self.secret).then(|| (self.field)(&mut settings.clone()).text())
    }

    /// Puts a value into the settings, or says what is wrong with it.
    pub(super) fn write(&self, settings: &mut Settings, text: &str) -> Result<(), String> {
        let quoted = if self.secret { "the value".to_owned() } else { format!("{text:?}") };
        let mut changed = settings.clone();
        let mut field = (self.field)(&mut changed);
        let kind = field.kind();
        field.read(text).ok_or_else(|| format!("{}: {quoted} is not {}", self.name, kind.allowed()))?;
        let measure = field.measure();
        if let Some(least) = self.at_least.filter(|least| measure < self.measure_of(least)) {
            return Err(format!("{}: {quoted} is too little; use at least {least}", self.name));
        }
        if let Some(most) = self.at_most.filter(|most| measure > self.measure_of(most)) {
            return Err(format!("{}: {quoted} is too much; use at most {most}", self.name));
        }
        *settings = changed;
        Ok(())
    }

    fn measure_of(&self, bound: &str) -> u128 {
        let mut scratch = Settings::default();
        let mut field = (self.field)(&mut scratch);
        // A test reads every bound of the table.
        let _ = field.read(bound);
        field.measure()
    }
}

macro_rules! key {
    ($name:literal, $kind:ident, $($path:ident).+, $doc:literal) => {
        Key::new($name, $doc, |settings| Field::$kind(&mut settings.$($path).+))
    };
}

/// Every key, in the order in which they are shown.
pub static KEYS: &[Key] = &[
    key!("store", Folder, store, "Folder of the store; made if it is not there").flag("store"),
    key!("http", Address, http, "Web page, API, Pyroscope and OTLP").flag("http"),
    key!("otlp_grpc", Address, otlp_grpc, "OTLP over gRPC").flag("otlp-grpc"),
    key!("otlp_http", Address, otlp_http, "OTLP over HTTP").flag("otlp-http"),
    key!("tempo", Address, tempo, "Tempo's API").flag("tempo"),
    key!("source", OptionalFolder, source, "Folder of the source code, which the page then shows beside the lines")
        .flag("source"),
    key!("multi_tenancy", Boolean, multi_tenancy, "Whether requests must name their tenant in `X-Scope-OrgID`"),
    key!(
        "shutdown_grace",
        Duration,
        shutdown_grace,
        "How long stopping waits for requests that are under way, and for each part of the server to end"
    ),
    key!("log.level", LogLevel, log.level, "Which log lines are written"),
    key!("log.format", LogFormat, log.format, "How log lines are written; auto is text on a terminal, JSON elsewhere"),
    key!(
        "self_tracing.enabled",
        Boolean,
        self_tracing.enabled,
        "Whether the server's own requests and CPU time are stored too, as service `hotspan`"
    )
    .flag("self-tracing"),
    key!(
        "self_tracing.cpu_rate",
        Integer,
        self_tracing.cpu_rate,
        "Samples that the server takes of itself, per second of CPU time"
    )
    .at_least("1")
    .at_most("1000"),
    key!(
        "self_tracing.max_requests",
        Integer,
        self_tracing.max_requests,
        "Requests of its own that the server traces in a second at most"
    ),
    key!("limits.max_bytes", Size, limits.max_bytes, "Largest request after decompression").at_least("1KiB"),
    key!(
        "limits.max_upload_bytes",
        Size,
        max_upload_bytes,
        "Largest file that can be uploaded; recordings of JFR may be larger than `max_bytes`, and then lie on disk meanwhile"
    )
    .at_least("1KiB"),
    key!(
        "limits.max_idle",
        Duration,
        max_idle,
        "Longest silence in the middle of a request; then it is refused, and its memory is given back. Where no whole head has come, the connection is closed"
    )
    .at_least("100ms"),
    key!(
        "limits.max_age",
        Duration,
        max_age,
        "How old spans and samples may be when they come; older ones are refused, and so is what `retention` would remove at once. 0s leaves it to `retention`"
    ),
    key!(
        "limits.max_ahead",
        Duration,
        max_ahead,
        "How far ahead of the server's clock spans and samples may be; what is further ahead is refused"
    )
    .at_least("1s"),
    key!(
        "limits.max_adhoc_bytes",
        Size,
        max_adhoc_bytes,
        "Profiles of Grafana's Ad hoc view that are kept for each tenant; beyond it the oldest are removed"
    )
    .at_least("1KiB"),
    key!(
        "limits.max_decoded_bytes",
        Size,
        limits.max_decoded_bytes,
        "Most memory that the profiles of one request may take once decoded"
    )
    .at_least("1KiB"),
    key!(
        "limits.max_item_bytes",
        Size,
        limits.max_item_bytes,
        "Most memory that one span, resource or scope, or the labels of a pushed series, may take once decoded"
    )
    .at_least("1KiB"),
    key!(
        "limits.max_text_bytes",
        Size,
        limits.max_text_bytes,
        "Longest text that is kept whole; a longer one is cut and counted"
    )
    .at_least("16B"),
    key!(
        "limits.max_stack_depth",
        Integer,
        limits.max_stack_depth,
        "Deepest call path; frames nearer the root than that are cut and counted"
    )
    .at_least("1"),
    key!(
        "limits.max_labels",
        Integer,
        limits.max_labels,
        "Labels of one series; further ones are kept beside the profile, but can't be matched on"
    )
    .at_least("1"),
    key!(
        "limits.max_label_bytes",
        Size,
        limits.max_label_bytes,
        "Longest name or value of a label; a longer one is kept beside the profile instead. A longer service is cut as well"
    )
    .at_least("1B"),
    key!("limits.max_nesting", Integer, limits.max_nesting, "How deep attribute values may nest")
        .at_least("1")
        .at_most("128"),
    key!(
        "ingest.flush_interval",
        Duration,
        ingest.flush_interval,
        "Longest time that a request waits for others to share its segment"
    )
    .flag("flush-interval")
    .at_most("1m"),
    key!("ingest.flush_bytes", Size, ingest.flush_bytes, "A batch this large is flushed at once").at_least("1KiB"),
    key!(
        "ingest.queue_bytes",
        Size,
        ingest.queue_bytes,
        "Memory for requests that are being read or decoded, or wait for their commit; beyond it senders are told to retry"
    )
    .at_least("1MiB"),
    key!(
        "ingest.dedup_window",
        Duration,
        ingest.dedup_window,
        "How long a span or profile is remembered at least, so that a retry of it is counted once, also after a restart"
    ),
    key!(
        "ingest.dedup_entries",
        Integer,
        ingest.dedup_entries,
        "How many spans and profiles are remembered at most, about 20 bytes each; where more than half as many come within \
         `dedup_window`, the latest half is remembered"
    ),
    key!(
        "ingest.known_nodes",
        Integer,
        ingest.known_nodes,
        "How many call-path nodes are remembered as durable, so that they are not written again"
    ),
    key!(
        "ingest.resident_bytes",
        Size,
        ingest.resident_bytes,
        "Memory for the rows of young segments, which then need not be read back"
    ),
    key!(
        "compaction.first_level_age",
        Duration,
        compaction.first_level_age,
        "Age at which young segments are compacted"
    )
    .flag("compact-after"),
    key!(
        "compaction.first_level_bytes",
        Size,
        compaction.first_level_bytes,
        "Size at which young segments are compacted before that age"
    )
    .at_least("1KiB"),
    key!(
        "compaction.second_level_files",
        Integer,
        compaction.second_level_files,
        "How many files of one level are merged into one of the next"
    )
    .at_least("2"),
    key!(
        "compaction.second_level_age",
        Duration,
        compaction.second_level_age,
        "Age at which a file of level 1 goes up even if there are fewer"
    ),
    key!(
        "compaction.partition_grace",
        Duration,
        compaction.partition_grace,
        "How long after its end a partition is merged for good"
    ),
    key!(
        "compaction.partition_quiet",
        Duration,
        compaction.partition_quiet,
        "How long nothing must have come for that to be done at once, not when its files are old enough"
    ),
    key!("compaction.job_bytes", Size, compaction.job_bytes, "How much one compaction job reads at most")
        .at_least("1MiB"),
    key!("retention.spans", Duration, retention.spans, "How long spans, and the traces they make up, are kept")
        .at_least("1m"),
    key!(
        "retention.samples",
        Duration,
        retention.samples,
        "How long raw samples, and the profiles they came in, are kept"
    )
    .at_least("1m"),
    key!("retention.rollup_15s", Duration, retention.rollup_15s, "How long sums of 15 seconds are kept").at_least("1m"),
    key!(
        "retention.rollup_1h",
        Duration,
        retention.rollup_1h,
        "How long sums of an hour are kept; labels and symbols are kept as long"
    )
    .at_least("1m"),
    key!(
        "retention.deletion_delay",
        Duration,
        retention.deletion_delay,
        "How long a file that was replaced or grew too old stays, for whoever still reads it; one of level 0 goes when no query does"
    ),
    key!(
        "query.column_cache_bytes",
        Size,
        column_cache_bytes,
        "Memory for columns of spans that are kept decoded, so that a search need only compare them"
    ),
    key!(
        "query.warm_up",
        Duration,
        warm_up,
        "How long after a start what the first questions need is read ahead, while nobody asks; 0s turns it off"
    )
    .at_most("10m"),
    key!("sql.memory", Size, sql.memory_bytes, "Memory that SQL statements may take, all together").at_least("1MiB"),
    key!("sql.time_limit", Duration, sql.time_limit, "How long one SQL statement may run").at_least("100ms"),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: the table itself. Guarantee: names, variables and flags are each used once, bounds can be
    /// read, and the default is within them.
    #[test]
    fn the_table_is_sound() {
        let mut seen = std::collections::BTreeSet::new();
        for key in KEYS {
            assert!(seen.insert(key.name.to_owned()) && seen.insert(key.variable()), "{} is there twice", key.name);
            assert!(key.flag.is_none_or(|flag| seen.insert(format!("--{flag}"))), "{} shares its flag", key.name);
            assert!(key.write(&mut Settings::default(), &key.default_text()).is_ok(), "{}", key.name);
            for bound in key.at_least.iter().chain(&key.at_most) {
                assert!((key.field)(&mut Settings::default()).read(bound).is_some(), "{}: {bound}", key.name);
            }
            assert!(!key.doc.contains('\n') && !key.doc.contains('|'), "{} spoils its table row", key.name);
        }
    }

    /// Scenario: a secret key with a right and with a wrong value.
    /// Guarantee: neither showing nor complaining prints the value.
    #[test]
    fn secrets_are_not_printed() {
        let key = Key { secret: true, ..key!("shutdown_grace", Duration, shutdown_grace, "A secret") };
        assert_eq!(key.shown(&Settings::default()), None);
        let message = key.write(&mut Settings::default(), "hunter2").unwrap_err();
        assert!(!message.contains("hunter2"), "{message}");
    }
}
