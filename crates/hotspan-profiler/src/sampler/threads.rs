//! The threads of this process, as procfs lists them.

use std::fs::File;
use std::os::unix::fs::MetadataExt;

const FOLDER: &str = "/proc/self/task";

/// The folder that has an entry for every thread.
#[derive(Debug)]
pub(crate) struct ThreadFolder {
    /// Held open, so that counting is one system call; none where procfs is hidden.
    folder: Option<File>,
}

impl ThreadFolder {
    pub(crate) fn open() -> ThreadFolder {
        ThreadFolder { folder: File::open(FOLDER).ok() }
    }

    /// A number that changes with the number of threads: the folder's links, one for each. Unlike a listing, its price
    /// does not grow with them.
    pub(crate) fn thread_count(&self) -> Option<u64> {
        Some(self.folder.as_ref()?.metadata().ok()?.nlink())
    }

    /// The ids of all threads.
    pub(crate) fn thread_ids(&self) -> Vec<i32> {
        let Ok(entries) = std::fs::read_dir(FOLDER) else { return Vec::new() };
        entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
    }
}

/// A thread's name, or `None` if it has ended.
pub(crate) fn thread_name(tid: i32) -> Option<String> {
    let name = std::fs::read_to_string(format!("{FOLDER}/{tid}/comm")).ok()?;
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
    /// Guarantee: it is listed and counted, with its name, and an id that does not exist has none.
    #[test]
    fn a_thread_is_listed_with_its_name() {
        let found = std::thread::Builder::new()
            .name("sought".into())
            .spawn(|| {
                let tid = crate::sampler::clock::current_tid();
                let folder = ThreadFolder::open();
                assert!(folder.thread_count().is_some_and(|count| count >= 2));
                (folder.thread_ids().contains(&tid), thread_name(tid))
            })
            .unwrap()
            .join()
            .unwrap();
        assert_eq!(found, (true, Some("sought".into())));
        assert_eq!(thread_name(i32::MAX), None);
    }
}
