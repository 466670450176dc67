//! What a process uses, as procfs tells it: a server under test, or a peer that someone else started.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;

/// Clock ticks of procfs in a second, on every Linux that is in use.
const TICKS_PER_SECOND: u64 = 100;

/// A process by its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) id: u32,
}

/// What a process has used.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Usage {
    /// Time on CPUs, its own and the kernel's for it.
    pub(crate) cpu: Duration,
    /// Bytes that it caused to be written to disk.
    pub(crate) written: u64,
}

impl Process {
    /// CPU time and bytes written since it started.
    pub(crate) fn usage(self) -> anyhow::Result<Usage> {
        let stat = self.read("stat")?;
        let cpu = cpu_time(&stat).with_context(|| format!("{stat:?} is not what procfs should say"))?;
        let io = self.read("io").unwrap_or_default();
        Ok(Usage { cpu, written: number_after(&io, "write_bytes:").unwrap_or(0) })
    }

    /// The most memory that it ever had resident, in bytes.
    pub(crate) fn peak_memory(self) -> anyhow::Result<u64> {
        Ok(number_after(&self.read("status")?, "VmHWM:").context("procfs says no VmHWM")? * 1024)
    }

    fn read(self, file: &str) -> anyhow::Result<String> {
        let path = Path::new("/proc").join(self.id.to_string()).join(file);
        fs::read_to_string(path).with_context(|| format!("process {} is gone", self.id))
    }
}

/// utime and stime: fields 14 and 15, counted behind the name, which may hold spaces.
pub(crate) fn cpu_time(stat: &str) -> Option<Duration> {
    two_times(stat, 11)
}

/// CPU time of all children that have ended.
pub(crate) fn cpu_time_of_children() -> anyhow::Result<Duration> {
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
