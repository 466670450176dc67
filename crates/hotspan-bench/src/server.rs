//! The server under test: a child process on a store of its own, watched through procfs.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use crate::http::Client;
use crate::measure::Answering;
use crate::process::{Process, Usage, cpu_time_of_children};

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

impl Server {
    pub(crate) fn process(&self) -> Process {
        Process { id: self.child.id() }
    }

    /// Where it answers questions.
    pub(crate) fn answering(&self) -> Answering {
        Answering { process: self.process(), address: self.http }
    }

    pub(crate) fn usage(&self) -> anyhow::Result<Usage> {
        self.process().usage()
    }

    /// CPU time of the compactions that it has finished; none if it does not tell.
    pub(crate) fn compaction_cpu(&self) -> Duration {
        let status = self.status().unwrap_or_default();
        Duration::from_nanos(status["compaction"]["cpu_ns"].as_u64().unwrap_or(0))
    }

    /// Samples that it has committed since it started.
    pub(crate) fn stored_samples(&self) -> anyhow::Result<u64> {
        self.status()?["ingest"]["samples"].as_u64().context("the status has no count of samples")
    }

    fn status(&self) -> anyhow::Result<serde_json::Value> {
        Ok(serde_json::from_slice(&Client::new(self.http).get("/api/v1/status")?.body)?)
    }

    /// The most memory that it ever had resident, in bytes.
    pub(crate) fn peak_memory(&self) -> anyhow::Result<u64> {
        self.process().peak_memory()
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
