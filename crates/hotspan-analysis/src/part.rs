//! What a stretch of time was spent on, told by the profile it was seen in and by the frames around the leaf.

use serde::Serialize;

use crate::own_code::Ownership;
use crate::signs::{Sign, Signs};

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
pub(crate) const FRAMES_LOOKED_AT: usize = 12;

/// What running code does, by the functions of its stack from the leaf on.
pub fn part_of_running(leaf_first: impl Iterator<Item = Signs>) -> Part {
    let mut looked_at = leaf_first.take(FRAMES_LOOKED_AT);
    if looked_at.any(|signs| signs.say(Sign::Collects) || signs.say(Sign::Allocates)) { Part::Gc } else { Part::Cpu }
}

/// What a wait is for, by the functions of its stack from the leaf on. None if nothing there is known to wait.
///
/// Libraries tell: what waits is theirs, and own code may have any name (`monitor_orders` sleeps, `read` computes). Own code
/// tells where it calls something that has no name.
pub fn part_of_waiting(leaf_first: &[(Signs, Ownership)]) -> Option<Part> {
    let told_by = |owner: Ownership| {
        let looked_at = leaf_first.iter().take(FRAMES_LOOKED_AT);
        waits_for(looked_at.filter(|(_, ownership)| *ownership == owner).map(|(signs, _)| *signs))
    };
    let is_nameless = leaf_first.first().is_some_and(|(leaf, _)| leaf.say(Sign::Nameless));
    told_by(Ownership::Library).or_else(|| is_nameless.then(|| told_by(Ownership::Own)).flatten())
}

fn waits_for(leaf_first: impl Iterator<Item = Signs>) -> Option<Part> {
    let mut sleeps = false;
    for signs in leaf_first {
        let told = [
            (Sign::Collects, Part::Gc),
            (Sign::Locks, Part::Lock),
            (Sign::DoesIo, Part::Io),
            (Sign::Schedules, Part::Scheduling),
        ];
        if let Some((_, part)) = told.into_iter().find(|(sign, _)| signs.say(*sign)) {
            return Some(part);
        }
        sleeps |= signs.say(Sign::Sleeps);
    }
    sleeps.then_some(Part::Waiting)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::own_code::ownership_of;

    fn waiting(leaf_first: &[&str]) -> Option<Part> {
        let frames: Vec<_> = leaf_first.iter().map(|name| (Signs::of(name), ownership_of(name, ""))).collect();
        part_of_waiting(&frames)
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
        assert_eq!(waiting(&["clock_nanosleep", "shop::monitor_orders"]), Some(Part::Waiting));
        assert_eq!(waiting(&["runtime.netpollblock", "main.(*SemaphorePool).Fetch"]), Some(Part::Io));
        assert_eq!(waiting(&["libc.so.6!0x891f4", "OrderBook::lock_mutex"]), Some(Part::Lock));
        assert_eq!(waiting(&["shop::Receipt::read", "shop::monitor_orders"]), None);
        let running = |leaf_first: [&str; 2]| part_of_running(leaf_first.into_iter().map(Signs::of));
        assert_eq!(running(["runtime.gcAssistAlloc1", "runtime.mallocgc"]), Part::Gc);
        assert_eq!(running(["memmove", "render"]), Part::Cpu);
    }
}
