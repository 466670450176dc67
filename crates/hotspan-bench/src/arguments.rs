//! What to measure, and on how much.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, bail, ensure};
use clap::{Parser, ValueEnum};
use hotspan_generator::Settings;
use hotspan_generator::encode::SampleShape;

use crate::process::Process;

/// Measure a Hotspan server: ingest, storage and queries, with every answer checked.
#[derive(Debug, Clone, Parser)]
pub(crate) struct Arguments {
    /// The server's binary.
    #[arg(long, default_value = "target/quick/hotspan")]
    pub(crate) server: PathBuf,
    /// Hours of data: one is 1 M spans and 5 M samples. 0.1 is enough for a first look.
    #[arg(long, default_value_t = 1.0)]
    pub(crate) scale: f64,
    /// What to measure; all of it if none is named.
    #[arg(value_enum)]
    pub(crate) only: Vec<Part>,
    /// Make and send spans alone: what is asked of spans can then be measured on ten times as many in the same time.
    #[arg(long = "only", value_enum, value_name = "SIGNAL")]
    pub(crate) signal: Option<Signal>,
    /// Sizes for `flat`, in millions of samples; of spans with `--only spans`.
    #[arg(long, value_delimiter = ',', default_value = "1,10")]
    pub(crate) sizes: Vec<f64>,
    /// Everything in the data follows from it.
    #[arg(long, default_value_t = 42)]
    pub(crate) seed: u64,
    /// Connections that send at the same time: each waits for its answers, so that fewer do not bring a server to full speed.
    #[arg(long, default_value_t = 32)]
    pub(crate) connections: usize,
    /// Spans in a request.
    #[arg(long, default_value_t = 1000)]
    pub(crate) spans_per_request: usize,
    /// Profiles in a request, each with some 520 samples.
    #[arg(long, default_value_t = 1)]
    pub(crate) profiles_per_request: usize,
    /// Calls of a question, the cold one not counted; fewer if it is slow.
    #[arg(long, default_value_t = 20)]
    pub(crate) repeats: usize,
    /// Seconds to wait at most until compaction is done.
    #[arg(long, default_value_t = 240)]
    pub(crate) settle: u64,
    /// Seconds without work after which compaction counts as done: more than young data may wait for it.
    #[arg(long, default_value_t = 25)]
    pub(crate) quiet: u64,
    /// Folder for the store and the prepared requests; a temporary one that is deleted, unless given.
    #[arg(long)]
    pub(crate) folder: Option<PathBuf>,
    /// Leave the stores in the folder, to look at them afterwards.
    #[arg(long, requires = "folder")]
    pub(crate) keep: bool,
    /// Write the table as Markdown into this file.
    #[arg(long)]
    pub(crate) markdown: Option<PathBuf>,
    /// A Tempo for `peers`: the address of its OTLP over HTTP and its process, such as 127.0.0.1:4318@1234.
    #[arg(long, value_name = "ADDRESS@PID")]
    pub(crate) tempo: Option<Peer>,
    /// Where that Tempo answers questions, for `peer-questions`, such as 127.0.0.1:3200.
    #[arg(long, value_name = "ADDRESS", requires = "tempo")]
    pub(crate) tempo_api: Option<SocketAddr>,
    /// A Pyroscope for `peers`: its address and its process, such as 127.0.0.1:4040@1235.
    #[arg(long, value_name = "ADDRESS@PID")]
    pub(crate) pyroscope: Option<Peer>,
    /// How often `peers` sends everything to each in turn.
    #[arg(long, default_value_t = 1)]
    pub(crate) rounds: usize,
    /// Further arguments for `hotspan serve`, separated by spaces.
    #[arg(long, default_value = "", allow_hyphen_values = true)]
    pub(crate) serve_arguments: String,
}

/// A server that someone else started on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    pub(crate) process: Process,
}

impl FromStr for Peer {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (address, id) = text.split_once('@').context("it must be an address, '@' and the id of a process")?;
        let address: SocketAddr = address.parse().with_context(|| format!("{address:?} is not an address"))?;
        ensure!(address.ip().is_loopback(), "{address} is not on this machine, whose processes are measured");
        let id = id.parse().with_context(|| format!("{id:?} is not the id of a process"))?;
        Ok(Self { address, process: Process { id } })
    }
}

/// What data is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Signal {
    /// Spans, and no samples.
    Spans,
}

/// A part of the measurements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// Ingest, memory and bytes on disk.
    Ingest,
    /// Flame graphs, lookups and series.
    Profiles,
    /// Traces by id, TraceQL searches and metrics.
    Traces,
    /// pprof files as agents send them.
    Pprof,
    /// Recordings of the JVM, one of them of a gigabyte.
    Jfr,
    /// Explanations of large cohorts.
    Explain,
    /// Ten thousand spans of an hour with ten million samples: their flame graph, and why they are slow.
    Join,
    /// The same lookups as the store grows.
    Flat,
    /// Where the CPU of ingest goes, without a server. Only if named.
    Stages,
    /// The same requests to Hotspan and to the peers that run here (`--tempo`, `--pyroscope`), in turn. Only if named.
    Peers,
    /// The same questions to Hotspan and to the peers that run here, which must be fresh: all data is sent to each once.
    /// Only if named.
    PeerQuestions,
}

impl Arguments {
    pub(crate) fn measures(&self, part: Part) -> bool {
        let by_default = match part {
            Part::Stages | Part::Peers | Part::PeerQuestions => false,
            Part::Ingest | Part::Traces | Part::Flat => true,
            Part::Profiles | Part::Pprof | Part::Jfr | Part::Explain | Part::Join => !self.has_spans_only(),
        };
        (self.only.is_empty() && by_default) || self.only.contains(&part)
    }

    fn measures_peers(&self) -> bool {
        self.measures(Part::Peers) || self.measures(Part::PeerQuestions)
    }

    pub(crate) fn has_spans_only(&self) -> bool {
        self.signal == Some(Signal::Spans)
    }

    /// What goes to a peer too must be what the peer can read.
    pub(crate) fn sample_shape(&self) -> SampleShape {
        if self.measures_peers() { SampleShape::Single } else { SampleShape::Merged }
    }

    pub(crate) fn check(&self) -> anyhow::Result<()> {
        if !self.server.is_file() && self.only != [Part::Stages] {
            bail!(
                "there is no server at {}; build it with `cargo build --profile quick`, or name it with --server",
                self.server.display()
            );
        }
        ensure!((0.001..=1000.0).contains(&self.scale), "--scale must be from 0.001 to 1000 hours");
        ensure!((1..=256).contains(&self.connections), "--connections must be from 1 to 256");
        ensure!((1..=1000).contains(&self.repeats), "--repeats must be from 1 to 1000");
        if self.measures_peers() {
            ensure!(self.tempo.is_some() || self.pyroscope.is_some(), "peers need --tempo or --pyroscope");
        }
        if let (true, Some(_), None) = (self.measures(Part::PeerQuestions), self.tempo, self.tempo_api) {
            bail!("peer-questions needs --tempo-api beside --tempo");
        }
        if self.has_spans_only() {
            let asks_spans = |part: &Part| {
                use Part::{Flat, Ingest, PeerQuestions, Peers, Stages, Traces};
                matches!(part, Ingest | Traces | Flat | Stages | Peers | PeerQuestions)
            };
            let needs_samples = self.only.iter().find(|part| !asks_spans(part));
            if let Some(part) = needs_samples {
                bail!("{part:?} needs samples: it can't be measured with --only spans");
            }
        }
        let growing = self.sizes.windows(2).all(|pair| pair[0] < pair[1]);
        ensure!(growing && self.sizes.iter().all(|size| *size > 0.0), "--sizes must grow, such as 1,10,100");
        Ok(())
    }

    /// Data that ends at the last full hour, since a server may refuse what is far from its clock.
    pub(crate) fn settings(&self, hours: f64) -> Settings {
        const HOUR: i64 = 3_600_000_000_000;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos() as i64);
        let length = (hours * HOUR as f64).ceil() as i64;
        // Whole hours before, so that whole-hour questions fit whole-hour rollups.
        let start = now - now.rem_euclid(HOUR) - (length + HOUR - 1) / HOUR * HOUR;
        let settings = Settings { seed: self.seed, start, ..Settings::of_hours(hours) };
        if self.has_spans_only() { Settings { samples: 0, ..settings } } else { settings }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Arguments {
        let server = std::env::current_exe().unwrap();
        let program = ["hotspan-bench", "--server", server.to_str().unwrap()];
        Arguments::try_parse_from([&program, words].concat()).unwrap()
    }

    /// Scenario: spans alone, with the parts that can be measured on them, and with one that can't.
    /// Guarantee: no samples are made, only those parts are measured, and the other is refused by name.
    #[test]
    fn spans_alone() {
        let arguments = read(&["--only", "spans"]);
        assert!(arguments.check().is_ok());
        assert_eq!(arguments.settings(1.0).samples, 0);
        assert_eq!(arguments.settings(1.0).traces, read(&[]).settings(1.0).traces);
        assert!(arguments.measures(Part::Traces) && arguments.measures(Part::Flat));
        assert!(!arguments.measures(Part::Profiles) && !arguments.measures(Part::Join));
        let refused = read(&["--only", "spans", "join"]).check().unwrap_err();
        assert!(refused.to_string().starts_with("Join needs samples"), "{refused}");
    }
    /// Scenario: a peer on this machine, and what is none. Guarantee: it is read, and the others are refused with the reason.
    #[test]
    fn peers_run_here() {
        let peer: Peer = "127.0.0.1:4318@12".parse().unwrap();
        assert_eq!((peer.address.port(), peer.process), (4318, Process { id: 12 }));
        let wrong = [
            ("127.0.0.1:4318", "'@'"),
            ("localhost@12", "not an address"),
            ("192.0.2.1:4318@12", "not on this machine"),
            ("127.0.0.1:4318@tempo", "not the id of a process"),
        ];
        for (text, reason) in wrong {
            let refused = text.parse::<Peer>().unwrap_err().to_string();
            assert!(refused.contains(reason), "{refused}");
        }
        assert!(read(&["peers"]).check().is_err());
    }
}
