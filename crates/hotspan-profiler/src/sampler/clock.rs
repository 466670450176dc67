//! The clocks a profiler needs, each safe to read inside a signal handler.

/// Nanoseconds of a kernel clock, or `None` where the clock does not exist (a thread that has ended).
pub(crate) fn read_clock(clock: libc::clockid_t) -> Option<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid, writable timespec; clock_gettime is async-signal-safe.
    let result = unsafe { libc::clock_gettime(clock, &mut time) };
    (result == 0).then(|| (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64))
}

/// Time since boot without suspension: orders samples, never jumps.
pub(crate) fn monotonic_ns() -> u64 {
    read_clock(libc::CLOCK_MONOTONIC).unwrap_or(0)
}

/// Wall time since the Unix epoch.
pub(crate) fn realtime_ns() -> u64 {
    read_clock(libc::CLOCK_REALTIME).unwrap_or(0)
}

/// CPU time the calling thread has used.
pub(crate) fn thread_cpu_ns() -> u64 {
    read_clock(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or(0)
}

/// CPU time all threads of the process have used, the ended ones included.
pub(crate) fn process_cpu_ns() -> u64 {
    read_clock(libc::CLOCK_PROCESS_CPUTIME_ID).unwrap_or(0)
}

/// How often the kernel looks at CPU timers: the resolution of its coarse clocks, 4 ms on most systems.
pub(crate) fn tick_ns() -> u64 {
    let mut resolution = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `resolution` is a valid, writable timespec.
    let result = unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC_COARSE, &mut resolution) };
    if result == 0 { resolution.tv_nsec as u64 } else { 0 }
}

/// The kernel's name for the CPU clock of any thread of this process.
///
/// The clock id encodes the complement of the thread id; 4 asks for a single thread, 2 for scheduler time.
pub(crate) fn cpu_clock_of_thread(tid: libc::pid_t) -> libc::clockid_t {
    (!tid << 3) | 6
}

/// The id of the calling thread, as the kernel counts.
pub(crate) fn current_tid() -> libc::pid_t {
    // SAFETY: gettid takes no arguments, cannot fail and is async-signal-safe.
    unsafe { libc::syscall(libc::SYS_gettid) as libc::pid_t }
}

/// The processor's own counter: one instruction, unlike a clock call. Used where every span pays for it.
#[inline(always)]
pub(crate) fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: rdtsc exists on every x86_64 processor and has no side effects.
        unsafe { core::arch::x86_64::_rdtsc() }
    }
    #[cfg(target_arch = "aarch64")]
    {
        let value: u64;
        // SAFETY: the virtual counter is readable from user space on Linux; reading it has no side effects.
        unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) value, options(nomem, nostack)) };
        value
    }
}

/// How many nanoseconds a tick lasts, found by watching both clocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TickScale {
    ticks: u64,
    nanos: u64,
}

impl TickScale {
    /// Remembers where both clocks stand.
    pub(crate) fn begin() -> TickScale {
        TickScale { ticks: ticks(), nanos: monotonic_ns() }
    }

    /// Nanoseconds per tick since `begin`; the longer ago that was, the more exact.
    pub(crate) fn nanos_per_tick(&self) -> f64 {
        let elapsed_ticks = ticks().wrapping_sub(self.ticks);
        let elapsed_nanos = monotonic_ns().saturating_sub(self.nanos);
        if elapsed_ticks == 0 { 1.0 } else { elapsed_nanos as f64 / elapsed_ticks as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: one thread reads its own CPU clock by name while it works.
    /// Guarantee: the encoded clock id names the same clock as CLOCK_THREAD_CPUTIME_ID.
    #[test]
    fn the_clock_of_a_thread_is_its_own_clock() {
        let before = thread_cpu_ns();
        let named = read_clock(cpu_clock_of_thread(current_tid())).unwrap();
        let after = thread_cpu_ns();
        assert!(before <= named && named <= after);
    }

    /// Scenario: the tick counter is compared with the monotonic clock over a few milliseconds.
    /// Guarantee: the scale is plausible for any processor (between 10 MHz and 10 GHz).
    #[test]
    fn ticks_have_a_plausible_length() {
        let scale = TickScale::begin();
        std::thread::sleep(std::time::Duration::from_millis(5));
        let nanos = scale.nanos_per_tick();
        assert!((0.1..100.0).contains(&nanos), "{nanos}");
    }
}
