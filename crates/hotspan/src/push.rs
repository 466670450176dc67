//! `hotspan push`: profiles that a profiler left in files, sent to a server.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use hotspan_formats::counted;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::client::{Client, ServerArguments};
use crate::screen::{say, say_beside};

#[derive(Debug, Args)]
#[command(after_help = "Formats, told by content, plain or compressed with gzip or zstd:
  pprof, JFR (async-profiler, JDK), V8 .cpuprofile and .heapprofile, speedscope, flamebearer,
  collapsed stacks, perf script, OTLP profiles (protobuf or JSON)

Examples:
  hotspan push cpu.pb.gz --service order-service --label version=1.4
  hotspan push 4bf92f3577b34da6a3ce929d0e0e4736.jfr --service order-service \\
      --trace-id 4bf92f3577b34da6a3ce929d0e0e4736 --span-id 00f067aa0ba902b7
  perf script | hotspan push - --service order-service
  hotspan push stacks.collapsed --service order-service --sample-rate 99  # values count samples
  hotspan push exported.collapsed --service order-service --type cpu      # values are nanoseconds")]
pub(crate) struct PushArguments {
    /// Files to send; - is standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// The service that was profiled; files of OTLP may name theirs themselves
    #[arg(long, value_name = "NAME")]
    service: Option<String>,
    /// A label of the profiles; may be given several times
    #[arg(long = "label", value_name = "NAME=VALUE")]
    labels: Vec<String>,
    /// The trace that the whole file belongs to; samples that name their own keep it
    #[arg(long, value_name = "ID")]
    trace_id: Option<String>,
    /// The span that the whole file belongs to
    #[arg(long, value_name = "ID")]
    span_id: Option<String>,
    /// An id by which spans refer to the file in their attribute `profile.id`; they may also name the file in
    /// `profile.file`
    #[arg(long, value_name = "ID")]
    profile_id: Option<String>,
    /// When the profile started, for files that do not say; like 2026-01-31T10:00:00Z, 1700000000 or now-1h
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// When the profile ended, for files that do not say; without --from it starts as much earlier as it is long
    /// [default: now]
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// What the values are, for files that do not say (collapsed stacks): cpu, wall, alloc_space, … Values are in the
    /// unit of the type, nanoseconds for time, unless --sample-rate is given [default: cpu if --sample-rate is given,
    /// plain samples otherwise]
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// Samples a second, for files that count samples and do not say how often they were taken: their values become
    /// time
    #[arg(long, value_name = "HERTZ")]
    sample_rate: Option<u32>,
    #[command(flatten)]
    server: ServerArguments,
}

/// Sends every file; those that are refused are named, and the others stored all the same.
pub(crate) fn run(arguments: &PushArguments) -> anyhow::Result<()> {
    let client = Client::new(&arguments.server);
    let facts = facts(arguments);
    let query: Vec<(&str, &str)> = facts.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let mut refused = 0;
    for file in &arguments.files {
        match push(&client, &query, file) {
            Ok(line) => say(&format!("{}: {line}", file.display())),
            Err(error) => {
                refused += 1;
                say_beside(&format!("{}: {error:#}", file.display()));
            }
        }
    }
    match (refused, arguments.files.len()) {
        (0, _) => Ok(()),
        (_, 1) => bail!("nothing is stored"),
        (refused, count) => bail!("{refused} of {count} files are not stored"),
    }
}

/// What the command line says about the files, as the server wants to be told.
fn facts(arguments: &PushArguments) -> Vec<(&'static str, String)> {
    let PushArguments { service, trace_id, span_id, from, until, kind, sample_rate, profile_id, .. } = arguments;
    let rate = sample_rate.map(|rate| rate.to_string());
    let known = [("service", service), ("trace_id", trace_id), ("span_id", span_id), ("from", from), ("until", until)];
    let known = known.into_iter().chain([("type", kind), ("sample_rate", &rate), ("profile_id", profile_id)]);
    let known = known.filter_map(|(name, value)| Some((name, value.clone()?)));
    known.chain(arguments.labels.iter().map(|label| ("label", label.clone()))).collect()
}

fn push(client: &Client, query: &[(&str, &str)], path: &Path) -> anyhow::Result<String> {
    let (input, length): (Box<dyn Read>, Option<u64>) = if path == Path::new("-") {
        (Box::new(io::stdin().lock()), None)
    } else {
        let file = File::open(path).context("cannot be opened")?;
        let facts = file.metadata().context("cannot be read")?;
        if facts.is_dir() {
            bail!("is a directory; name the files in it");
        }
        // A pipe has no length to be told beforehand.
        (Box::new(file), facts.is_file().then_some(facts.len()))
    };
    let bar = progress_bar(&path.display().to_string(), length.unwrap_or(0));
    let name = full_path(path);
    let query: Vec<(&str, &str)> = query.iter().copied().chain(name.iter().map(|name| ("file", &**name))).collect();
    let watched = Watched { input, bar: bar.clone(), length };
    let answer = client.post_stream("/api/v1/profiles", &query, watched, length);
    bar.finish_and_clear();
    let answer = answer?.json()?;
    let count = |name: &str| answer[name].as_u64().unwrap_or(0);
    let again = match count("duplicates") {
        0 => String::new(),
        duplicates => format!(", of which {} had come before", counted(duplicates, "profile")),
    };
    let cut = match count("cut_frames") {
        0 => String::new(),
        cut => format!(", without {} of stacks that are too deep", counted(cut, "frame")),
    };
    let shortened = match count("cut_texts") {
        0 => String::new(),
        cut => format!(", {} cut to limits.max_text_bytes", counted(cut, "text")),
    };
    let types = answer["profile_types"].as_array().into_iter().flatten().filter_map(|id| short_name(id.as_str()?));
    let types = types.collect::<Vec<_>>().join(", ");
    let (profiles, samples) = (counted(count("profiles"), "profile"), counted(count("samples"), "sample"));
    Ok(format!("{profiles} with {samples} stored{again}{cut}{shortened} ({types})"))
}

/// What spans may call a file: where each request has a folder of its own, the files in them are all called the same.
fn full_path(path: &Path) -> Option<String> {
    if path == Path::new("-") {
        return None;
    }
    std::path::absolute(path).ok()?.to_str().map(str::to_owned)
}

/// A reader that moves a bar.
struct Watched {
    input: Box<dyn Read>,
    bar: ProgressBar,
    length: Option<u64>,
}

impl Read for Watched {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(into)?;
        self.bar.inc(count as u64);
        if self.length.is_some_and(|length| self.bar.position() >= length) {
            self.bar.set_message("sent; the server reads it");
        }
        Ok(count)
    }
}

/// The two parts of a profile type that people know it by.
fn short_name(id: &str) -> Option<String> {
    let mut parts = id.split(':');
    Some(format!("{}:{}", parts.next()?, parts.next()?))
}

/// Smaller files are gone before a bar could be read.
const LARGE_FILE: u64 = 4 << 20;

/// A bar for a large file, drawn where a person looks.
fn progress_bar(name: &str, length: u64) -> ProgressBar {
    if length < LARGE_FILE || !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    drawn_bar(name, length, ProgressDrawTarget::stderr())
}

fn drawn_bar(name: &str, length: u64, target: ProgressDrawTarget) -> ProgressBar {
    let template = "{prefix} {wide_bar} {bytes} of {total_bytes}, {binary_bytes_per_sec}, {eta} left {msg}";
    let bar = ProgressBar::with_draw_target(Some(length), target).with_prefix(name.to_owned());
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        // A test draws it.
        Err(_) => bar,
    }
}

#[cfg(test)]
mod tests {
    use indicatif::InMemoryTerm;

    use super::*;

    /// Scenario: half of a large file is sent. Guarantee: the bar shows the file, how much of how much, and a bar.
    #[test]
    fn the_bar_tells_how_far() {
        let terminal = InMemoryTerm::new(5, 100);
        let bar = drawn_bar("big.jfr", 8 << 20, ProgressDrawTarget::term_like(Box::new(terminal.clone())));
        bar.set_position(4 << 20);
        bar.tick();
        let shown = terminal.contents();
        assert!(shown.starts_with("big.jfr ") && shown.contains("4.00 MiB of 8.00 MiB"), "{shown}");
        assert!(shown.contains("██"), "{shown}");
        assert!(progress_bar("small", 100).is_hidden());
    }
}
