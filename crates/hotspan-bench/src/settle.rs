//! Waiting until a server has nothing left to do: compaction is over when it uses no CPU and its store stops changing.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::disk::bytes_below;
use crate::process::Process;
use crate::server::Server;

const STEP: Duration = Duration::from_secs(1);
/// Share of one CPU below which a server counts as idle.
const IDLE_SHARE: f64 = 0.04;

/// Waits until a process was idle for a while, or for `longest`: what it still works on would slow down others.
pub(crate) fn wait_until_idle(process: Process, longest: Duration) -> anyhow::Result<()> {
    const QUIET_STEPS: u32 = 3;
    let started = Instant::now();
    let (mut quiet, mut usage) = (0, process.usage()?);
    while quiet < QUIET_STEPS && started.elapsed() < longest {
        thread::sleep(STEP);
        let usage_now = process.usage()?;
        let used = usage_now.cpu.saturating_sub(usage.cpu).as_secs_f64();
        quiet = if used > IDLE_SHARE * STEP.as_secs_f64() { 0 } else { quiet + 1 };
        usage = usage_now;
    }
    Ok(())
}

/// Waits until the server was idle for `quiet`, and says whether that came to pass in time.
pub(crate) fn settle(server: &Server, store: &Path, quiet: Duration, longest: Duration) -> anyhow::Result<bool> {
    let started = Instant::now();
    let mut quiet_since = Instant::now();
    let mut usage = server.usage()?;
    let mut bytes = bytes_below(store)?;
    while started.elapsed() < longest {
        thread::sleep(STEP);
        let (usage_now, bytes_now) = (server.usage()?, bytes_below(store)?);
        let used = usage_now.cpu.saturating_sub(usage.cpu).as_secs_f64();
        if used > IDLE_SHARE * STEP.as_secs_f64() || bytes_now != bytes {
            quiet_since = Instant::now();
        }
        (usage, bytes) = (usage_now, bytes_now);
        if quiet_since.elapsed() >= quiet {
            return Ok(true);
        }
    }
    Ok(false)
}
