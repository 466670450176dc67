//! CPU timers of the kernel, and signals sent by hand where timers are not to be had.

use crate::sampler::clock::cpu_clock_of_thread;
use crate::sampler::signal_payload::{Payload, QueuedSignalInfo};
use std::io;

/// A timer on a CPU clock that signals with a payload; deleted when dropped.
#[derive(Debug)]
pub(crate) struct CpuTimer {
    id: libc::timer_t,
}

// SAFETY: a timer id is a handle of the process, valid on every thread.
unsafe impl Send for CpuTimer {}

impl CpuTimer {
    /// A timer on the CPU clock of one thread, which also receives the signal.
    pub(crate) fn for_thread(tid: i32, slot: usize, signal: libc::c_int) -> io::Result<CpuTimer> {
        let payload = Payload::ThreadCpu { slot };
        CpuTimer::create(cpu_clock_of_thread(tid), libc::SIGEV_THREAD_ID, tid, payload, signal)
    }

    /// A timer on the CPU clock of the whole process (see [`signals_reach_running_threads`]).
    pub(crate) fn for_process(signal: libc::c_int) -> io::Result<CpuTimer> {
        CpuTimer::create(libc::CLOCK_PROCESS_CPUTIME_ID, libc::SIGEV_SIGNAL, 0, Payload::ProcessCpu, signal)
    }

    fn create(
        clock: libc::clockid_t,
        notify: libc::c_int,
        tid: i32,
        payload: Payload,
        signal: libc::c_int,
    ) -> io::Result<CpuTimer> {
        // SAFETY: a zeroed sigevent is valid, and the id is written before it is read.
        unsafe {
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = notify;
            event.sigev_signo = signal;
            event.sigev_notify_thread_id = tid;
            event.sigev_value = libc::sigval { sival_ptr: payload.encode() as *mut libc::c_void };
            let mut id: libc::timer_t = std::mem::zeroed();
            if libc::timer_create(clock, &mut event, &mut id) == 0 {
                Ok(CpuTimer { id })
            } else {
                Err(io::Error::last_os_error())
            }
        }
    }

    /// Arms the timer: first after `first_ns` of CPU time, then every `interval_ns`. Zero for both stops it.
    pub(crate) fn arm(&self, first_ns: u64, interval_ns: u64) -> io::Result<()> {
        let timespec = |ns: u64| libc::timespec {
            tv_sec: (ns / 1_000_000_000) as _,
            tv_nsec: (ns % 1_000_000_000) as libc::c_long,
        };
        let setting = libc::itimerspec { it_interval: timespec(interval_ns), it_value: timespec(first_ns) };
        // SAFETY: the id is valid until drop; `setting` is a valid itimerspec.
        let result = unsafe { libc::timer_settime(self.id, 0, &setting, std::ptr::null_mut()) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

impl Drop for CpuTimer {
    fn drop(&mut self) {
        // SAFETY: the id is valid and not used afterwards.
        unsafe { libc::timer_delete(self.id) };
    }
}

/// Whether the thread that runs gets the signal of the process's timer: since Linux 6.4. Before, it is mostly the first
/// thread of the process, whoever ran.
pub(crate) fn signals_reach_running_threads() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    kernel_version(&release).is_some_and(|version| version >= (6, 4))
}

/// The first two numbers of a kernel's release, such as `6.18.44-generic`.
fn kernel_version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// Sends the profiling signal to one thread of this process, with a payload.
pub(crate) fn signal_thread(tid: i32, payload: Payload, signal: libc::c_int) -> io::Result<()> {
    // SAFETY: plain system calls; the info has the kernel's layout and its code marks it as queued by a process.
    let result = unsafe {
        let info = QueuedSignalInfo {
            signal,
            errno: 0,
            code: libc::SI_QUEUE,
            padding: 0,
            sender_or_timer: libc::getpid(),
            user_or_overrun: libc::getuid() as i32,
            value: payload.encode(),
            rest: [0; 12],
        };
        libc::syscall(libc::SYS_rt_tgsigqueueinfo, libc::getpid(), tid, signal, &info)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: releases as distributions write them, and what is none.
    /// Guarantee: the version is read where there is one.
    #[test]
    fn kernel_versions_are_read() {
        assert_eq!(kernel_version("6.18.44-fc-v490\n"), Some((6, 18)));
        assert_eq!(kernel_version("5.14.0-503.el9.x86_64"), Some((5, 14)));
        assert_eq!(kernel_version("6.4"), Some((6, 4)));
        assert_eq!(kernel_version(""), None);
    }
}
