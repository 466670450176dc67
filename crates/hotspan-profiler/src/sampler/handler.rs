//! The signal handler: the only code that runs inside other people's functions.
//!
//! The signal is not masked while it is handled. The kernel would pass a signal of the process timer that comes at the
//! same moment on to another thread, asleep or not, which would be woken for nothing and take the sample of this one. So
//! a handler may interrupt another on its thread. It then sees what that one interrupted (see `interruption`), and takes
//! no sample while that one takes its own.
//!
//! What it may do: atomics, reads of the clock, bounded reads of the interrupted stack, waking the monitor. What it never does: allocate,
//! lock, call the loader or libgcc, touch a lazily made thread-local, or leave `errno` changed. A signal that is not
//! ours goes to whoever handled it before.

use crate::context::{current_span_key, published_at};
use crate::sampler::capture::{Capture, Slot, put};
use crate::sampler::clock::{monotonic_ns, thread_cpu_ns, ticks};
use crate::sampler::interruption::Interruption;
use crate::sampler::registers::Registers;
use crate::sampler::ring::Ring;
use crate::sampler::sample::{Sample, SampleKind};
use crate::sampler::signal_payload::{Payload, signal_overrun, signal_value};
use crate::sampler::thread_id::remembered_tid;
use std::io;
use std::sync::atomic::{AtomicI32, AtomicU64, AtomicUsize, Ordering, compiler_fence};

static PREVIOUS_HANDLER: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);
static PREVIOUS_FLAGS: AtomicI32 = AtomicI32::new(0);
/// The signals that are masked while the previous handler runs, a bit each, from signal 1.
static PREVIOUS_MASK: AtomicU64 = AtomicU64::new(0);

/// A handler that took more ticks than this (some 40 us) was interrupted itself; the rest was not its own time.
const LONGEST_HANDLER_TICKS: u64 = 100_000;

/// The longest time that one wall-clock sample may stand for: the process may have been stopped meanwhile.
const LONGEST_WALL_GAP_NS: u64 = 1_000_000_000;

type PlainHandler = extern "C" fn(libc::c_int);
type InfoHandler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);

/// Installs the handler and remembers the one before it. It stays installed for the life of the process: a signal
/// that was sent before profiling stopped must not meet the default action, which is to end the process.
pub(crate) fn install(signal: libc::c_int) -> io::Result<()> {
    if is_installed(signal) {
        return Ok(());
    }
    // SAFETY: zeroed sigactions are valid; the handler has the signature that SA_SIGINFO asks for.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_signal as InfoHandler as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_NODEFER;
        libc::sigemptyset(&mut action.sa_mask);
        let mut previous: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(signal, std::ptr::null(), &mut previous) != 0 {
            return Err(io::Error::last_os_error());
        }
        PREVIOUS_HANDLER.store(previous.sa_sigaction, Ordering::Relaxed);
        PREVIOUS_MASK.store(mask_while_handling(signal, &previous), Ordering::Relaxed);
        PREVIOUS_FLAGS.store(previous.sa_flags, Ordering::Release);
        if libc::sigaction(signal, &action, std::ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Whether the handler is (still) ours: another profiler may have taken the signal since.
pub(crate) fn is_installed(signal: libc::c_int) -> bool {
    // SAFETY: reading the current action into a zeroed struct.
    unsafe {
        let mut current: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut current) == 0
            && current.sa_sigaction == on_signal as InfoHandler as usize
    }
}

extern "C" fn on_signal(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let interruption = Interruption::begin(context);
    // SAFETY: errno is a plain integer of this thread.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let saved_errno = unsafe { *errno };
    let started = ticks();
    // SAFETY: the kernel passes a valid siginfo.
    let payload = unsafe { signal_value(info) }.and_then(Payload::decode);
    match (Capture::existing(), payload) {
        (Some(capture), Some(payload)) => {
            // SAFETY: the kernel passes a valid context to SA_SIGINFO handlers, of which this is one.
            let registers = unsafe { interruption.registers(on_signal as InfoHandler as usize) };
            // SAFETY: as for `signal_value`.
            let overrun = unsafe { signal_overrun(info) };
            take_sample(capture, payload, overrun, &registers);
            capture.counters.signals.fetch_add(1, Ordering::Relaxed);
            let spent = ticks().wrapping_sub(started).min(LONGEST_HANDLER_TICKS);
            capture.counters.busy_ticks.fetch_add(spent, Ordering::Relaxed);
            if matches!(payload, Payload::Wall { .. }) {
                capture.counters.wall_ticks.fetch_add(spent, Ordering::Relaxed);
            }
        }
        (capture, _) => {
            if let Some(capture) = capture {
                capture.counters.foreign_signals.fetch_add(1, Ordering::Relaxed);
            }
            // What somebody else does in a handler is the program's own work.
            drop(interruption);
            call_previous(signal, info, context);
        }
    }
    // SAFETY: as above.
    unsafe { *errno = saved_errno };
}

fn take_sample(capture: &Capture, payload: Payload, overrun: u64, registers: &Registers) {
    let tid = remembered_tid();
    match payload {
        Payload::ThreadCpu { slot } => {
            let Some(slot) = own_slot(capture, slot, tid).and_then(Taking::begin) else { return };
            let cpu_ns = thread_cpu_ns();
            let accounted = slot.cpu_accounted_ns.swap(cpu_ns, Ordering::Relaxed);
            // Signed: the first weight is measured from a random point before the timer was armed.
            let weight = (cpu_ns.wrapping_sub(accounted) as i64).max(0) as u64;
            record(capture, &slot.ring, &Due { tid, kind: SampleKind::Cpu, weight, cpu_part: 0 }, registers);
        }
        Payload::ProcessCpu => {
            // Threads with timers of their own are counted by those; this timer stands in for all others.
            if !capture.armed.contains(tid) {
                let weight = capture.process_period_ns.load(Ordering::Relaxed).saturating_mul(1 + overrun);
                match capture.guest_ring(tid) {
                    Some(ring) => {
                        record(capture, &ring, &Due { tid, kind: SampleKind::Cpu, weight, cpu_part: 0 }, registers);
                    }
                    None => capture.count_guest_drop(weight),
                }
                capture.count_guest_sample();
            }
        }
        Payload::Wall { slot } => {
            let Some(slot) = own_slot(capture, slot, tid).and_then(Taking::begin) else { return };
            slot.span_pointer_at.store(published_at(), Ordering::Relaxed);
            let (now, cpu_ns) = (monotonic_ns(), thread_cpu_ns());
            let elapsed = now.saturating_sub(slot.last_wall_ns.swap(now, Ordering::Relaxed)).max(1);
            let on_cpu = cpu_ns.saturating_sub(slot.last_wall_cpu_ns.swap(cpu_ns, Ordering::Relaxed)).min(elapsed);
            // The time since the last look at this thread: a signal that came late, or not at all, loses none.
            let weight = elapsed.min(LONGEST_WALL_GAP_NS);
            let cpu_part = (u128::from(weight) * u128::from(on_cpu) / u128::from(elapsed)) as u64;
            if current_span_key().is_some() {
                record(capture, &slot.ring, &Due { tid, kind: SampleKind::Wall, weight, cpu_part }, registers);
            }
        }
    }
}

/// The slot, if it still belongs to this thread, `tid`: a signal may come late, when the slot has a new owner, and two
/// threads must never write to one ring.
fn own_slot(capture: &Capture, index: usize, tid: libc::pid_t) -> Option<&Slot> {
    capture.slot(index).filter(|slot| slot.tid.load(Ordering::Relaxed) == tid)
}

/// The right to write to the ring of one's own thread: held by one handler at a time, though they may nest. One that is
/// refused takes no sample; weights follow the clocks, so the next sample stands for its time as well.
struct Taking<'a>(&'a Slot);

impl<'a> Taking<'a> {
    fn begin(slot: &'a Slot) -> Option<Taking<'a>> {
        // Only handlers of one thread meet here, so that no processor has to be told in what order.
        let is_free = !slot.is_taking.swap(true, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        // Not `then_some`: a value that is made must not be dropped unless the flag is ours.
        is_free.then(|| Taking(slot))
    }
}

impl std::ops::Deref for Taking<'_> {
    type Target = Slot;

    fn deref(&self) -> &Slot {
        self.0
    }
}

impl Drop for Taking<'_> {
    fn drop(&mut self) {
        compiler_fence(Ordering::SeqCst);
        self.0.is_taking.store(false, Ordering::Relaxed);
    }
}

/// What a sample stands for.
struct Due {
    tid: libc::pid_t,
    kind: SampleKind,
    weight: u64,
    /// How much of a wall-clock weight was spent on a CPU.
    cpu_part: u64,
}

fn record(capture: &Capture, ring: &Ring, due: &Due, registers: &Registers) {
    let span = current_span_key().unwrap_or_default();
    capture.unwinding.with_stack(registers, |stack| {
        let sample = Sample {
            kind: due.kind,
            flags: stack.flags,
            monotonic_ns: monotonic_ns(),
            weight: due.weight,
            extra: due.cpu_part,
            extra2: 0,
            tid: due.tid,
            span,
            frames: stack.frames,
        };
        put(ring, &sample);
    });
}

fn call_previous(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let flags = PREVIOUS_FLAGS.load(Ordering::Acquire);
    let handler = PREVIOUS_HANDLER.load(Ordering::Relaxed);
    if handler == libc::SIG_DFL || handler == libc::SIG_IGN {
        return;
    }
    let mut mask_before = 0;
    change_mask(libc::SIG_BLOCK, PREVIOUS_MASK.load(Ordering::Relaxed), &mut mask_before);
    // SAFETY: the address was installed by sigaction as a handler of the kind that the flags tell.
    unsafe {
        if flags & libc::SA_SIGINFO != 0 {
            std::mem::transmute::<usize, InfoHandler>(handler)(signal, info, context);
        } else {
            std::mem::transmute::<usize, PlainHandler>(handler)(signal);
        }
    }
    change_mask(libc::SIG_SETMASK, mask_before, &mut 0);
}

/// The signals that the kernel would mask while `action` handles `signal`.
fn mask_while_handling(signal: libc::c_int, action: &libc::sigaction) -> u64 {
    let masks_itself = action.sa_flags & libc::SA_NODEFER == 0;
    // SAFETY: the set is the kernel's, and the numbers are those of signals.
    let is_masked = |other: &libc::c_int| unsafe { libc::sigismember(&action.sa_mask, *other) == 1 };
    let masked = (1..=64).filter(|other| is_masked(other) || (masks_itself && *other == signal));
    masked.fold(0, |mask, other| mask | 1 << (other - 1))
}

/// Changes the thread's signal mask by the system call itself, whose sets are of 64 signals on every Linux.
fn change_mask(how: libc::c_int, mask: u64, before: &mut u64) {
    // SAFETY: both sets are valid words of the size that is told.
    unsafe { libc::syscall(libc::SYS_rt_sigprocmask, how, &raw const mask, &raw mut *before, size_of::<u64>()) };
}
