//! Settings: what is profiled, how often, under which conditions, and where it goes.

pub(crate) mod document;
mod environment;
mod section;
mod units;

pub use environment::from_environment;

use crate::aggregate::Conditions;
use crate::export::Destination;
use crate::redact::Redaction;
use crate::sampler::SamplingMode;
use crate::symbols::Symbols;
use std::net::SocketAddr;
use std::time::Duration;

pub(crate) use section::{Fields, read_conditions};

/// A setting that is not understood, with its line where it comes from a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", line.map(|line| format!("line {line}: ")).unwrap_or_default())]
pub struct ConfigError {
    /// The line of the file, counted from one.
    pub line: Option<usize>,
    /// What is wrong, and what would be right.
    pub message: String,
}

impl ConfigError {
    pub(crate) fn at(line: usize, message: impl Into<String>) -> ConfigError {
        ConfigError { line: Some(line), message: message.into() }
    }

    pub(crate) fn new(message: impl Into<String>) -> ConfigError {
        ConfigError { line: None, message: message.into() }
    }
}

/// How the sampling rate follows the load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Adaptive {
    /// Lower the rate when the profiler's own CPU (without what wall-clock samples cost, whose rate is as it was asked
    /// for) exceeds this share of the process's CPU, in percent.
    pub overhead_ceiling_percent: f64,
    /// Never sample more slowly than this many times per second of CPU: a floor in absolute terms, so that a process
    /// that is idle now is still seen when it wakes.
    pub floor_hertz: u32,
    /// Multiply the rate for threads that work on a request which has run for longer than the slow threshold.
    pub slow_request_factor: u32,
}

impl Default for Adaptive {
    fn default() -> Adaptive {
        Adaptive { overhead_ceiling_percent: 1.0, floor_hertz: 10, slow_request_factor: 2 }
    }
}

/// The HTTP endpoint that starts, stops and shows the profiler.
#[derive(Clone, PartialEq, Eq)]
pub struct ControlEndpoint {
    /// Where to listen; only loopback addresses unless `allow_remote`.
    pub listen: SocketAddr,
    /// What callers must send as `authorization: Bearer …`.
    pub token: String,
    /// Listen on an address that others can reach.
    pub allow_remote: bool,
}

impl std::fmt::Debug for ControlEndpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The token is a secret.
        f.debug_struct("ControlEndpoint").field("listen", &self.listen).finish_non_exhaustive()
    }
}

/// Where to ask for a policy, and how often.
#[derive(Clone, PartialEq, Eq)]
pub struct PolicySource {
    /// The Hotspan server, such as `http://localhost:4040`.
    pub endpoint: String,
    /// Time between questions.
    pub interval: Duration,
    /// Extra headers, such as a tenant or a token.
    pub headers: Vec<(String, String)>,
}

impl PolicySource {
    /// A server that is asked every 30 seconds.
    pub fn new(endpoint: impl Into<String>) -> PolicySource {
        PolicySource { endpoint: endpoint.into(), interval: Duration::from_secs(30), headers: Vec::new() }
    }
}

impl std::fmt::Debug for PolicySource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Headers may hold secrets.
        let mut source = f.debug_struct("PolicySource");
        source.field("endpoint", &self.endpoint).field("interval", &self.interval).finish_non_exhaustive()
    }
}

/// All settings. [`Config::default`] profiles CPU at 100 Hz and sends nothing anywhere.
#[derive(Debug, Clone)]
pub struct Config {
    /// Name of the service, `service.name` in OpenTelemetry.
    pub service_name: String,
    /// Other resource attributes.
    pub tags: Vec<(String, String)>,
    /// Where profiles go; each batch goes to all of them.
    pub destinations: Vec<Destination>,
    /// CPU samples per second of CPU time and thread; `None` is off. The kernel's tick (often 250 Hz) is the ceiling.
    pub cpu_hertz: Option<u32>,
    /// Mean bytes between heap samples; `None` is off. Needs [`HeapProfiler`](crate::HeapProfiler) as allocator.
    pub memory_interval: Option<usize>,
    /// Wall-clock samples per second of threads that work on a span, and time polled and parked per span; `None` is
    /// off. Wall samples interrupt system calls (with SA_RESTART), so this is opt-in.
    pub wall_hertz: Option<u32>,
    /// Waits for the locks in [`sync`](crate::sync).
    pub locks: bool,
    /// Which requests keep their samples in full.
    pub conditions: Conditions,
    /// Frames per stack, at most 256.
    pub max_stack_depth: usize,
    /// About how many bytes a batch may reach before it is sent early.
    pub max_profile_size: usize,
    /// Time between uploads.
    pub upload_interval: Duration,
    /// How long one attempt to upload may take; also about how long shutting down may wait for a dead server.
    pub upload_timeout: Duration,
    /// Sample at the floor while the machine's CPU use exceeds this percentage; `None` never sheds.
    pub load_shedding_percent: Option<f64>,
    /// How the rate follows the load.
    pub adaptive: Adaptive,
    /// How much is found out about addresses in this process.
    pub symbols: Symbols,
    /// Names that must not leave the process.
    pub redaction: Redaction,
    /// The control endpoint; off unless set.
    pub control: Option<ControlEndpoint>,
    /// Where to ask for a policy; off unless set.
    pub policy: Option<PolicySource>,
    /// Publish OTEP 4719 process context for profilers outside the process.
    pub publish_process_context: bool,
    /// The signal that timers send.
    pub signal: i32,
    /// The best mode to try: for systems where a better one misbehaves.
    pub best_mode: SamplingMode,
    /// Start sampling at once, rather than when told to.
    pub enabled: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            service_name: "unknown_service:rust".into(),
            tags: Vec::new(),
            destinations: Vec::new(),
            cpu_hertz: Some(100),
            memory_interval: None,
            wall_hertz: None,
            locks: false,
            conditions: Conditions::default(),
            max_stack_depth: 64,
            max_profile_size: 10 << 20,
            upload_interval: Duration::from_secs(10),
            upload_timeout: Duration::from_secs(5),
            load_shedding_percent: None,
            adaptive: Adaptive::default(),
            symbols: Symbols::default(),
            redaction: Redaction::default(),
            control: None,
            policy: None,
            publish_process_context: true,
            signal: libc::SIGPROF,
            best_mode: SamplingMode::ThreadTimers,
            enabled: true,
        }
    }
}

impl Config {
    /// Applies the `profiling:` section of a YAML file to these settings. The rest of the file is not looked at.
    ///
    /// # Errors
    /// For any key or value that is not understood, with its line; the settings are then unchanged.
    pub fn apply_yaml(&mut self, text: &str) -> Result<(), ConfigError> {
        // What was wrong before is no mistake of the file's.
        self.check()?;
        let mut changed = self.clone();
        section::apply(&mut changed, text)?;
        *self = changed;
        Ok(())
    }

    /// Refuses what cannot work.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        for destination in &self.destinations {
            destination.check().map_err(|error| ConfigError::new(error.to_string()))?;
        }
        if let Some(policy) = &self.policy {
            crate::export::http::Url::parse(&policy.endpoint).map_err(|error| ConfigError::new(error.to_string()))?;
        }
        if let Some(control) = &self.control {
            if !control.allow_remote && !control.listen.ip().is_loopback() {
                let message =
                    format!("control listens on {}, which others can reach; set allow_remote", control.listen);
                return Err(ConfigError::new(message));
            }
            if control.token.len() < 16 {
                return Err(ConfigError::new("the control token must have at least 16 characters"));
            }
        }
        let rates = [self.cpu_hertz, self.wall_hertz];
        if rates.iter().flatten().any(|hertz| !(1..=1000).contains(hertz)) {
            return Err(ConfigError::new("sampling rates lie between 1 and 1000 per second"));
        }
        if !(1..=256).contains(&self.max_stack_depth) {
            return Err(ConfigError::new("max_stack_depth lies between 1 and 256"));
        }
        if self.upload_interval < Duration::from_millis(100) {
            return Err(ConfigError::new("upload_interval is at least 100ms"));
        }
        Ok(())
    }
}
