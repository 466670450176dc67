//! The profiler as a service sees it: a builder, and a guard that keeps it alive.

use crate::aggregate::Conditions;
use crate::config::{self, Adaptive, Config, ConfigError, ControlEndpoint, PolicySource};
use crate::context::ProcessContext;
use crate::control::endpoint::{ControlServer, Controllable};
use crate::control::policy::PolicyPoller;
use crate::export::Destination;
use crate::export::otlp::Identity;
use crate::export::upload::Uploader;
use crate::export::wire::PROCESS_ID;
use crate::mailbox::{Command, Mailbox};
use crate::monitor::Monitor;
use crate::redact::{REDACTED, Redaction};
use crate::sampler::{SamplingMode, become_background_thread};
use crate::status::Status;
use crate::symbols::Symbols;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

/// One profiler per process: there is one signal.
static EXISTS: AtomicBool = AtomicBool::new(false);

/// Why the profiler did not start. The service can go on without it.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A setting is wrong.
    #[error("profiling is not configured rightly: {0}")]
    Config(#[from] ConfigError),
    /// There is a profiler in this process already.
    #[error("a profiler runs in this process already")]
    AlreadyExists,
    /// The system refused a thread or a socket.
    #[error("the system refused what profiling needs: {0}")]
    System(#[from] io::Error),
}

/// Collects settings, then starts the profiler.
#[derive(Debug, Clone)]
#[must_use = "nothing is profiled until `start` is called"]
pub struct ProfilerBuilder {
    config: Config,
    use_environment: bool,
}

impl ProfilerBuilder {
    /// Sends OTLP profiles to this server, such as `http://localhost:4318`.
    pub fn endpoint(self, endpoint: impl Into<String>) -> ProfilerBuilder {
        self.destination(Destination::otlp(endpoint))
    }

    /// Sends profiles to one more place.
    pub fn destination(mut self, destination: Destination) -> ProfilerBuilder {
        self.config.destinations.push(destination);
        self
    }

    /// Hands every upload to a function, as an encoded OTLP `ExportProfilesServiceRequest`.
    pub fn on_upload(self, receive: impl Fn(&[u8]) + Send + Sync + 'static) -> ProfilerBuilder {
        self.destination(Destination::Function(Arc::new(receive)))
    }

    /// Adds a resource attribute.
    pub fn tag(mut self, key: impl Into<String>, value: impl Into<String>) -> ProfilerBuilder {
        self.config.tags.push((key.into(), value.into()));
        self
    }

    /// CPU samples per second of CPU time; 100 unless set.
    pub fn cpu_hertz(mut self, hertz: u32) -> ProfilerBuilder {
        self.config.cpu_hertz = (hertz > 0).then_some(hertz);
        self
    }

    /// Samples the heap, every so many bytes on average (512 KiB is usual).
    pub fn memory(mut self, interval: usize) -> ProfilerBuilder {
        self.config.memory_interval = Some(interval.max(1));
        self
    }

    /// Samples threads that work on a span by wall clock, and measures time polled and parked per span.
    pub fn wall_hertz(mut self, hertz: u32) -> ProfilerBuilder {
        self.config.wall_hertz = (hertz > 0).then_some(hertz);
        self
    }

    /// Profiles waits for the locks in [`sync`](crate::sync).
    pub fn locks(mut self, on: bool) -> ProfilerBuilder {
        self.config.locks = on;
        self
    }

    /// Which requests keep their samples in full.
    pub fn conditions(mut self, conditions: Conditions) -> ProfilerBuilder {
        self.config.conditions = conditions;
        self
    }

    /// Time between uploads; ten seconds unless set.
    pub fn upload_interval(mut self, interval: Duration) -> ProfilerBuilder {
        self.config.upload_interval = interval;
        self
    }

    /// Frames per stack; 64 unless set.
    pub fn max_stack_depth(mut self, frames: usize) -> ProfilerBuilder {
        self.config.max_stack_depth = frames;
        self
    }

    /// How the rate follows the load.
    pub fn adaptive(mut self, adaptive: Adaptive) -> ProfilerBuilder {
        self.config.adaptive = adaptive;
        self
    }

    /// Samples at the floor rate while the machine is busier than this percentage.
    pub fn shed_load_above(mut self, percent: f64) -> ProfilerBuilder {
        self.config.load_shedding_percent = Some(percent);
        self
    }

    /// How much is found out about addresses in this process.
    pub fn symbols(mut self, symbols: Symbols) -> ProfilerBuilder {
        self.config.symbols = symbols;
        self
    }

    /// Names that must not leave the process.
    pub fn redact(mut self, redaction: Redaction) -> ProfilerBuilder {
        self.config.redaction = redaction;
        self
    }

    /// Serves start, stop and status on a loopback address, to those who hold the token.
    pub fn control(mut self, listen: SocketAddr, token: impl Into<String>) -> ProfilerBuilder {
        self.config.control = Some(ControlEndpoint { listen, token: token.into(), allow_remote: false });
        self
    }

    /// Asks a Hotspan server for a policy every 30 seconds.
    pub fn policy_from(mut self, endpoint: impl Into<String>) -> ProfilerBuilder {
        self.config.policy = Some(PolicySource::new(endpoint));
        self
    }

    /// Does not sample until told to.
    pub fn paused(mut self) -> ProfilerBuilder {
        self.config.enabled = false;
        self
    }

    /// Tries no better mode than this one.
    pub fn best_mode(mut self, mode: SamplingMode) -> ProfilerBuilder {
        self.config.best_mode = mode;
        self
    }

    /// Applies the `profiling:` section of a YAML file.
    ///
    /// # Errors
    /// For any key or value that is not understood, with its line.
    pub fn yaml(mut self, text: &str) -> Result<ProfilerBuilder, ConfigError> {
        self.config.apply_yaml(text)?;
        Ok(self)
    }

    /// Changes any setting.
    pub fn configure(mut self, change: impl FnOnce(&mut Config)) -> ProfilerBuilder {
        change(&mut self.config);
        self
    }

    /// Leaves environment variables alone; otherwise they win over everything else.
    pub fn ignore_environment(mut self) -> ProfilerBuilder {
        self.use_environment = false;
        self
    }

    /// Starts the profiler. It runs until the returned guard is dropped.
    ///
    /// # Errors
    /// If a setting is wrong, a profiler exists already, or the system refuses a thread.
    pub fn start(mut self) -> Result<Profiler, StartError> {
        if self.use_environment {
            config::from_environment(&mut self.config)?;
        }
        self.config.check()?;
        if EXISTS.swap(true, Ordering::SeqCst) {
            return Err(StartError::AlreadyExists);
        }
        let claim = Claim;
        Profiler::start(self.config, claim)
    }
}

/// The right to be the process's profiler; given back when dropped.
#[derive(Debug)]
struct Claim;

impl Drop for Claim {
    fn drop(&mut self) {
        EXISTS.store(false, Ordering::SeqCst);
    }
}

/// A running profiler. Dropping it sends what is left and stops everything.
///
/// ```
/// # fn main() -> Result<(), hotspan_profiler::StartError> {
/// let profiler = hotspan_profiler::Profiler::builder("orders").on_upload(|_otlp| {}).start()?;
/// assert!(profiler.status().hertz <= 100);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Profiler {
    mailbox: Arc<Mailbox>,
    monitor: Option<JoinHandle<()>>,
    control: Option<ControlServer>,
    policy: Option<PolicyPoller>,
    _process_context: Option<ProcessContext>,
    // Last, so that a new profiler can only start when all of the above is gone.
    _claim: Claim,
}

impl Profiler {
    /// A builder for a service of this name.
    pub fn builder(service_name: impl Into<String>) -> ProfilerBuilder {
        let config = Config { service_name: service_name.into(), ..Config::default() };
        ProfilerBuilder { config, use_environment: true }
    }

    fn start(config: Config, claim: Claim) -> Result<Profiler, StartError> {
        let signal = config.signal;
        let resource = resource_of(&config);
        let process_context = config.publish_process_context.then(|| ProcessContext::publish(&resource).ok()).flatten();
        let identity = Identity { resource, redaction: config.redaction.clone() };
        let uploader =
            Uploader::start(config.destinations.clone(), identity, config.symbols, config.upload_timeout, move || {
                become_background_thread(10, signal);
            })?;
        let mailbox = Arc::new(Mailbox::new(config.best_mode));
        let (monitor_mailbox, monitor_config) = (Arc::clone(&mailbox), config.clone());
        let (ready, started) = mpsc::channel::<()>();
        let monitor = std::thread::Builder::new().name("hotspan-monitor".into()).spawn(move || {
            become_background_thread(0, signal);
            let monitor = Monitor::new(monitor_config, &monitor_mailbox, &uploader);
            monitor.run(move || drop(ready));
        })?;
        // The monitor drops its end when the first timers are armed (or if it cannot go on).
        let _ = started.recv();
        let mut profiler = Profiler {
            mailbox,
            monitor: Some(monitor),
            control: None,
            policy: None,
            _process_context: process_context,
            _claim: claim,
        };
        if let Some(endpoint) = &config.control {
            let target = Arc::new(Remote(Arc::clone(&profiler.mailbox)));
            let prepare = move || become_background_thread(10, signal);
            profiler.control = Some(ControlServer::start(endpoint, target, prepare)?);
        }
        if let Some(source) = &config.policy {
            let mailbox = Arc::clone(&profiler.mailbox);
            let prepare = move || become_background_thread(10, signal);
            let apply = move |policy| mailbox.send(Command::Apply(policy));
            profiler.policy = Some(PolicyPoller::start(source, config.service_name, prepare, apply)?);
        }
        Ok(profiler)
    }

    /// Takes up sampling after [`Profiler::pause`], or for the first time if it was built paused.
    pub fn resume(&self) {
        self.mailbox.send(Command::Start);
    }

    /// Stops sampling; the profiler stays ready.
    pub fn pause(&self) {
        self.mailbox.send(Command::Stop);
    }

    /// What the profiler saw, lost and cost; at most a second old.
    pub fn status(&self) -> Status {
        self.mailbox.status()
    }

    /// Ends the current batch and queues it for upload. Returns when it is queued; the status is then up to date.
    pub fn flush(&self) {
        let (done, flushed) = mpsc::channel();
        self.mailbox.send(Command::Flush(done));
        // An error means that the monitor is gone, and with it everything to flush.
        let _ = flushed.recv();
    }

    /// Where the control endpoint listens, if there is one.
    pub fn control_address(&self) -> Option<SocketAddr> {
        self.control.as_ref()?.address().ok()
    }
}

impl Drop for Profiler {
    fn drop(&mut self) {
        self.control = None;
        self.policy = None;
        self.mailbox.send(Command::Close);
        if let Some(monitor) = self.monitor.take() {
            // A panic of the monitor must not become one of the service.
            let _ = monitor.join();
        }
    }
}

/// A profiler can be held in a static or an `Arc` and asked from any thread.
const _: () = {
    const fn can_be_shared<T: Send + Sync>() {}
    can_be_shared::<Profiler>();
};

/// The control endpoint's hold on the profiler.
#[derive(Debug)]
struct Remote(Arc<Mailbox>);

impl Controllable for Remote {
    fn start(&self) {
        self.0.send(Command::Start);
        self.settle();
    }

    fn stop(&self) {
        self.0.send(Command::Stop);
        self.settle();
    }

    fn status_json(&self) -> String {
        self.0.status().to_json()
    }
}

impl Remote {
    /// Waits until the monitor has heeded what was sent before, so that the answer shows it.
    fn settle(&self) {
        let (done, settled) = mpsc::channel();
        self.0.send(Command::Flush(done));
        // Time out rather than hang on a monitor that is closing.
        let _ = settled.recv_timeout(Duration::from_secs(1));
    }
}

/// What this process is, as uploads and its published context tell it: nothing that is to stay inside.
fn resource_of(config: &Config) -> Vec<(String, String)> {
    let mut resource = vec![("service.name".to_owned(), config.service_name.clone())];
    resource.extend(config.tags.iter().cloned());
    resource.push((PROCESS_ID.into(), std::process::id().to_string()));
    if let Ok(path) = std::fs::read_link("/proc/self/exe") {
        resource.push(("process.executable.path".into(), path.to_string_lossy().into_owned()));
    }
    resource.push(("telemetry.sdk.name".into(), env!("CARGO_PKG_NAME").into()));
    resource.push(("telemetry.sdk.language".into(), "rust".into()));
    resource.push(("telemetry.sdk.version".into(), env!("CARGO_PKG_VERSION").into()));
    for (_, value) in &mut resource {
        if config.redaction.covers(value) {
            *value = REDACTED.into();
        }
    }
    resource
}
