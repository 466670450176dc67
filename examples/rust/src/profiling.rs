//! The profilers that can run beside the service.
//!
//! `hotspan`    hotspan-profiler: follows OpenTelemetry's context by itself, through threads and polls
//! `pyroscope`  the pyroscope crate: the service tags the thread around the code that keeps the CPU busy

use hotspan_profiler::{Conditions, Profiler, observe_opentelemetry};
use opentelemetry::Context;
use opentelemetry::trace::TraceContextExt;
use pyroscope::PyroscopeAgent;
use pyroscope::backend::{BackendConfig, PprofConfig, pprof_backend};
use pyroscope::pyroscope::{PyroscopeAgentBuilder, PyroscopeAgentRunning};

use crate::tracing::service_name;

/// Runs the work that it is given; the service puts it around code that keeps the CPU busy.
pub type Around<'a> = &'a dyn Fn(&mut dyn FnMut());

type Tag = Box<dyn Fn(String, String) -> pyroscope::Result<()> + Send + Sync>;

pub enum Profiling {
    Hotspan(Profiler),
    Pyroscope { agent: Box<PyroscopeAgent<PyroscopeAgentRunning>>, add: Tag, remove: Tag },
}

impl Profiling {
    /// Before the first span: the profiler must see OpenTelemetry's contexts from the start.
    pub fn start(mode: &str) -> Result<Profiling, Box<dyn std::error::Error>> {
        match mode {
            "hotspan" => {
                observe_opentelemetry()?;
                let conditions = Conditions { sampled_traces: true, ..Conditions::default() };
                let builder = Profiler::builder(service_name()).endpoint("http://localhost:4318");
                Ok(Profiling::Hotspan(builder.conditions(conditions).start()?))
            }
            "pyroscope" => {
                let server = std::env::var("PYROSCOPE_SERVER_ADDRESS");
                let server = server.unwrap_or_else(|_| "http://127.0.0.1:4040".to_owned());
                let backend = pprof_backend(PprofConfig::default(), BackendConfig::default());
                let version = env!("CARGO_PKG_VERSION");
                let agent = PyroscopeAgentBuilder::new(server, service_name(), 100, "pyroscope-rs", version, backend);
                let agent = agent.build()?.start()?;
                let (add, remove) = agent.tag_wrapper();
                Ok(Profiling::Pyroscope { add: Box::new(add), remove: Box::new(remove), agent: Box::new(agent) })
            }
            other => Err(format!("there is no profiler {other:?}; use hotspan or pyroscope").into()),
        }
    }

    /// Runs work; with the pyroscope crate under the tags of the current span, if the request is chosen.
    pub fn around(&self, is_chosen: bool, work: &mut dyn FnMut()) {
        let Profiling::Pyroscope { add, remove, .. } = self else { return work() };
        if !is_chosen {
            return work();
        }
        let context = Context::current();
        let span = context.span().span_context().clone();
        let tags = [("trace_id", span.trace_id().to_string()), ("span_id", span.span_id().to_string())];
        let tag_all = |tag: &Tag| tags.iter().try_for_each(|(name, id)| tag((*name).to_owned(), id.clone()));
        if let Err(error) = tag_all(add) {
            eprintln!("the request is not profiled: {error}");
        }
        work();
        if let Err(error) = tag_all(remove) {
            eprintln!("the thread keeps its tags: {error}");
        }
    }

    /// Sends what is left.
    pub fn stop(self) -> Result<(), Box<dyn std::error::Error>> {
        match self {
            Profiling::Hotspan(profiler) => drop(profiler),
            Profiling::Pyroscope { agent, .. } => agent.stop()?.shutdown(),
        }
        Ok(())
    }
}
