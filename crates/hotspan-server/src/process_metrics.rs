//! The process as Prometheus' own libraries show it, since dashboards and alerts ask every service for these names. What the system
//! does not tell is left out.

use std::fmt::Write;
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

/// What Linux calls a second in `stat`, on all machines.
const TICKS: f64 = 100.0;

/// Appends to a text of OpenMetrics. `uptime_seconds` says when the process started.
pub(crate) fn write_process(text: &mut String, uptime_seconds: f64) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let read = |name: &str| fs::read_to_string(format!("/proc/self/{name}")).unwrap_or_default();
    if let Some(seconds) = cpu_seconds(&read("stat")) {
        write(text, "process_cpu_seconds", "_total", "counter", "CPU time of the process", seconds);
    }
    let gauges = [
        ("process_start_time_seconds", "When the process started, in seconds since 1970", Some(now - uptime_seconds)),
        ("process_resident_memory_bytes", "Memory that the process has in use", resident_bytes(&read("status"))),
        ("process_open_fds", "Open files and connections", open_files()),
        ("process_max_fds", "Files and connections that may be open", max_files(&read("limits"))),
    ];
    for (name, help, value) in gauges {
        if let Some(value) = value {
            write(text, name, "", "gauge", help, value);
        }
    }
}

fn write(text: &mut String, name: &str, ending: &str, kind: &str, help: &str, value: f64) {
    // Writing into a String can't fail.
    let _ = write!(text, "# HELP {name} {help}.\n# TYPE {name} {kind}\n{name}{ending} {value}\n");
}

/// User and system time, the 14th and 15th word; the second is a name that may hold anything.
fn cpu_seconds(stat: &str) -> Option<f64> {
    let mut words = stat.rsplit_once(") ")?.1.split(' ').skip(11);
    let mut ticks = || words.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / TICKS)
}

fn resident_bytes(status: &str) -> Option<f64> {
    let told = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    told.trim().strip_suffix(" kB")?.parse::<f64>().ok().map(|kilobytes| kilobytes * 1024.0)
}

fn open_files() -> Option<f64> {
    fs::read_dir("/proc/self/fd").ok().map(|files| files.count() as f64)
}

fn max_files(limits: &str) -> Option<f64> {
    let told = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    told.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: what Linux writes of a process, one with a name like the rest of the line; nothing at all.
    /// Guarantee: each number is found in its unit, and none where there is none.
    #[test]
    fn numbers_are_found() {
        let stat = "7 (a) b 9) S 1 7 7 0 -1 4194560 1 0 0 0 150 50 0 0 20 0 9 0 100 1000 10 1844 1 1 0";
        assert_eq!(cpu_seconds(stat), Some(2.0));
        assert_eq!(resident_bytes("VmHWM:\t  9 kB\nVmRSS:\t     12 kB\n"), Some(12_288.0));
        let limits = "Limit                     Soft Limit           Hard Limit           Units\n\
                      Max open files            1024                 524288               files\n";
        assert_eq!(max_files(limits), Some(1024.0));
        assert_eq!((cpu_seconds(""), resident_bytes(""), max_files("")), (None, None, None));
        assert_eq!(max_files("Max open files            unlimited            unlimited            files\n"), None);
    }
}
