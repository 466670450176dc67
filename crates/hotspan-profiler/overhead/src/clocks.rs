//! CPU time, of a thread and of the process.

fn now(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid and writable.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// CPU nanoseconds of the calling thread.
pub fn thread_cpu_ns() -> u64 {
    now(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// CPU nanoseconds of the whole process: the profiler's own threads belong to its cost.
pub fn process_cpu_ns() -> u64 {
    now(libc::CLOCK_PROCESS_CPUTIME_ID)
}
