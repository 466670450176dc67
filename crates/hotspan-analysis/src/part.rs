//! What a stretch of time was spent on, told by the profile it was seen in and by the frames around the leaf.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
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

/// The bare name of a function: without module path for whole-name comparisons.
fn bare(name: &str) -> &str {
    let start = name.rfind(['.', ':', '/', '!']).map_or(0, |at| at + 1);
    name[start..].trim_start_matches('_')
}

/// What the name of a function says about its time: any of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Signs(u8);

impl Signs {
    const COLLECTS: u8 = 1;
    const ALLOCATES: u8 = 2;
    const LOCKS: u8 = 4;
    const DOES_IO: u8 = 8;
    const SCHEDULES: u8 = 16;
    const SLEEPS: u8 = 32;

    /// Reads a name. All words are looked for in one pass: there are hundreds, and tens of thousands of names.
    pub fn of(name: &str) -> Self {
        static WORDS: LazyLock<Words> = LazyLock::new(Words::new);
        let found = WORDS.automaton.find_overlapping_iter(name);
        let mut signs = found.fold(0, |signs, word| signs | WORDS.signs[word.pattern().as_usize()]);
        if IO_WHOLE.iter().any(|word| bare(name).eq_ignore_ascii_case(word)) {
            signs |= Self::DOES_IO;
        }
        Self(signs)
    }

    fn has(self, sign: u8) -> bool {
        self.0 & sign != 0
    }

    /// Whether it is part of a garbage collector.
    pub(crate) fn collects(self) -> bool {
        self.has(Self::COLLECTS)
    }

    /// Whether it takes memory from an allocator.
    pub(crate) fn allocates(self) -> bool {
        self.has(Self::ALLOCATES)
    }
}

/// All words, and the sign that each of them is.
struct Words {
    automaton: AhoCorasick,
    signs: Vec<u8>,
}

impl Words {
    #[expect(clippy::expect_used, reason = "only too many or too long words fail, and these are constants")]
    fn new() -> Self {
        let lists = [
            (GC, Signs::COLLECTS),
            (ALLOCATION, Signs::ALLOCATES),
            (LOCK, Signs::LOCKS),
            (IO, Signs::DOES_IO),
            (SCHEDULING, Signs::SCHEDULES),
            (SLEEP, Signs::SLEEPS),
        ];
        let words = lists.iter().flat_map(|(words, _)| words.iter());
        let signs = lists.iter().flat_map(|(words, sign)| words.iter().map(|_| *sign));
        let automaton = AhoCorasick::builder().ascii_case_insensitive(true).build(words);
        Self { automaton: automaton.expect("the words are few and short"), signs: signs.collect() }
    }
}

/// What running code does, by the functions of its stack from the leaf on.
pub fn part_of_running(leaf_first: impl Iterator<Item = Signs>) -> Part {
    let mut looked_at = leaf_first.take(FRAMES_LOOKED_AT);
    if looked_at.any(|signs| signs.collects() || signs.allocates()) { Part::Gc } else { Part::Cpu }
}

/// What a wait is for, by the functions of its stack from the leaf on. None if nothing there is known to wait.
pub fn part_of_waiting(leaf_first: impl Iterator<Item = Signs>) -> Option<Part> {
    let mut sleeps = false;
    for signs in leaf_first.take(FRAMES_LOOKED_AT) {
        let told = [
            (Signs::COLLECTS, Part::Gc),
            (Signs::LOCKS, Part::Lock),
            (Signs::DOES_IO, Part::Io),
            (Signs::SCHEDULES, Part::Scheduling),
        ];
        if let Some((_, part)) = told.into_iter().find(|(sign, _)| signs.has(*sign)) {
            return Some(part);
        }
        sleeps |= signs.has(Signs::SLEEPS);
    }
    sleeps.then_some(Part::Waiting)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(leaf_first: &[&str]) -> Option<Part> {
        part_of_waiting(leaf_first.iter().map(|name| Signs::of(name)))
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
        let running = |leaf_first: [&str; 2]| part_of_running(leaf_first.into_iter().map(Signs::of));
        assert_eq!(running(["runtime.gcAssistAlloc1", "runtime.mallocgc"]), Part::Gc);
        assert_eq!(running(["memmove", "render"]), Part::Cpu);
    }
}
