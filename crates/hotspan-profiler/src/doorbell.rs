//! The bell that wakes the monitor before its time.
//!
//! The monitor sleeps for as long as nothing is expected of it, and those who need it earlier say so: whoever sends it a
//! command, a ring that fills up, a thread that is met without a timer. Signal handlers ring it as well, so it is a word
//! and a system call rather than a condition variable.

use crate::sampler::clock::monotonic_ns;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The bell of the process's one monitor.
pub(crate) static DOORBELL: Doorbell = Doorbell::new();

const SILENT: u32 = 0;
const RUNG: u32 = 1;

/// A bell that one thread waits for and any may ring.
#[derive(Debug)]
pub(crate) struct Doorbell {
    state: AtomicU32,
}

impl Doorbell {
    const fn new() -> Doorbell {
        Doorbell { state: AtomicU32::new(SILENT) }
    }

    /// Wakes who waits, or who comes to wait next. What was written before is seen by the one who is woken. Safe inside a
    /// signal handler; rung again before anybody came, it makes no system call.
    pub(crate) fn ring(&self) {
        if self.state.swap(RUNG, Ordering::AcqRel) == SILENT {
            // SAFETY: wakes a waiter at the address of a static or a live local; nothing is read or written.
            unsafe {
                let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
                libc::syscall(libc::SYS_futex, self.state.as_ptr(), operation, 1);
            }
        }
    }

    /// Waits until the bell has been rung, at most this long, and says whether it was.
    pub(crate) fn wait(&self, at_most: Duration) -> bool {
        let deadline = monotonic_ns().saturating_add(u64::try_from(at_most.as_nanos()).unwrap_or(u64::MAX));
        while self.state.load(Ordering::Relaxed) == SILENT {
            let left = deadline.saturating_sub(monotonic_ns());
            if left == 0 {
                break;
            }
            let left =
                libc::timespec { tv_sec: (left / 1_000_000_000) as _, tv_nsec: (left % 1_000_000_000) as libc::c_long };
            // SAFETY: sleeps while the word is as it was; the time is valid and only read. Whatever ends the sleep, the
            // loop looks again.
            unsafe {
                let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
                libc::syscall(libc::SYS_futex, self.state.as_ptr(), operation, SILENT, &raw const left);
            }
        }
        // Silenced before anything is looked at: who rings from here on is heard next time.
        self.state.swap(SILENT, Ordering::AcqRel) == RUNG
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;
    use std::time::Instant;

    /// Scenario: nobody rings, somebody has rung before, and somebody rings many times.
    /// Guarantee: waiting lasts as long as was said, or no time at all; however often it was rung, it is heard once.
    #[test]
    fn a_bell_is_heard_once() {
        let (bell, began) = (Doorbell::new(), Instant::now());
        assert!(!bell.wait(Duration::from_millis(30)));
        assert!(began.elapsed() >= Duration::from_millis(30));
        (0..5).for_each(|_| bell.ring());
        assert!(bell.wait(Duration::from_secs(60)));
        assert!(!bell.wait(Duration::ZERO));
        assert!(began.elapsed() < Duration::from_secs(50));
    }

    /// Scenario: a thread counts up and rings each time, while another waits for the bell and looks.
    /// Guarantee: no ring is missed: the last count is seen without any wait running out.
    #[test]
    fn no_ring_is_missed() {
        const LAST: u64 = 20_000;
        let (bell, count) = (Doorbell::new(), AtomicU64::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in 1..=LAST {
                    count.store(number, Ordering::Relaxed);
                    bell.ring();
                }
            });
            while count.load(Ordering::Relaxed) != LAST {
                assert!(bell.wait(Duration::from_secs(60)));
            }
        });
    }
}
