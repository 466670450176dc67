//! `hotspan-generate`: writes generated requests into a folder, or only says how large they are.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Parser, ValueEnum};
use hotspan_generator::encode::{SampleShape, pprof_file, profile_requests, trace_requests};
use hotspan_generator::{Oracle, OracleDetail, Settings, Window, Workload};

/// Generate traces and profiles of a fleet that does not exist, the same for the same seed.
#[derive(Debug, Parser)]
struct Arguments {
    /// Folder to write requests into; without it, only sizes are printed.
    #[arg(long)]
    out: Option<PathBuf>,
    /// What to write.
    #[arg(long, value_enum, default_value = "otlp")]
    format: Format,
    /// Everything follows from it.
    #[arg(long, default_value_t = 42)]
    seed: u64,
    /// Hours of data; one has 1 M spans and 5 M samples.
    #[arg(long, default_value_t = 0.1)]
    hours: f64,
    /// Start in nanoseconds since 1970.
    #[arg(long)]
    start: Option<i64>,
    /// Services.
    #[arg(long)]
    services: Option<u16>,
    /// Traces in all.
    #[arg(long)]
    traces: Option<u64>,
    /// Samples in all.
    #[arg(long)]
    samples: Option<u64>,
    /// Spans in a request.
    #[arg(long, default_value_t = 1000)]
    spans_per_request: usize,
    /// Profiles in a request.
    #[arg(long, default_value_t = 1)]
    profiles_per_request: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// `ExportTraceServiceRequest` and `ExportProfilesServiceRequest` in protobuf.
    Otlp,
    /// Profiles as pprof, without traces.
    Pprof,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let mut settings = Settings { seed: arguments.seed, ..Settings::of_hours(arguments.hours) };
    settings.start = arguments.start.unwrap_or(settings.start);
    settings.services = arguments.services.unwrap_or(settings.services);
    settings.traces = arguments.traces.unwrap_or(settings.traces);
    settings.samples = arguments.samples.unwrap_or(settings.samples);
    let workload = Workload::new(settings)?;
    if let Some(folder) = &arguments.out {
        fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    }
    let mut oracle = Oracle::new(&workload, OracleDetail::OneTraceIn(1000));
    let mut sizes = Sizes::default();
    for window in workload.windows() {
        oracle.add(&window);
        sizes.add(&window, &arguments)?;
    }
    let per = |bytes: u64, count: u64| bytes as f64 / count.max(1) as f64;
    let nodes: usize = workload.fleet().services.iter().map(|service| service.calls.nodes.len()).sum();
    let mut out = io::stdout().lock();
    writeln!(out, "{} traces, {} spans: {:.0} B a span", oracle.traces, oracle.spans, per(sizes.traces, oracle.spans))?;
    writeln!(
        out,
        "{} samples, {:.1} % linked: {:.0} B a sample",
        oracle.samples,
        100.0 * oracle.linked_samples as f64 / oracle.samples.max(1) as f64,
        per(sizes.profiles, oracle.samples)
    )?;
    writeln!(out, "{} call paths in {} services", nodes, workload.fleet().services.len())?;
    Ok(())
}

/// Bytes written, or that would have been.
#[derive(Debug, Default)]
struct Sizes {
    traces: u64,
    profiles: u64,
    files: u64,
}

impl Sizes {
    fn add(&mut self, window: &Window<'_>, arguments: &Arguments) -> anyhow::Result<()> {
        let out = arguments.out.as_deref();
        if arguments.format == Format::Pprof {
            for profile in &window.profiles {
                self.profiles += self.write(out, "pprof", &pprof_file(window, profile))?;
            }
            return Ok(());
        }
        for request in trace_requests(window, arguments.spans_per_request) {
            self.traces += self.write(out, "traces.otlp", &request.bytes)?;
        }
        for request in profile_requests(window, arguments.profiles_per_request, SampleShape::Merged) {
            self.profiles += self.write(out, "profiles.otlp", &request.bytes)?;
        }
        Ok(())
    }

    fn write(&mut self, folder: Option<&Path>, ending: &str, bytes: &[u8]) -> anyhow::Result<u64> {
        if let Some(folder) = folder {
            let path = folder.join(format!("{:08}.{ending}", self.files));
            fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
            self.files += 1;
        }
        Ok(bytes.len() as u64)
    }
}
