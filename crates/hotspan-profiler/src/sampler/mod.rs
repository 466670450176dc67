//! Taking samples: timers, the signal handler, unwinding, rings.
//!
//! ```text
//! monitor thread --arms--> CPU timer of each thread --SIGPROF--> handler on that thread
//!       ^                                                           | unwinds, reads its span
//!       +------------- drains <------------- ring of the thread <---+
//! ```

pub(crate) mod address_space;
pub(crate) mod capture;
pub(crate) mod clock;
mod handler;
mod interruption;
pub(crate) mod modules;
pub(crate) mod registers;
mod ring;
pub(crate) mod sample;
mod signal_payload;
mod stack_reader;
mod thread_id;
mod threads;
mod timer;
mod unwinding;
mod watch;

pub(crate) use threads::become_background_thread;
pub(crate) use watch::Sampler;

/// How CPU samples are taken, best first. The profiler takes the best one that the system allows and says which.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SamplingMode {
    /// A CPU timer per thread, armed by the monitor, and one for the process that stands in for threads too young to
    /// have their own.
    ThreadTimers,
    /// Timers are refused: the monitor watches the threads' CPU clocks and signals those that have used a period.
    SignalRotation,
    /// Signals are refused too: CPU time per thread, without stacks and spans.
    ClocksOnly,
}

impl SamplingMode {
    /// The name used in status and telemetry.
    pub fn as_str(self) -> &'static str {
        match self {
            SamplingMode::ThreadTimers => "thread_timers",
            SamplingMode::SignalRotation => "signal_rotation",
            SamplingMode::ClocksOnly => "clocks_only",
        }
    }
}
