//! A running demo, as `hotspan demo` starts it.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::Value;

use super::{Answer, request, wait_for_end};

/// A running demo.
pub(crate) struct Demo {
    child: Child,
    store: PathBuf,
    pub(crate) http: String,
    said: Arc<Mutex<Vec<String>>>,
}

impl Demo {
    /// Starts a demo with these problems and this many requests a second.
    pub(crate) fn start(store: &Path, scenario: &str, rate: u32) -> Self {
        let mut child = demo_command(store)
            .args(["--http", "127.0.0.1:0", "--otlp-grpc", "off", "--otlp-http", "off", "--tempo", "off"])
            .args(["--scenario", scenario, "--rate", &rate.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let first = lines.next().expect("the demo prints its address").unwrap();
        let http = first.strip_prefix("http ").expect("the first line is the page's address").to_owned();
        // Read on, so that the demo never finds the pipe closed.
        let said = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&said);
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| heard.lock().unwrap().push(line)));
        Self { child, store: store.to_owned(), http, said }
    }

    /// What it has printed so far, after the first address.
    pub(crate) fn said(&self) -> String {
        self.said.lock().unwrap().join("\n")
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        request(&self.http, "GET", path, &[], &[]).unwrap()
    }

    /// Asks, and expects an answer.
    pub(crate) fn post_json(&self, path: &str, body: &Value) -> Value {
        super::post_json(&self.http, path, body)
    }

    /// Plants a problem (`--break`) or takes it away (`--fix`), as a person would from another terminal.
    pub(crate) fn switch(&self, flag: &str, problem: &str) {
        let output = demo_command(&self.store).args([flag, problem]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// Ends the demo as Ctrl-C does.
    pub(crate) fn interrupt(&mut self) -> ExitStatus {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        wait_for_end(&mut self.child)
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        // Only for a test that failed: the shop ends by itself when its parent is gone.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `hotspan demo` on a store.
pub(crate) fn demo_command(store: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hotspan"));
    command.args(["demo", "--store"]).arg(store);
    command
}

/// What the shop says of itself, through the endpoint whose address is in the store.
pub(crate) fn shop_status(store: &Path) -> Option<Value> {
    let control = std::fs::read_to_string(store.join("demo-control")).ok()?;
    let (address, secret) = control.trim().split_once(' ')?;
    let answer = request(address, "GET", &format!("/{secret}/status"), &[], &[]).ok()?;
    serde_json::from_slice(&answer.body).ok()
}
