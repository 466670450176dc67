//! What a stretch of time was spent on, told by the profile it was seen in and by the frames around the leaf.

use serde::Serialize;

/// A part of a request's time. Parts do not overlap, and together they are the duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Running.
    Cpu,
    /// Collecting garbage, or allocating.
    Gc,
    /// Waiting for a lock.
    Lock,
    /// Waiting for a disk or a socket.
    Io,
    /// Ready to run, but not running.
    Scheduling,
    /// Waiting for something else, or for something not known.
    Waiting,
    /// Waiting for another service, whose own time is not seen.
    Downstream,
    /// Not seen.
    Unexplained,
}

impl Part {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 8] = [
        Self::Cpu,
        Self::Gc,
        Self::Lock,
        Self::Io,
        Self::Scheduling,
        Self::Waiting,
        Self::Downstream,
        Self::Unexplained,
    ];

    /// Its name in answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Gc => "gc",
            Self::Lock => "lock",
            Self::Io => "io",
            Self::Scheduling => "scheduling",
            Self::Waiting => "waiting",
            Self::Downstream => "downstream",
            Self::Unexplained => "unexplained",
        }
    }

    /// How a flame graph names time that is not simply running.
    pub fn label(self) -> &'static str {
        match self {
            Self::Cpu => "[on CPU]",
            Self::Gc => "[allocating, GC]",
            Self::Lock => "[waiting for a lock]",
            Self::Io => "[waiting for I/O]",
            Self::Scheduling => "[waiting for a CPU]",
            Self::Waiting => "[waiting]",
            Self::Downstream => "[waiting for another service]",
            Self::Unexplained => "[unexplained]",
        }
    }

    /// Whether this is time off the CPU.
    pub fn is_waiting(self) -> bool {
        matches!(self, Self::Lock | Self::Io | Self::Scheduling | Self::Waiting | Self::Downstream)
    }
}

/// How many frames above the leaf are looked at: wrappers of system calls are a few frames deep.
const FRAMES_LOOKED_AT: usize = 12;

const GC: &[&str] = &[
    "gcassist",
    "gcdrain",
    "gcbgmark",
    "gcstart",
    "gcmark",
    "scanobject",
    "sweepone",
    "bgsweep",
    "g1collected",
    "g1parscan",
    "g1evacuate",
    "psscavenge",
    "parallelgc",
    "zcollected",
    "zmark",
    "shenandoah",
    "garbage_collect",
    "garbagecollect",
    "gc_collect",
    "_pygc",
    "gc_sweep",
    "gc_mark",
    "v8::internal::heap::",
    "scavenger",
    "markcompact",
    "safepointsynchronize",
    "gen_collect",
    "sgen_",
    "gcheap::",
    "rb_gc",
    "zend_gc",
];
const ALLOCATION: &[&str] = &[
    "mallocgc",
    "newobject",
    "growslice",
    "makeslice",
    "malloc",
    "calloc",
    "realloc",
    "mi_heap_",
    "je_",
    "tcmalloc",
    "__rust_alloc",
    "exchange_malloc",
    "allocate_new_tlab",
    "membarrier_alloc",
    "page_fault",
    "handle_mm_fault",
    "clear_page",
    "madvise",
    "mmap",
    "munmap",
];
const LOCK: &[&str] = &[
    "futex",
    "mutex",
    "pthread_cond",
    "pthread_rwlock",
    "rwlock",
    "semacquire",
    "semasleep",
    "lockslow",
    "monitor",
    "unsafe.park",
    "unsafe_park",
    "locksupport.park",
    "synchronizer",
    "reentrantlock",
    "__lll_lock",
    "parking_lot",
    "condvar",
    "srwlock",
    "acquiresrwlock",
    "waitforsingleobject",
    "semaphore",
    "sync.(*",
    "_pymutex",
    "acquire_lock",
    "take_gil",
    "gil_acquire",
    "spinlock",
];
const IO: &[&str] = &[
    "epoll",
    "kevent",
    "netpoll",
    "recvfrom",
    "recvmsg",
    "sendto",
    "sendmsg",
    "fsync",
    "fdatasync",
    "pread",
    "pwrite",
    "preadv",
    "pwritev",
    "io_uring",
    "io_getevents",
    "__poll",
    "ppoll",
    "__select",
    "pselect",
    "sys_read",
    "sys_write",
    "__read",
    "__write",
    "socketread",
    "socketwrite",
    "socketinputstream",
    "filedispatcher",
    "internal/poll",
    "internal/poll.(*fd)",
    "accept4",
    "__connect",
    "sock_recv",
    "sock_send",
    "tcp_recvmsg",
    "tcp_sendmsg",
    "unix_stream",
    "blk_",
    "ext4_",
    "xfs_",
    "vfs_read",
    "vfs_write",
    "vfs_fsync",
    "wait_on_page",
    "getaddrinfo",
    "ssl_read",
    "ssl_write",
    "readv",
    "writev",
    "uv__io",
    "nanosocket",
];
const IO_WHOLE: &[&str] = &["read", "write", "poll", "select", "recv", "send", "connect", "accept", "open", "close"];
const SCHEDULING: &[&str] =
    &["schedule_preempt", "preempt", "sched_yield", "runqget", "cpu_throttl", "throttle_cfs", "runnable"];
const SLEEP: &[&str] = &[
    "nanosleep",
    "usleep",
    "timesleep",
    "thread.sleep",
    "thread::sleep",
    "time.sleep",
    "gopark",
    "wait_for_completion",
    "schedule_timeout",
    "do_wait",
    "wait4",
    "__sleep",
    "object.wait",
    "epoll_wait_idle",
];

/// The bare, lower-cased name of a function: without module path for whole-name comparisons.
fn bare(name: &str) -> &str {
    let start = name.rfind(['.', ':', '/', '!']).map_or(0, |at| at + 1);
    name[start..].trim_start_matches('_')
}

fn any_in(name: &str, words: &[&str]) -> bool {
    words.iter().any(|word| name.contains(word))
}

/// What running code does, by the functions of its stack from the leaf on.
pub fn part_of_running<'n>(leaf_first: impl Iterator<Item = &'n str>) -> Part {
    for name in leaf_first.take(FRAMES_LOOKED_AT) {
        let name = name.to_ascii_lowercase();
        if any_in(&name, GC) || is_allocation(&name) {
            return Part::Gc;
        }
    }
    Part::Cpu
}

/// Whether a function, lower-cased, takes memory from an allocator.
pub(crate) fn is_allocation(name: &str) -> bool {
    any_in(name, ALLOCATION)
}

/// Whether a function, lower-cased, is part of a garbage collector.
pub(crate) fn is_collection(name: &str) -> bool {
    any_in(name, GC)
}

/// What a wait is for, by the functions of its stack from the leaf on. None if nothing there is known to wait.
pub fn part_of_waiting<'n>(leaf_first: impl Iterator<Item = &'n str>) -> Option<Part> {
    let mut sleeps = false;
    for name in leaf_first.take(FRAMES_LOOKED_AT) {
        let name = name.to_ascii_lowercase();
        if any_in(&name, GC) {
            return Some(Part::Gc);
        }
        if any_in(&name, LOCK) {
            return Some(Part::Lock);
        }
        if any_in(&name, IO) || IO_WHOLE.contains(&bare(&name)) {
            return Some(Part::Io);
        }
        if any_in(&name, SCHEDULING) {
            return Some(Part::Scheduling);
        }
        sleeps |= any_in(&name, SLEEP);
    }
    sleeps.then_some(Part::Waiting)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(leaf_first: &[&str]) -> Option<Part> {
        part_of_waiting(leaf_first.iter().copied())
    }

    /// Scenario: stacks of waits as C, Go, Java, Rust and the kernel show them, and stacks that do not wait.
    /// Guarantee: each wait gets its cause, and running code gets none.
    #[test]
    fn waits_are_told_by_their_leaf() {
        assert_eq!(waiting(&["__futex_abstimed_wait_common64", "pthread_mutex_lock", "store"]), Some(Part::Lock));
        assert_eq!(waiting(&["runtime.gopark", "runtime.semacquire1", "sync.(*Mutex).lockSlow"]), Some(Part::Lock));
        assert_eq!(waiting(&["jdk.internal.misc.Unsafe.park", "java.util.concurrent.Foo"]), Some(Part::Lock));
        assert_eq!(waiting(&["syscall", "std::sys::sync::mutex::futex::Mutex::lock_contended"]), Some(Part::Lock));
        assert_eq!(waiting(&["runtime.netpollblock", "internal/poll.(*FD).Read"]), Some(Part::Io));
        assert_eq!(waiting(&["__GI___libc_read", "std::fs::File::read"]), Some(Part::Io));
        assert_eq!(waiting(&["read"]), Some(Part::Io));
        assert_eq!(waiting(&["clock_nanosleep", "thread::sleep"]), Some(Part::Waiting));
        assert_eq!(waiting(&["parse_value", "lookup"]), None);
        assert_eq!(part_of_running(["runtime.gcAssistAlloc1", "runtime.mallocgc"].into_iter()), Part::Gc);
        assert_eq!(part_of_running(["memmove", "render"].into_iter()), Part::Cpu);
    }
}
