//! Numbers about the server itself, for Prometheus. Every drop, queue and store counter is here (R4).

use std::fmt::{Display, Write};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use hotspan_formats::otlp::Outcome;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::app::App;
use crate::process_metrics::write_process;

type Labels = Vec<(&'static str, &'static str)>;

/// Bounds of the histogram of answers, in seconds: a look-up takes milliseconds, a statement of SQL may take minutes.
const ANSWER_SECONDS: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0];

/// Counters of requests.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    received_items: Family<Labels, Counter>,
    rejected_items: Family<Labels, Counter>,
    rejected_samples: Counter,
    cut_frames: Counter,
    cut_texts: Family<Labels, Counter>,
    repaired_texts: Family<Labels, Counter>,
    refused_requests: Family<Labels, Counter>,
    queries_seconds: Family<Labels, Histogram>,
}

impl Default for Metrics {
    fn default() -> Self {
        let metrics = Self {
            registry: Registry::with_prefix("hotspan"),
            received_items: Family::default(),
            rejected_items: Family::default(),
            rejected_samples: Counter::default(),
            cut_frames: Counter::default(),
            cut_texts: Family::default(),
            repaired_texts: Family::default(),
            refused_requests: Family::default(),
            queries_seconds: Family::new_with_constructor(|| Histogram::new(ANSWER_SECONDS)),
        };
        metrics.registered()
    }
}

impl Metrics {
    fn registered(mut self) -> Self {
        let registry = &mut self.registry;
        registry.register("received_items", "Spans and profiles accepted", self.received_items.clone());
        registry.register(
            "rejected_items",
            "Spans and profiles of accepted requests that were refused alone",
            self.rejected_items.clone(),
        );
        registry.register(
            "rejected_samples",
            "Samples of accepted requests that were refused, those of refused profiles included",
            self.rejected_samples.clone(),
        );
        registry.register(
            "cut_frames",
            "Frames that were cut from stacks deeper than the limit",
            self.cut_frames.clone(),
        );
        registry.register("cut_texts", "Texts longer than the limit, kept up to it", self.cut_texts.clone());
        registry.register(
            "repaired_texts",
            "Texts that were not UTF-8, kept with the wrong bytes replaced",
            self.repaired_texts.clone(),
        );
        registry.register("refused_requests", "Requests refused whole, by reason", self.refused_requests.clone());
        registry.register("queries_seconds", "How long questions took to answer", self.queries_seconds.clone());
        self
    }

    /// Counts what a request held that was taken, and what was not taken of it.
    pub(crate) fn received(&self, signal: &'static str, outcome: &Outcome) {
        let labels = vec![("signal", signal)];
        self.received_items.get_or_create(&labels).inc_by(outcome.accepted);
        self.rejected_items.get_or_create(&labels).inc_by(outcome.rejected);
        self.cut_texts.get_or_create(&labels).inc_by(outcome.cut_texts);
        self.repaired_texts.get_or_create(&labels).inc_by(outcome.repaired_texts);
        self.rejected_samples.inc_by(outcome.rejected_samples);
        self.cut_frames.inc_by(outcome.cut_frames);
    }

    pub(crate) fn refused(&self, signal: &'static str, reason: &'static str) {
        self.refused_requests.get_or_create(&vec![("signal", signal), ("reason", reason)]).inc();
    }

    /// Counts a question that was answered, well or not.
    pub(crate) fn answered(&self, api: &'static str, took: Duration) {
        self.queries_seconds.get_or_create(&vec![("api", api)]).observe(took.as_secs_f64());
    }
}

/// Everything as OpenMetrics.
pub(crate) fn render(app: &App) -> String {
    let mut text = String::new();
    // Writing into a String can't fail.
    let _ = encode(&mut text, &app.metrics.registry);
    // The registry ends its text with an end mark; what the store counts itself goes before it.
    let end = text.rfind("# EOF").unwrap_or(text.len());
    text.truncate(end);
    write_process(&mut text, app.started.elapsed().as_secs_f64());
    if let Some(gate) = app.request_gate.get() {
        let own = &gate.counters;
        let counters = [
            ("self_tracing_stored", "Spans and profiles of the server itself that were stored", &own.stored),
            ("self_tracing_dropped", "Spans and profiles of the server itself that had no room", &own.dropped),
            ("self_tracing_untraced_requests", "Requests beyond the limit of tracing", &own.untraced_requests),
        ];
        for (name, help, value) in counters {
            write_counter(&mut text, name, help, value.load(Relaxed));
        }
    }
    if let Ok(core) = app.core() {
        let lake = core.engine.lake();
        let ingest = lake.ingest_counters();
        let (compaction, retention) = (&core.compaction, &core.retention);
        let counters = [
            ("ingest_segments", "Segments committed", ingest.segments.load(Relaxed)),
            ("ingest_segment_bytes", "Bytes of committed segments", ingest.bytes.load(Relaxed)),
            ("ingest_spans", "Spans committed", ingest.spans.load(Relaxed)),
            ("ingest_samples", "Samples committed", ingest.samples.load(Relaxed)),
            ("ingest_profiles", "Profiles committed", ingest.profiles.load(Relaxed)),
            ("ingest_duplicate_spans", "Spans that came again", ingest.duplicate_spans.load(Relaxed)),
            ("ingest_duplicate_profiles", "Profiles that came again", ingest.duplicate_profiles.load(Relaxed)),
            (
                "ingest_symbol_collisions",
                "Symbols that met another one with the same id",
                ingest.symbol_collisions.load(Relaxed),
            ),
            ("ingest_failed_batches", "Batches that could not be committed", ingest.failed_batches.load(Relaxed)),
            ("ingest_refused_requests", "Requests told to come back", ingest.refused_requests.load(Relaxed)),
            ("scrapes", "Profiles that were fetched, or tried to be", app.scrape.counts().0),
            ("scrape_failures", "Profiles that could not be fetched", app.scrape.counts().1),
            ("compaction_jobs", "Compaction jobs done", compaction.jobs.load(Relaxed)),
            ("compaction_failed_jobs", "Compaction jobs that failed", compaction.failed_jobs.load(Relaxed)),
            ("compaction_input_bytes", "Bytes read by compaction", compaction.input_bytes.load(Relaxed)),
            ("compaction_output_bytes", "Bytes written by compaction", compaction.output_bytes.load(Relaxed)),
            ("retention_expired_segments", "Segments past their retention", retention.expired_segments.load(Relaxed)),
            ("retention_deleted_files", "Files deleted", retention.deleted_files.load(Relaxed)),
            ("adhoc_removed_profiles", "Ad hoc profiles removed for their age or for room", core.adhoc.removed()),
        ];
        for (name, help, value) in counters.into_iter().chain(app.queries.totals()) {
            write_counter(&mut text, name, help, value);
        }
        let times = [
            ("ingest_commit_seconds", "Time spent committing", &ingest.commit_nanos),
            ("compaction_seconds", "Time spent compacting", &compaction.nanos),
            ("compaction_cpu_seconds", "CPU time spent compacting", &compaction.cpu_nanos),
        ];
        for (name, help, nanos) in times {
            write_counter(&mut text, name, help, nanos.load(Relaxed) as f64 / 1e9);
        }
        let snapshot = lake.catalog().snapshot();
        let young = || snapshot.all_segments().filter(|segment| segment.level <= 1);
        let decoding = app.decoding.busy();
        let gauges = [
            ("queries_running", "Questions being answered", app.queries.running() as f64),
            (
                "warm_up_running",
                "Whether what first questions need is being read ahead",
                f64::from(u8::from(app.warming_up.load(Relaxed))),
            ),
            ("ingest_queue_share", "Share of the ingest queue's memory in use", core.ingest.queue_share()),
            ("ingest_decoding_requests", "Requests being decompressed and decoded", decoding as f64),
            ("ingest_waiting_requests", "Requests that wait for the next commit", core.ingest.waiting() as f64),
            ("ingest_remembered_ids", "Ids kept to recognise retries", ingest.remembered_ids.load(Relaxed) as f64),
            ("compaction_backlog_segments", "Segments of level 0 and 1", young().count() as f64),
            (
                "compaction_backlog_bytes",
                "Bytes of segments of level 0 and 1",
                young().map(|segment| segment.bytes()).sum::<u64>() as f64,
            ),
            (
                "compaction_resting_segments",
                "Segments that compaction failed on and leaves alone for a while",
                compaction.resting_segments.load(Relaxed) as f64,
            ),
            ("ingest_known_symbols", "Nodes and series known to be durable", core.ingest.known().count() as f64),
            ("symbol_cache_bytes", "Symbols kept between questions", core.engine.symbol_bytes() as f64),
            ("window_cache_bytes", "Counts by window kept between questions", core.engine.window_bytes() as f64),
            ("lake_resident_bytes", "Memory of young segments", lake.resident_bytes() as f64),
            ("lake_footer_cache_bytes", "Memory of cached footers", lake.reader().cached_bytes() as f64),
            ("lake_index_cache_bytes", "Memory of id indexes", lake.reader().kept_index_bytes() as f64),
            ("lake_column_cache_bytes", "Memory of decoded columns", lake.reader().cached_column_bytes() as f64),
            ("lake_segments", "Live segments", snapshot.all_segments().count() as f64),
            (
                "lake_bytes",
                "Bytes of live segments",
                snapshot.all_segments().map(|segment| segment.bytes()).sum::<u64>() as f64,
            ),
        ];
        for (name, help, value) in gauges {
            let _ =
                write!(text, "# HELP hotspan_{name} {help}.\n# TYPE hotspan_{name} gauge\nhotspan_{name} {value}\n");
        }
    }
    text.push_str("# EOF\n");
    text
}

fn write_counter(text: &mut String, name: &str, help: &str, value: impl Display) {
    // Writing into a String can't fail.
    let _ =
        write!(text, "# HELP hotspan_{name} {help}.\n# TYPE hotspan_{name} counter\nhotspan_{name}_total {value}\n");
}
