//! `hotspan record`: profiles a program from outside, into a flame graph, a file or the server.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use hotspan_formats::flamebearer::FlamebearerProfile;
use hotspan_formats::profile_tree::flame_tree;
use hotspan_formats::svg::{SvgOptions, flame_svg};
use hotspan_formats::text_flame::{TextFlameOptions, text_flame};
use hotspan_formats::top_table::top_text;
use hotspan_formats::{collapsed, count_text, counted, duration_text, pprof, speedscope};
use hotspan_model::FlameTree;
use hotspan_record::{Method, Options, Recording, Report, Target, record};

use crate::client::{Client, ServerArguments};
use crate::screen::{Screen, say_beside, write_answer};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hotspan record -- ./program --its-own flags\n  \
    hotspan record --pid 4711 --for 30s -o profile.svg\n  \
    hotspan record --pid 4711 --for 1m --push --service order-service")]
pub(crate) struct RecordArguments {
    /// Record this process, with all its threads and what they start
    #[arg(long, value_name = "PID", conflicts_with = "command", required_unless_present = "command")]
    pid: Option<i32>,
    /// Start this program, and record it with all that it starts
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    /// Samples per second of CPU time
    #[arg(long, value_name = "HERTZ", default_value = "100", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rate: u32,
    /// Stop after this time, such as 30s; otherwise at the program's end, or at Ctrl-C
    #[arg(long = "for", value_name = "LENGTH")]
    lasts: Option<String>,
    /// Write the profile to this file instead of drawing it; its name says the format
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The format, where the file's name does not say it
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// Send the profile to the server
    #[arg(long)]
    push: bool,
    /// The service that the profile belongs to; the program's name if left out
    #[arg(long, value_name = "NAME")]
    service: Option<String>,
    /// Also record where threads wait and how long, and draw that instead of CPU time
    #[arg(long)]
    off_cpu: bool,
    /// Take samples this way only; otherwise the best that is allowed
    #[arg(long, value_name = "METHOD")]
    method: Option<MethodName>,
    #[command(flatten)]
    server: ServerArguments,
}

/// How samples are taken.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum MethodName {
    /// Perf events of the kernel
    Perf,
    /// Stop threads for a moment
    Ptrace,
}

/// How a profile is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A flame graph as text
    Text,
    /// A table of functions
    Top,
    /// gzipped pprof
    Pprof,
    /// A flame graph for the browser
    Svg,
    /// Stacks in lines, as flamegraph.pl reads them
    Collapsed,
    /// speedscope.app
    Speedscope,
    /// Pyroscope's flame graph
    Json,
}

impl Format {
    /// The format that a file's name says.
    fn of_file(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let by_ending = [
            (".pb.gz", Self::Pprof),
            (".pprof", Self::Pprof),
            (".svg", Self::Svg),
            (".speedscope.json", Self::Speedscope),
            (".json", Self::Json),
            (".collapsed", Self::Collapsed),
            (".folded", Self::Collapsed),
            (".txt", Self::Text),
        ];
        by_ending.into_iter().find(|(ending, _)| name.ends_with(ending)).map(|(_, format)| format)
    }
}

/// Records, and says what came of it.
pub(crate) fn run(arguments: &RecordArguments) -> anyhow::Result<()> {
    let format = arguments.chosen_format()?;
    let (target, name) = arguments.target()?;
    let service = arguments.service.clone().unwrap_or(name);
    let options = Options {
        hertz: arguments.rate,
        duration: arguments.lasts.as_deref().map(parse_length).transpose()?,
        method: arguments.method.map(|method| match method {
            MethodName::Perf => Method::Perf,
            MethodName::Ptrace => Method::Ptrace,
        }),
        off_cpu: arguments.off_cpu,
        service: service.clone(),
        ..Options::default()
    };
    let stop = stop_at_interrupt()?;
    let recording = record(target, &options, &stop)?;
    say_beside(&summary(&recording.report));
    for remark in &recording.report.remarks {
        say_beside(&format!("note: {remark}"));
    }
    if recording.report.samples + recording.report.waits > 0 {
        arguments.deliver(&recording, format, &service)?;
    } else {
        say_beside("no CPU time was used: nothing to show");
    }
    pass_on(recording.report.exit)
}

impl RecordArguments {
    fn chosen_format(&self) -> anyhow::Result<Format> {
        match (self.format, &self.output) {
            (Some(format), _) => Ok(format),
            (None, None) => Ok(Format::Text),
            (None, Some(path)) => Format::of_file(path).with_context(|| {
                format!("{}: the name does not say a format; use .pb.gz, .svg, .collapsed, .speedscope.json, .json or .txt, or --format", path.display())
            }),
        }
    }

    /// What to record, and what it is called.
    fn target(&self) -> anyhow::Result<(Target, String)> {
        if let Some(pid) = self.pid {
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm"))
                .with_context(|| format!("there is no process {pid}"))?;
            return Ok((Target::Process(pid), name.trim_end().to_owned()));
        }
        let Some((program, rest)) = self.command.split_first() else { bail!("name a program to start, or --pid") };
        let mut command = Command::new(program);
        command.args(rest);
        let name = Path::new(program).file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok((Target::Command(command), name))
    }

    fn deliver(&self, recording: &Recording, format: Format, service: &str) -> anyhow::Result<()> {
        if self.push {
            let client = Client::new(&self.server);
            let body = pprof::encode(&recording.profiles);
            client.post("/api/v1/profiles", &[("service", service)], "application/octet-stream", &body)?;
            say_beside(&format!("sent to {} as {service}", client.base()));
        }
        if self.output.is_some() || !self.push || self.format.is_some() {
            let output = self.output.as_deref();
            write_answer(&write_as(recording, format, Screen::of(output)), output, false)?;
        }
        if let Some(path) = &self.output {
            say_beside(&format!("written to {}", path.display()));
        }
        Ok(())
    }
}

/// The profile in a format.
fn write_as(recording: &Recording, format: Format, screen: Screen) -> Vec<u8> {
    let set = &recording.profiles;
    // Waits come last, if they were asked for and seen.
    let Some(profile) = set.profiles.last() else { return Vec::new() };
    let unit = profile.profile_type.sample_unit.clone();
    let name = profile.labels.service().into_owned();
    let tree: FlameTree = flame_tree(set, [profile]);
    match format {
        Format::Pprof => pprof::encode(set),
        Format::Text => {
            let (width, colour) = (screen.width(), screen.colour());
            let options = TextFlameOptions { width, colour, unit, ..TextFlameOptions::default() };
            text_flame(&tree, &options).into_bytes()
        }
        Format::Top => top_text(&tree, &unit, 40, screen.width()).into_bytes(),
        Format::Svg => flame_svg(&tree, &SvgOptions { title: name, unit, ..SvgOptions::default() }).into_bytes(),
        Format::Collapsed => collapsed::encode(&tree).into_bytes(),
        Format::Speedscope => speedscope::encode(&tree, &name, &unit).into_bytes(),
        Format::Json => {
            // Plain data always serialises.
            serde_json::to_vec(&FlamebearerProfile::single(&tree, &profile.profile_type)).unwrap_or_default()
        }
    }
}

fn summary(report: &Report) -> String {
    let method = report.method.map_or("", Method::as_str);
    let cpu = duration_text(i64::try_from(report.cpu_ns).unwrap_or(i64::MAX));
    let mut text = format!(
        "{}, {cpu} of CPU, {}, by {method}",
        counted(report.samples, "sample"),
        counted(report.threads as u64, "thread")
    );
    if report.waits > 0 {
        let waited = duration_text(i64::try_from(report.off_cpu_ns).unwrap_or(i64::MAX));
        text.push_str(&format!(", {} of {waited}", counted(report.waits, "wait")));
    }
    if report.lost_samples > 0 {
        text.push_str(&format!(", {} lost", count_text(report.lost_samples)));
    }
    if report.cut_stacks > 0 {
        text.push_str(&format!(", {} cut", counted(report.cut_stacks, "stack")));
    }
    text
}

fn parse_length(text: &str) -> anyhow::Result<Duration> {
    hotspan_server::parse_duration(text).with_context(|| format!("--for: {text:?} is not a length such as 30s"))
}

/// A flag that the first Ctrl-C sets: what was recorded until then is kept.
fn stop_at_interrupt() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&stop);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name("interrupt".to_owned()).spawn(move || {
        // Without the signal there is still the program's end.
        let _ = runtime.block_on(tokio::signal::ctrl_c());
        told.store(true, Ordering::Relaxed);
    })?;
    Ok(stop)
}

/// Ends as the program did, as a shell would see it.
fn pass_on(exit: Option<ExitStatus>) -> anyhow::Result<()> {
    use std::os::unix::process::ExitStatusExt;
    match exit {
        Some(status) if !status.success() => {
            let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
            std::process::exit(code);
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: names of files with known endings, and one without.
    /// Guarantee: the longest ending decides, and no format is guessed.
    #[test]
    fn file_names_say_the_format() {
        let of = |name: &str| Format::of_file(Path::new(name));
        assert_eq!(of("a.speedscope.json"), Some(Format::Speedscope));
        assert_eq!(of("a.json"), Some(Format::Json));
        assert_eq!(of("cpu.PB.gz"), Some(Format::Pprof));
        assert_eq!(of("profile"), None);
    }
}
