//! The threads of this process, as procfs lists them.

/// The ids of all threads.
pub(crate) fn thread_ids() -> Vec<i32> {
    let Ok(entries) = std::fs::read_dir("/proc/self/task") else { return Vec::new() };
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// A thread's name, or `None` if it has ended.
pub(crate) fn thread_name(tid: i32) -> Option<String> {
    let name = std::fs::read_to_string(format!("/proc/self/task/{tid}/comm")).ok()?;
    Some(name.trim_end().to_owned())
}

/// Lowers the priority of the calling thread and keeps the service's own signals away from it.
pub(crate) fn become_background_thread(niceness: libc::c_int, profiling_signal: libc::c_int) {
    // SAFETY: plain calls on values of our own; each failure leaves things as they were.
    unsafe {
        let tid = libc::syscall(libc::SYS_gettid) as libc::id_t;
        libc::setpriority(libc::PRIO_PROCESS, tid, niceness);
        let mut blocked: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut blocked);
        libc::sigdelset(&mut blocked, profiling_signal);
        libc::pthread_sigmask(libc::SIG_SETMASK, &blocked, std::ptr::null_mut());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: a named thread looks itself up.
    /// Guarantee: it is listed, with its name, and an id that does not exist has none.
    #[test]
    fn a_thread_is_listed_with_its_name() {
        let found = std::thread::Builder::new()
            .name("sought".into())
            .spawn(|| {
                let tid = crate::sampler::clock::current_tid();
                (thread_ids().contains(&tid), thread_name(tid))
            })
            .unwrap()
            .join()
            .unwrap();
        assert_eq!(found, (true, Some("sought".into())));
        assert_eq!(thread_name(i32::MAX), None);
    }
}
