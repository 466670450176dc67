//! Samples where perf events are forbidden: threads that have used CPU time are stopped for some microseconds.
//!
//! The kernel's own count of a thread's CPU time is the weight of its sample, so totals are exact however late a
//! sample comes. Threads that sleep are left alone.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use crate::event::{Event, Measure, Stack};
use crate::recorder::Recorder;
use crate::registers::Registers;
use crate::{Options, RecordError, now};

/// A thread that does not stop by then sits in the kernel or waits for a processor; it is sampled once it stops.
const PATIENCE: Duration = Duration::from_millis(10);
/// Libraries that a program loads while it runs are found this much later.
const MAPS_INTERVAL: Duration = Duration::from_secs(1);
const PAGE: u64 = 4096;

/// C libraries do not agree on the sign of a request's number.
#[cfg(target_env = "musl")]
type Request = libc::c_int;
#[cfg(not(target_env = "musl"))]
type Request = libc::c_uint;

#[derive(Debug, Clone, Copy)]
struct Traced {
    pid: i32,
    /// CPU time that has been accounted for.
    seen_ns: u64,
    /// It was asked to stop, and is sampled when it does: where processors are scarce, that may be long after.
    asked: bool,
}

/// The traced threads. All calls come from the thread that made it: the kernel knows one tracer only.
#[derive(Debug)]
pub(crate) struct PtraceSource {
    first: i32,
    exit: Option<ExitStatus>,
    threads: HashMap<i32, Traced>,
    maps_read: HashMap<i32, Instant>,
    period: Duration,
    /// Where in the period the next turn lies, from 0 to 1.
    phase: f64,
    next: Instant,
    stack_bytes: u32,
}

impl PtraceSource {
    pub(crate) fn open(
        tids: &[i32],
        pid: i32,
        options: &Options,
        from_zero: bool,
    ) -> Result<PtraceSource, RecordError> {
        let follow =
            libc::PTRACE_O_TRACECLONE | libc::PTRACE_O_TRACEFORK | libc::PTRACE_O_TRACEVFORK | libc::PTRACE_O_TRACEEXEC;
        let mut threads = HashMap::new();
        for tid in tids {
            match request(libc::PTRACE_SEIZE, *tid, follow as usize) {
                Ok(()) => {
                    let seen_ns = if from_zero { 0 } else { cpu_ns(pid, *tid).unwrap_or(0) };
                    threads.insert(*tid, Traced { pid, seen_ns, asked: false });
                }
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                Err(source) => return Err(RecordError::Ptrace { pid, source }),
            }
        }
        if threads.is_empty() {
            return Err(RecordError::Gone);
        }
        let period = Duration::from_nanos(1_000_000_000 / u64::from(options.hertz.max(1)));
        Ok(PtraceSource {
            first: pid,
            exit: None,
            threads,
            maps_read: HashMap::new(),
            period,
            phase: 0.0,
            next: Instant::now(),
            stack_bytes: options.stack_bytes,
        })
    }

    /// How the first process ended, if it did.
    pub(crate) fn exit_of_first(&self) -> Option<ExitStatus> {
        self.exit
    }

    /// One turn: waits for its time, then asks every thread that has worked.
    pub(crate) fn step(&mut self, recorder: &mut Recorder) {
        while Instant::now() < self.next {
            self.heed_events(recorder);
            let left = self.next.saturating_duration_since(Instant::now());
            std::thread::sleep(left.min(Duration::from_millis(2)));
        }
        // Turns of one length would go on meeting the same part of work that repeats: they take from half a period to one and
        // a half, by the golden ratio, which fills that range evenly.
        self.phase = (self.phase + 0.618_033_988_749_895).fract();
        self.next = Instant::now() + self.period.mul_f64(0.5 + self.phase);
        self.heed_events(recorder);
        let least = self.period.as_nanos() as u64 / 2;
        let due: Vec<i32> = self
            .threads
            .iter()
            .filter(|(tid, thread)| {
                cpu_ns(thread.pid, **tid).is_some_and(|used| used.saturating_sub(thread.seen_ns) >= least)
            })
            .map(|(tid, _)| *tid)
            .collect();
        for tid in due {
            if let Some(thread) = self.threads.get_mut(&tid)
                && (thread.asked || request(libc::PTRACE_INTERRUPT, tid, 0).is_ok())
            {
                thread.asked = true;
                if let Some(status) = wait_for(tid, PATIENCE) {
                    self.heed(tid, status, recorder);
                }
            }
        }
    }

    /// Lets go of everything.
    pub(crate) fn finish(&mut self) {
        for (tid, _) in self.threads.drain() {
            if request(libc::PTRACE_INTERRUPT, tid, 0).is_ok() && wait_for(tid, Duration::from_millis(200)).is_some() {
                // A thread that ended meanwhile is let go already.
                let _ = request(libc::PTRACE_DETACH, tid, 0);
            }
        }
    }

    /// Samples a thread that has stopped, if it was asked to.
    fn take_sample(&mut self, tid: i32, recorder: &mut Recorder) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        if !std::mem::take(&mut thread.asked) {
            return;
        }
        let Some(used) = cpu_ns(thread.pid, tid) else { return };
        let weight = used.saturating_sub(thread.seen_ns);
        let (Some(registers), true) = (registers_of(tid), weight > 0) else { return };
        thread.seen_ns = used;
        let pid = thread.pid;
        self.refresh_maps(pid, recorder);
        // Threads name themselves after they have begun.
        self.name(pid, tid, recorder);
        let bytes = read_stack(pid, registers.sp, self.stack_bytes);
        recorder.take(Event::Sample {
            pid,
            tid,
            time: now(libc::CLOCK_MONOTONIC) as u64,
            measure: Measure::Cpu { nanoseconds: weight },
            interrupted: registers.pc,
            kernel: Vec::new(),
            user: Some(Stack { registers, bytes }),
        });
    }

    fn refresh_maps(&mut self, pid: i32, recorder: &mut Recorder) {
        let is_fresh = self.maps_read.get(&pid).is_some_and(|read| read.elapsed() < MAPS_INTERVAL);
        if !is_fresh {
            // A process that is ending has none any more; what was read before stays.
            let _ = recorder.processes.read_maps(pid);
            self.maps_read.insert(pid, Instant::now());
        }
    }

    /// Heeds what has happened to our threads. Each is asked for by its number: other children of this process are
    /// not ours to wait for.
    fn heed_events(&mut self, recorder: &mut Recorder) {
        let tids: Vec<i32> = self.threads.keys().copied().collect();
        for tid in tids {
            while let Some(status) = wait_for(tid, Duration::ZERO) {
                self.heed(tid, status, recorder);
            }
        }
    }

    /// Does what a change of a thread asks for, and lets it go on.
    fn heed(&mut self, tid: i32, status: i32, recorder: &mut Recorder) {
        if !libc::WIFSTOPPED(status) {
            if tid == self.first {
                self.exit = Some(ExitStatus::from_raw(status));
            }
            if let Some(thread) = self.threads.remove(&tid) {
                recorder.take(Event::Exited { pid: thread.pid, tid });
            }
            return;
        }
        self.take_sample(tid, recorder);
        let signal = libc::WSTOPSIG(status);
        let resumed = match status >> 16 {
            0 => request(libc::PTRACE_CONT, tid, signal as usize),
            libc::PTRACE_EVENT_STOP if is_job_control(signal) => request(libc::PTRACE_LISTEN, tid, 0),
            libc::PTRACE_EVENT_EXEC => {
                self.executed(tid, recorder);
                request(libc::PTRACE_CONT, tid, 0)
            }
            libc::PTRACE_EVENT_CLONE | libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK => {
                if let Some(started) = started_by(tid) {
                    self.welcome(started, recorder);
                }
                request(libc::PTRACE_CONT, tid, 0)
            }
            _ => request(libc::PTRACE_CONT, tid, 0),
        };
        // Killed while it was stopped: its end comes as the next event.
        let _ = resumed;
    }

    /// A thread or process that a traced one has started.
    fn welcome(&mut self, tid: i32, recorder: &mut Recorder) {
        let status = fs::read_to_string(format!("/proc/{tid}/status")).unwrap_or_default();
        let pid = status.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok()).unwrap_or(tid);
        self.threads.insert(tid, Traced { pid, seen_ns: 0, asked: false });
        self.name(pid, tid, recorder);
    }

    fn name(&self, pid: i32, tid: i32, recorder: &mut Recorder) {
        if let Ok(name) = fs::read_to_string(format!("/proc/{tid}/comm")) {
            recorder.take(Event::Named { pid, tid, name: name.trim_end().to_owned(), executed: false });
        }
    }

    fn executed(&mut self, tid: i32, recorder: &mut Recorder) {
        let name = fs::read_to_string(format!("/proc/{tid}/comm")).unwrap_or_default();
        recorder.take(Event::Named { pid: tid, tid, name: name.trim_end().to_owned(), executed: true });
        self.maps_read.remove(&tid);
    }
}

fn is_job_control(signal: i32) -> bool {
    matches!(signal, libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU)
}

fn request(what: Request, tid: i32, data: usize) -> io::Result<()> {
    // SAFETY: none of the requests made through here takes an address.
    let done = unsafe { libc::ptrace(what, tid, std::ptr::null_mut::<libc::c_void>(), data) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The thread that a traced one has just started, which is traced from its first instruction.
fn started_by(tid: i32) -> Option<i32> {
    let mut started: libc::c_ulong = 0;
    // SAFETY: the kernel writes one word, which lives for the call.
    let done =
        unsafe { libc::ptrace(libc::PTRACE_GETEVENTMSG, tid, std::ptr::null_mut::<libc::c_void>(), &raw mut started) };
    (done >= 0).then_some(started as i32)
}

/// The next change of a thread, if it comes in time.
fn wait_for(tid: i32, patience: Duration) -> Option<i32> {
    let deadline = Instant::now() + patience;
    loop {
        let mut status = 0;
        // SAFETY: the status lives for the call.
        let found = unsafe { libc::waitpid(tid, &raw mut status, libc::__WALL | libc::WNOHANG) };
        match found {
            0 if Instant::now() < deadline => std::thread::yield_now(),
            found => return (found == tid).then_some(status),
        }
    }
}

/// CPU time of a thread, user and system, to the nanosecond.
fn cpu_ns(pid: i32, tid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/schedstat")).ok()?;
    text.split_ascii_whitespace().next()?.parse().ok()
}

fn registers_of(tid: i32) -> Option<Registers> {
    const GENERAL: usize = 1;
    // SAFETY: zero is a valid value of every field.
    let mut values: libc::user_regs_struct = unsafe { std::mem::zeroed() };
    let mut vector = libc::iovec { iov_base: (&raw mut values).cast(), iov_len: size_of::<libc::user_regs_struct>() };
    // SAFETY: the vector describes memory that lives for the call.
    let done = unsafe { libc::ptrace(libc::PTRACE_GETREGSET, tid, GENERAL, &raw mut vector) };
    if done < 0 {
        return None;
    }
    #[cfg(target_arch = "x86_64")]
    let registers = Registers { pc: values.rip, sp: values.rsp, fp: values.rbp, lr: 0 };
    #[cfg(target_arch = "aarch64")]
    let registers = Registers { pc: values.pc, sp: values.sp, fp: values.regs[29], lr: values.regs[30] };
    Some(registers)
}

/// The memory from the stack pointer up, as far as it is there.
fn read_stack(pid: i32, sp: u64, length: u32) -> Vec<u8> {
    let mut bytes = vec![0; length as usize];
    let local = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // Page by page: the read ends at the first one that is not there.
    let mut remote = Vec::new();
    let (mut at, end) = (sp, sp.saturating_add(u64::from(length)));
    while at < end {
        let next = ((at & !(PAGE - 1)) + PAGE).min(end);
        remote.push(libc::iovec { iov_base: at as *mut libc::c_void, iov_len: (next - at) as usize });
        at = next;
    }
    // SAFETY: the local vector describes `bytes`; remote addresses are the other process's own affair.
    let read =
        unsafe { libc::process_vm_readv(pid, &raw const local, 1, remote.as_ptr(), remote.len() as libc::c_ulong, 0) };
    bytes.truncate(usize::try_from(read).unwrap_or(0));
    bytes
}
