//! The control endpoint: shows the shop and switches its problems while it runs.
//!
//! It listens on loopback. Its address stands in a file that only the owner can read, with a secret in it, so that no
//! web page can switch anything behind a person's back.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::net::TcpListener;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use hotspan_profiler::TimedStream;
use serde_json::{Value, json};

use crate::http;
use crate::load::LoadCounters;
use crate::problems::{Problem, Problems};
use crate::random::random_u64;
use crate::telemetry::SpanQueue;

const FILE: &str = "demo-control";
const TIMEOUT: Duration = Duration::from_secs(5);

/// Why a running shop could not be switched.
#[derive(Debug)]
pub enum ControlError {
    /// No shop runs on this store.
    NotRunning,
    /// It runs, and did not do it.
    Refused(String),
}

impl std::fmt::Display for ControlError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ControlError::NotRunning => out.write_str("no demo runs on this store"),
            ControlError::Refused(why) => write!(out, "the running demo refused: {why}"),
        }
    }
}

impl std::error::Error for ControlError {}

/// A shop that runs in another process, found by its store.
#[derive(Debug, Clone)]
pub struct Control {
    address: String,
    secret: String,
}

impl Control {
    /// The shop that works with this store, if there is one and it answers.
    ///
    /// # Errors
    /// If there is none.
    pub fn of_store(store: &Path) -> Result<Control, ControlError> {
        let text = fs::read_to_string(store.join(FILE)).map_err(|_| ControlError::NotRunning)?;
        let (address, secret) = text.trim().split_once(' ').ok_or(ControlError::NotRunning)?;
        let control = Control { address: address.to_owned(), secret: secret.to_owned() };
        // A file may be left over from a shop that was killed.
        control.status()?;
        Ok(control)
    }

    /// What the shop says of itself: problems, counts, and its last slow checkouts.
    ///
    /// # Errors
    /// If the shop does not answer.
    pub fn status(&self) -> Result<Value, ControlError> {
        self.ask("GET", "status")
    }

    /// Plants a problem in the running shop, or fixes it. Returns the status after that.
    ///
    /// # Errors
    /// If the shop does not answer.
    pub fn switch(&self, problem: Problem, present: bool) -> Result<Value, ControlError> {
        self.ask("POST", &format!("{}/{}", if present { "break" } else { "fix" }, problem.name()))
    }

    fn ask(&self, method: &str, what: &str) -> Result<Value, ControlError> {
        let path = format!("/{}/{what}", self.secret);
        let answer = http::send(&self.address, method, &path, "application/json", &[], TIMEOUT)
            .map_err(|_| ControlError::NotRunning)?;
        if answer.status() != Some(200) {
            return Err(ControlError::Refused(String::from_utf8_lossy(&answer.body).into_owned()));
        }
        serde_json::from_slice(&answer.body).map_err(|error| ControlError::Refused(error.to_string()))
    }
}

/// What the endpoint shows and switches.
pub(crate) struct Controlled {
    pub(crate) problems: Arc<Problems>,
    pub(crate) counters: Arc<LoadCounters>,
    pub(crate) spans: Arc<SpanQueue>,
    /// Called before a problem is switched, to end what belongs to the time before.
    pub(crate) before_switch: Box<dyn Fn() + Send>,
}

/// The file with the endpoint's address; removed when dropped.
#[derive(Debug)]
pub(crate) struct ControlFile(PathBuf);

impl Drop for ControlFile {
    fn drop(&mut self) {
        // If it can't be removed it names a port where nobody answers, which readers expect.
        let _ = fs::remove_file(&self.0);
    }
}

/// Opens the endpoint and writes its address into the store's folder.
pub(crate) fn start(store: &Path, controlled: Controlled) -> io::Result<ControlFile> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let secret = format!("{:016x}{:016x}", random_u64(), random_u64());
    let path = store.join(FILE);
    // Written aside and renamed, so that nobody reads half of it.
    let aside = store.join(format!("{FILE}.new"));
    // One that was left over keeps its permissions: begin anew.
    let _ = fs::remove_file(&aside);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&aside)?;
    writeln!(file, "{} {secret}", listener.local_addr()?)?;
    drop(file);
    fs::rename(&aside, &path)?;
    thread::Builder::new().name("control".to_owned()).spawn(move || {
        for stream in listener.incoming().flatten() {
            // A caller that breaks off hurts only itself.
            let _ = serve(TimedStream::new(stream, TIMEOUT), &secret, &controlled);
        }
    })?;
    Ok(ControlFile(path))
}

fn serve(mut stream: TimedStream, secret: &str, controlled: &Controlled) -> io::Result<()> {
    let request = http::read_message(&mut stream)?;
    let mut words = request.first_line.split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    let result = match (method, parts.as_slice()) {
        (_, [given, ..]) if *given != secret => Err("403 Forbidden"),
        ("GET", [_, "status"]) => Ok(()),
        ("POST", [_, word @ ("fix" | "break"), name]) => match name.parse::<Problem>() {
            Ok(problem) => {
                (controlled.before_switch)();
                controlled.problems.set(problem, *word == "break");
                Ok(())
            }
            Err(_) => Err("404 Not Found"),
        },
        _ => Err("404 Not Found"),
    };
    match result {
        Ok(()) => http::answer(&mut stream, "200 OK", &status(controlled).to_string()),
        Err(status) => http::answer(&mut stream, status, &json!({ "error": status }).to_string()),
    }
}

fn status(controlled: &Controlled) -> Value {
    let problems: serde_json::Map<String, Value> = Problem::ALL
        .into_iter()
        .map(|problem| (problem.name().to_owned(), Value::Bool(controlled.problems.has(problem))))
        .collect();
    let slow: Vec<Value> = controlled
        .counters
        .slow_checkouts()
        .into_iter()
        .map(|slow| {
            json!({
                "trace_id": slow.trace_id,
                "duration_ms": slow.duration.as_millis() as u64,
                "items": slow.items,
                "age_ms": slow.at.elapsed().as_millis() as u64,
            })
        })
        .collect();
    json!({
        "problems": problems,
        "requests": controlled.counters.requests.load(Ordering::Relaxed),
        "failures": controlled.counters.failures.load(Ordering::Relaxed),
        "turned_away": controlled.counters.turned_away.load(Ordering::Relaxed),
        "dropped_spans": controlled.spans.dropped(),
        "slow_checkouts": slow,
    })
}
