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

/// The profiler that runs; dropping or stopping it sends what is left.
pub enum Profiling {
    Hotspan(Profiler),
    Pyroscope(Box<PyroscopeAgent<PyroscopeAgentRunning>>),
}

/// What requests need of it: with the pyroscope crate, functions that tag the thread.
pub struct Tags(Option<(Tag, Tag)>);

impl Profiling {
    /// Before the first span: the profiler must see OpenTelemetry's contexts from the start.
    pub fn start(mode: &str) -> Result<(Profiling, Tags), Box<dyn std::error::Error>> {
        match mode {
            "hotspan" => {
                observe_opentelemetry()?;
                let conditions = Conditions { sampled_traces: true, ..Conditions::default() };
                let builder = Profiler::builder(service_name()).endpoint("http://localhost:4318");
                Ok((Profiling::Hotspan(builder.conditions(conditions).start()?), Tags(None)))
            }
            "pyroscope" => {
                let server = std::env::var("PYROSCOPE_SERVER_ADDRESS");
                let server = server.unwrap_or_else(|_| "http://127.0.0.1:4040".to_owned());
                let backend = pprof_backend(PprofConfig::default(), BackendConfig::default());
                let version = env!("CARGO_PKG_VERSION");
                let agent = PyroscopeAgentBuilder::new(server, service_name(), 100, "pyroscope-rs", version, backend);
                let agent = agent.build()?.start()?;
                let (add, remove) = agent.tag_wrapper();
                Ok((Profiling::Pyroscope(Box::new(agent)), Tags(Some((Box::new(add), Box::new(remove))))))
            }
            other => Err(format!("there is no profiler {other:?}; use hotspan or pyroscope").into()),
        }
    }

    /// Sends what is left.
    pub fn stop(self) -> Result<(), Box<dyn std::error::Error>> {
        match self {
            Profiling::Hotspan(profiler) => drop(profiler),
            Profiling::Pyroscope(agent) => agent.stop()?.shutdown(),
        }
        Ok(())
    }
}

impl Tags {
    /// Runs work; with the pyroscope crate under the tags of the current span, if the request is chosen.
    pub fn around(&self, is_chosen: bool, work: &mut dyn FnMut()) {
        let Some((add, remove)) = self.0.as_ref().filter(|_| is_chosen) else { return work() };
        let context = Context::current();
        let span = context.span().span_context().clone();
        let (trace_id, span_id) = (span.trace_id().to_string(), span.span_id().to_string());
        let [trace, span] = ["trace_id", "span_id"].map(str::to_owned);
        // Tags are set one by one: the span first and last, so that no sample knows the trace without the span.
        if let Err(error) = add(span.clone(), span_id.clone()).and_then(|()| add(trace.clone(), trace_id.clone())) {
            eprintln!("the request is not profiled: {error}");
        }
        work();
        if let Err(error) = remove(trace, trace_id).and_then(|()| remove(span, span_id)) {
            eprintln!("the thread keeps its tags: {error}");
        }
    }
}
