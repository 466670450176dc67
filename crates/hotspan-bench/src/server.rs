//! The server under test: a child process on a store of its own, watched through procfs.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use crate::http::Client;

/// How a server is started, again and again on the same store.
#[derive(Debug, Clone)]
pub(crate) struct Launch {
    pub(crate) binary: PathBuf,
    pub(crate) store: PathBuf,
    pub(crate) log: PathBuf,
    pub(crate) further_arguments: Vec<String>,
}

/// A running server. It is stopped when this is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    /// Everything but OTLP.
    pub(crate) http: SocketAddr,
    /// OTLP over HTTP.
    pub(crate) otlp: SocketAddr,
    /// From the start of the process until it said that it is ready.
    pub(crate) ready_after: Duration,
}

const START_TIMEOUT: Duration = Duration::from_secs(120);
const STOP_TIMEOUT: Duration = Duration::from_secs(30);
/// Clock ticks of procfs in a second, on every Linux that is in use.
const TICKS_PER_SECOND: u64 = 100;

impl Launch {
    pub(crate) fn start(&self) -> anyhow::Result<Server> {
        let log = File::options().create(true).append(true).open(&self.log)?;
        let started = Instant::now();
        let mut command = Command::new(&self.binary);
        command.arg("serve").arg("--store").arg(&self.store);
        for listener in ["--http", "--otlp-grpc", "--otlp-http", "--tempo"] {
            command.arg(listener).arg("127.0.0.1:0");
        }
        // Answers are checked against what was sent, and nothing else.
        command.args(["--self-tracing", "false"]);
        command.args(&self.further_arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        let child = command.spawn().with_context(|| format!("cannot start {}", self.binary.display()))?;
        let mut starting = Starting { child: Some(child) };
        let addresses = starting.addresses(started).with_context(|| self.last_words())?;
        wait_until_ready(addresses.0, started).with_context(|| self.last_words())?;
        let ready_after = started.elapsed();
        let child = starting.child.take().context("the server was taken twice")?;
        Ok(Server { child, http: addresses.0, otlp: addresses.1, ready_after })
    }

    /// Merges the store for good while no server runs: the bytes of each table then, and the CPU time that it took.
    pub(crate) fn compact(&self) -> anyhow::Result<(Vec<(String, u64)>, Duration)> {
        let before = cpu_time_of_children()?;
        let mut command = Command::new(&self.binary);
        command.args(["store", "compact", "--json", "--store"]).arg(&self.store);
        let output = command.output().with_context(|| format!("cannot start {}", self.binary.display()))?;
        anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let stats: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        let levels = stats["levels"].as_array().context("the store has no levels")?;
        let tables = levels.iter().filter_map(|level| {
            let bytes = level["bytes"].as_u64()? + level["index_bytes"].as_u64()?;
            Some((level["table"].as_str()?.to_owned(), bytes))
        });
        Ok((tables.collect(), cpu_time_of_children()?.saturating_sub(before)))
    }

    fn last_words(&self) -> String {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().rev().take(8).collect();
        let lines: Vec<&str> = lines.into_iter().rev().collect();
        format!("the server did not start; its log ends with:\n{}", lines.join("\n"))
    }
}

/// A child that is ended if the server does not come up.
struct Starting {
    child: Option<Child>,
}

impl Starting {
    /// The addresses that the server prints, one listener on a line. What it prints later is read and thrown away.
    fn addresses(&mut self, started: Instant) -> anyhow::Result<(SocketAddr, SocketAddr)> {
        let output = self.child.as_mut().and_then(|child| child.stdout.take()).context("no output to read")?;
        let (send, receive) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                // Nobody listens any more once both addresses are known.
                let _ = send.send(line);
            }
        });
        let (mut http, mut otlp) = (None, None);
        while started.elapsed() < START_TIMEOUT {
            match receive.recv_timeout(Duration::from_millis(100)) {
                Ok(line) => {
                    let Some((name, address)) = line.split_once(char::is_whitespace) else { continue };
                    let address = address.trim().trim_start_matches("http://").parse().ok();
                    match name.trim_end_matches(':') {
                        "http" => http = address.or(http),
                        "otlp-http" => otlp = address.or(otlp),
                        _ => {}
                    }
                    if let (Some(http), Some(otlp)) = (http, otlp) {
                        return Ok((http, otlp));
                    }
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => bail!("it ended without printing its addresses"),
            }
        }
        bail!("it printed no addresses in {} s", START_TIMEOUT.as_secs())
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn wait_until_ready(address: SocketAddr, started: Instant) -> anyhow::Result<()> {
    while started.elapsed() < START_TIMEOUT {
        if Client::new(address).get("/ready").is_ok_and(|answer| answer.status == 200) {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(5));
    }
    bail!("/ready did not answer 200 in {} s", START_TIMEOUT.as_secs())
}

/// What a process has used.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Usage {
    /// Time on CPUs, its own and the kernel's for it.
    pub(crate) cpu: Duration,
    /// Bytes that it caused to be written to disk.
    pub(crate) written: u64,
}

impl Server {
    /// CPU time and bytes written since it started.
    pub(crate) fn usage(&self) -> anyhow::Result<Usage> {
        let folder = Path::new("/proc").join(self.child.id().to_string());
        let stat = fs::read_to_string(folder.join("stat")).context("the server is gone")?;
        let cpu = cpu_time(&stat).with_context(|| format!("{stat:?} is not what procfs should say"))?;
        let io = fs::read_to_string(folder.join("io")).unwrap_or_default();
        Ok(Usage { cpu, written: number_after(&io, "write_bytes:").unwrap_or(0) })
    }

    /// CPU time of the compactions that it has finished; none if it does not tell.
    pub(crate) fn compaction_cpu(&self) -> Duration {
        let answer = Client::new(self.http).get("/api/v1/status").map(|answer| answer.body).unwrap_or_default();
        let status: serde_json::Value = serde_json::from_slice(&answer).unwrap_or_default();
        Duration::from_nanos(status["compaction"]["cpu_ns"].as_u64().unwrap_or(0))
    }

    /// The most memory that it ever had resident, in bytes.
    pub(crate) fn peak_memory(&self) -> anyhow::Result<u64> {
        let path = Path::new("/proc").join(self.child.id().to_string()).join("status");
        let status = fs::read_to_string(path).context("the server is gone")?;
        Ok(number_after(&status, "VmHWM:").context("procfs says no VmHWM")? * 1024)
    }

    /// Asks it to stop, and ends it if it does not.
    pub(crate) fn stop(mut self) -> anyhow::Result<()> {
        Command::new("kill").arg("-TERM").arg(self.child.id().to_string()).status().context("cannot run kill")?;
        let asked = Instant::now();
        while asked.elapsed() < STOP_TIMEOUT {
            if self.child.try_wait()?.is_some() {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(20));
        }
        bail!("the server did not stop in {} s", STOP_TIMEOUT.as_secs())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Does nothing to a process that has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// utime and stime: fields 14 and 15, counted behind the name, which may hold spaces.
pub(crate) fn cpu_time(stat: &str) -> Option<Duration> {
    two_times(stat, 11)
}

/// CPU time of all children that have ended.
fn cpu_time_of_children() -> anyhow::Result<Duration> {
    two_times(&fs::read_to_string("/proc/self/stat")?, 13).context("procfs tells no CPU time of children")
}

/// The sum of two neighbouring times in procfs, the first of which is this many fields after the name.
fn two_times(stat: &str, skipped: usize) -> Option<Duration> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut ticks = fields.split_whitespace().skip(skipped).map(|field| field.parse::<u64>().ok());
    let sum = ticks.next()?? + ticks.next()??;
    Some(Duration::from_millis(sum * 1000 / TICKS_PER_SECOND))
}

fn number_after(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: procfs of a process with an awkward name. Guarantee: its CPU time and memory.
    #[test]
    fn procfs() {
        let stat = "12 (a) b (c) S 1 12 12 0 -1 4194304 100 0 0 0 250 30 0 0 20 0 8 0 1";
        assert_eq!(cpu_time(stat), Some(Duration::from_millis(2800)));
        assert_eq!(cpu_time("nonsense"), None);
        assert_eq!(number_after("VmPeak:\t 9 kB\nVmHWM:\t  1234 kB\n", "VmHWM:"), Some(1234));
    }
}
