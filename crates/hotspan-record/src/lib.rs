//! Profiles a native program from outside: a command that is started, or a process that runs.
//!
//! ```text
//! perf events  (registers and stack copied by the kernel) --+
//!                                                            +--> Event --> unwound with framehop --> ProfileSet
//! ptrace       (threads stopped, where perf is forbidden) --+
//! ```
//!
//! The program needs no frame pointers, no build flags and no agent.

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
compile_error!("hotspan-record runs on Linux on x86_64 and aarch64");

mod demangle;
mod event;
mod jit_map;
mod kernel;
mod launch;
mod modules;
mod perf;
mod process;
mod ptrace;
mod recorder;
mod registers;

use std::io;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hotspan_model::ProfileSet;
use perf::PerfSource;
use ptrace::PtraceSource;
use recorder::Recorder;

/// How to record.
#[derive(Debug, Clone)]
pub struct Options {
    /// Samples per second of CPU time and thread.
    pub hertz: u32,
    /// Deepest stack; what lies nearer the root is cut and counted.
    pub max_depth: usize,
    /// Stack that is looked at for each sample.
    pub stack_bytes: u32,
    /// When to stop; never, if there is none.
    pub duration: Option<Duration>,
    /// Only this way of sampling; otherwise the best that is allowed.
    pub method: Option<Method>,
    /// Also record where threads wait, and how long: needs perf events and the right to see switches.
    pub off_cpu: bool,
    /// The service that the profile is said to be of.
    pub service: String,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            hertz: 100,
            max_depth: 256,
            stack_bytes: 32 << 10,
            duration: None,
            method: None,
            off_cpu: false,
            service: "recorded".to_owned(),
        }
    }
}

/// What is recorded.
#[derive(Debug)]
pub enum Target {
    /// A program that is started for it, with all that it starts.
    Command(Command),
    /// A process that runs, with its threads and all that they start.
    Process(i32),
}

/// How samples are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Perf events of the kernel.
    Perf,
    /// Threads are stopped for a moment.
    Ptrace,
}

impl Method {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Method::Perf => "perf events",
            Method::Ptrace => "ptrace",
        }
    }
}

/// What was seen, and what was not.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// How samples were taken.
    pub method: Option<Method>,
    /// Samples.
    pub samples: u64,
    /// CPU time that they stand for.
    pub cpu_ns: u64,
    /// Waits, and the time off the processors that they stand for.
    pub waits: u64,
    /// See `waits`.
    pub off_cpu_ns: u64,
    /// Threads that they are of.
    pub threads: usize,
    /// Records that the kernel had no room for.
    pub lost_samples: u64,
    /// Stacks that were deeper than the limit.
    pub cut_stacks: u64,
    /// What was missing, and what to change for it to be there.
    pub remarks: Vec<String>,
    /// How the command ended, if there was one and it ended.
    pub exit: Option<ExitStatus>,
}

/// A profile of a program.
#[derive(Debug)]
pub struct Recording {
    /// The samples, each with its time, thread and stack: a profile of CPU time, and one of waits if they were seen.
    pub profiles: ProfileSet<'static>,
    /// What stands around them.
    pub report: Report,
}

/// Why nothing was recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The kernel refuses perf events.
    #[error("perf events are forbidden: {0}")]
    PerfForbidden(String),
    /// Perf events failed otherwise.
    #[error("perf events failed: {0}")]
    Perf(#[source] io::Error),
    /// Threads could not be stopped.
    #[error("process {pid} can't be traced: {source}; run as its user, and see kernel.yama.ptrace_scope")]
    Ptrace {
        /// The process.
        pid: i32,
        /// What the kernel says.
        source: io::Error,
    },
    /// The process is not there.
    #[error("there is no process {0}")]
    NoProcess(i32),
    /// It ended before it could be watched.
    #[error("the process ended before it could be watched")]
    Gone,
    /// The command could not be started.
    #[error("the command can't be started: {0}")]
    Start(#[source] io::Error),
}

const LONGEST_WAIT: Duration = Duration::from_millis(50);

/// Records until the target ends, the time is over, or `stop` is set.
///
/// # Errors
/// If the target can't be started or watched.
pub fn record(target: Target, options: &Options, stop: &AtomicBool) -> Result<Recording, RecordError> {
    let mut recorder = Recorder::new(options.max_depth.max(1), options.hertz);
    let (mut source, mut child, pid) = match target {
        Target::Command(command) => {
            let watch = |pid| (Source::open(&[pid], pid, options, true), pid);
            let (child, (source, pid)) = launch::start_watched(command, watch).map_err(RecordError::Start)?;
            match source {
                Ok(source) => (source, Some(child), pid),
                Err(error) => {
                    end(child);
                    return Err(error);
                }
            }
        }
        Target::Process(pid) => {
            let tids = threads_of(pid);
            if tids.is_empty() {
                return Err(RecordError::NoProcess(pid));
            }
            let source = Source::open(&tids, pid, options, false)?;
            // What is mapped from here on comes as events.
            recorder.attach(pid, &tids).map_err(|_| RecordError::NoProcess(pid))?;
            (source, None, pid)
        }
    };
    let started = Instant::now();
    source.remark(options, &mut recorder.report);
    let is_over = |started: Instant| options.duration.is_some_and(|duration| started.elapsed() >= duration);
    while !stop.load(Ordering::Relaxed) && !is_over(started) {
        let ended = match &mut child {
            Some(child) => has_ended(child, &source, &mut recorder.report),
            None => threads_of(pid).is_empty(),
        };
        if ended {
            break;
        }
        source.step(
            options.duration.map_or(LONGEST_WAIT, |duration| {
                LONGEST_WAIT.min(duration.saturating_sub(started.elapsed())).max(Duration::from_millis(1))
            }),
            &mut recorder,
        );
    }
    source.finish(&mut recorder);
    if let Some(child) = child
        && recorder.report.exit.is_none()
    {
        recorder.report.exit = end(child);
    }
    let duration = i64::try_from(started.elapsed().as_nanos()).unwrap_or(i64::MAX);
    let (profiles, report) = recorder.finish(&options.service, clock_offset(), duration);
    Ok(Recording { profiles, report })
}

/// Whichever way samples are taken.
#[derive(Debug)]
enum Source {
    Perf(PerfSource),
    Ptrace(PtraceSource, Option<String>),
}

impl Source {
    fn open(tids: &[i32], pid: i32, options: &Options, on_exec: bool) -> Result<Source, RecordError> {
        if options.method != Some(Method::Ptrace) {
            match PerfSource::open(tids, options, on_exec) {
                Ok(source) => return Ok(Source::Perf(source)),
                Err(RecordError::PerfForbidden(reason)) if options.method.is_none() => {
                    return Ok(Source::Ptrace(PtraceSource::open(tids, pid, options, on_exec)?, Some(reason)));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Source::Ptrace(PtraceSource::open(tids, pid, options, on_exec)?, None))
    }

    fn remark(&self, options: &Options, report: &mut Report) {
        let sees_waits = matches!(self, Source::Perf(source) if source.off_cpu);
        if options.off_cpu && !sees_waits {
            report.remarks.push(
                "waits are not seen: that takes perf events with `sysctl kernel.perf_event_paranoid=1`, or CAP_PERFMON"
                    .to_owned(),
            );
        }
        match self {
            Source::Perf(source) => {
                report.method = Some(Method::Perf);
                if !source.kernel {
                    report.remarks.push(
                        "time in the kernel is not seen: `sysctl kernel.perf_event_paranoid=1`, or CAP_PERFMON, shows it"
                            .to_owned(),
                    );
                }
            }
            Source::Ptrace(_, reason) => {
                report.method = Some(Method::Ptrace);
                report.remarks.extend(reason.as_ref().map(|reason| {
                    format!(
                        "perf events are forbidden ({reason}), so threads are stopped for each sample; \
                             frames in the kernel are not seen"
                    )
                }));
            }
        }
    }

    fn step(&mut self, at_most: Duration, recorder: &mut Recorder) {
        match self {
            Source::Perf(source) => {
                source.wait(at_most);
                source.read(|event| recorder.take(event));
            }
            Source::Ptrace(source, _) => source.step(recorder),
        }
    }

    fn finish(&mut self, recorder: &mut Recorder) {
        match self {
            Source::Perf(source) => source.finish(|event| recorder.take(event)),
            Source::Ptrace(source, _) => source.finish(),
        }
    }
}

fn has_ended(child: &mut Child, source: &Source, report: &mut Report) -> bool {
    if let Source::Ptrace(source, _) = source {
        // Its end is reported to the tracer.
        report.exit = source.exit_of_first();
    } else if let Ok(exit) = child.try_wait() {
        report.exit = exit;
    }
    report.exit.is_some()
}

/// Ends a child that was started for the recording, kindly first.
fn end(mut child: Child) -> Option<ExitStatus> {
    // SAFETY: a signal to our own child, which has not been waited for.
    unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
    let deadline = Instant::now() + Duration::from_secs(2);
    while Instant::now() < deadline {
        if let Ok(Some(exit)) = child.try_wait() {
            return Some(exit);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    // It may have ended in between.
    let _ = child.kill();
    child.wait().ok()
}

fn threads_of(pid: i32) -> Vec<i32> {
    let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// What to add to the monotonic clock for nanoseconds since 1970.
fn clock_offset() -> i64 {
    now(libc::CLOCK_REALTIME).saturating_sub(now(libc::CLOCK_MONOTONIC))
}

fn now(clock: libc::clockid_t) -> i64 {
    // SAFETY: the structure is filled by the call.
    unsafe {
        let mut time: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(clock, &raw mut time);
        time.tv_sec as i64 * 1_000_000_000 + time.tv_nsec as i64
    }
}
