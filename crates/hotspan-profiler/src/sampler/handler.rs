//! The signal handler: the only code that runs inside other people's functions.
//!
//! What it may do: atomics, reads of the clock, bounded reads of the interrupted stack. What it never does: allocate,
//! lock, call the loader or libgcc, touch a lazily made thread-local, or leave `errno` changed. A signal that is not
//! ours goes to whoever handled it before.

use crate::context::{current_span_key, published_at};
use crate::sampler::capture::{Capture, Slot};
use crate::sampler::clock::{current_tid, monotonic_ns, thread_cpu_ns, ticks};
use crate::sampler::registers::Registers;
use crate::sampler::sample::{Sample, SampleKind};
use crate::sampler::signal_payload::{Payload, signal_overrun, signal_value};
use std::io;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

static PREVIOUS_HANDLER: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);
static PREVIOUS_FLAGS: AtomicI32 = AtomicI32::new(0);

/// A handler that took more ticks than this (some 40 us) was interrupted itself; the rest was not its own time.
const LONGEST_HANDLER_TICKS: u64 = 100_000;

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
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigemptyset(&mut action.sa_mask);
        let mut previous: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(signal, std::ptr::null(), &mut previous) != 0 {
            return Err(io::Error::last_os_error());
        }
        PREVIOUS_HANDLER.store(previous.sa_sigaction, Ordering::Relaxed);
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
    // SAFETY: errno is a plain integer of this thread.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let saved_errno = unsafe { *errno };
    let started = ticks();
    // SAFETY: the kernel passes a valid siginfo.
    let payload = unsafe { signal_value(info) }.and_then(Payload::decode);
    match (Capture::existing(), payload) {
        (Some(capture), Some(payload)) => {
            // SAFETY: the kernel passes a valid context to SA_SIGINFO handlers.
            let registers = unsafe { Registers::of_interrupted(context) };
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
            call_previous(signal, info, context);
        }
    }
    // SAFETY: as above.
    unsafe { *errno = saved_errno };
}

fn take_sample(capture: &Capture, payload: Payload, overrun: u64, registers: &Registers) {
    match payload {
        Payload::ThreadCpu { slot } => {
            let Some(slot) = own_slot(capture, slot) else { return };
            let cpu_ns = thread_cpu_ns();
            let accounted = slot.cpu_accounted_ns.swap(cpu_ns, Ordering::Relaxed);
            // Signed: the first weight is measured from a random point before the timer was armed.
            let weight = (cpu_ns.wrapping_sub(accounted) as i64).max(0) as u64;
            record(capture, Some(slot), SampleKind::Cpu, weight, 0, registers);
        }
        Payload::ProcessCpu => {
            // Threads with timers of their own are counted by those; this timer stands in for all others.
            if !capture.armed.contains(current_tid()) {
                let weight = capture.process_period_ns.load(Ordering::Relaxed).saturating_mul(1 + overrun);
                record(capture, None, SampleKind::Cpu, weight, 0, registers);
                capture.counters.guest_samples.fetch_add(1, Ordering::Relaxed);
            }
        }
        Payload::Wall { slot } => {
            let Some(slot) = own_slot(capture, slot) else { return };
            slot.span_pointer_at.store(published_at(), Ordering::Relaxed);
            let (now, cpu_ns) = (monotonic_ns(), thread_cpu_ns());
            let elapsed = now.wrapping_sub(slot.last_wall_ns.swap(now, Ordering::Relaxed)).max(1);
            let on_cpu = cpu_ns.saturating_sub(slot.last_wall_cpu_ns.swap(cpu_ns, Ordering::Relaxed)).min(elapsed);
            let weight = capture.wall_period_ns.load(Ordering::Relaxed);
            let cpu_part = (u128::from(weight) * u128::from(on_cpu) / u128::from(elapsed)) as u64;
            if current_span_key().is_some() {
                record(capture, Some(slot), SampleKind::Wall, weight, cpu_part, registers);
            }
        }
    }
}

/// The slot, if it still belongs to this thread: a signal may come late, when the slot has a new owner, and two
/// threads must never write to one ring.
fn own_slot(capture: &Capture, index: usize) -> Option<&Slot> {
    capture.slot(index).filter(|slot| slot.tid.load(Ordering::Relaxed) == current_tid())
}

fn record(capture: &Capture, slot: Option<&Slot>, kind: SampleKind, weight: u64, extra: u64, registers: &Registers) {
    let span = current_span_key().unwrap_or_default();
    let tid = slot.map_or_else(current_tid, |slot| slot.tid.load(Ordering::Relaxed));
    capture.unwinding.with_stack(registers, |stack| {
        let sample = Sample {
            kind,
            flags: stack.flags,
            monotonic_ns: monotonic_ns(),
            weight,
            extra,
            extra2: 0,
            tid,
            span,
            frames: stack.frames,
        };
        match slot {
            Some(slot) => {
                slot.ring.push(&sample.head(), sample.frames, sample.weight);
            }
            None => capture.push_as_guest(&sample),
        }
    });
}

fn call_previous(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let flags = PREVIOUS_FLAGS.load(Ordering::Acquire);
    let handler = PREVIOUS_HANDLER.load(Ordering::Relaxed);
    if handler == libc::SIG_DFL || handler == libc::SIG_IGN {
        return;
    }
    // SAFETY: the address was installed by sigaction as a handler of the kind that the flags tell.
    unsafe {
        if flags & libc::SA_SIGINFO != 0 {
            std::mem::transmute::<usize, InfoHandler>(handler)(signal, info, context);
        } else {
            std::mem::transmute::<usize, PlainHandler>(handler)(signal);
        }
    }
}
