//! What a profiling signal carries, so that the handler knows at once whose it is and what to do.

/// Marks a signal value as ours: no pointer has these upper bits, and no counter starts there.
const MAGIC: u64 = 0x4853 << 48;
const KIND_SHIFT: u32 = 40;
const INDEX_MASK: u64 = (1 << KIND_SHIFT) - 1;

/// The meaning of one profiling signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Payload {
    /// A thread's own CPU timer expired.
    ThreadCpu { slot: usize },
    /// The process's CPU timer expired while this thread ran.
    ProcessCpu,
    /// The monitor asks what this thread is doing.
    Wall { slot: usize },
}

impl Payload {
    /// The value to send.
    pub(crate) fn encode(self) -> u64 {
        let (kind, index) = match self {
            Payload::ThreadCpu { slot } => (1, slot),
            Payload::ProcessCpu => (2, 0),
            Payload::Wall { slot } => (3, slot),
        };
        MAGIC | (kind << KIND_SHIFT) | index as u64
    }

    /// The meaning of a received value; `None` if somebody else sent it.
    pub(crate) fn decode(value: u64) -> Option<Payload> {
        let slot = (value & INDEX_MASK) as usize;
        match (value & !INDEX_MASK) ^ MAGIC {
            kind if kind == 1 << KIND_SHIFT => Some(Payload::ThreadCpu { slot }),
            kind if kind == 2 << KIND_SHIFT => Some(Payload::ProcessCpu),
            kind if kind == 3 << KIND_SHIFT => Some(Payload::Wall { slot }),
            _ => None,
        }
    }
}

/// The part of the kernel's siginfo that timer and queued signals share on 64-bit Linux.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueuedSignalInfo {
    pub(crate) signal: i32,
    pub(crate) errno: i32,
    pub(crate) code: i32,
    pub(crate) padding: i32,
    pub(crate) sender_or_timer: i32,
    pub(crate) user_or_overrun: i32,
    pub(crate) value: u64,
    pub(crate) rest: [u64; 12],
}

/// The value of a timer or queued signal; `None` for any other kind, which carries none.
///
/// # Safety
/// `info` points to a siginfo from the kernel.
pub(crate) unsafe fn signal_value(info: *const libc::siginfo_t) -> Option<u64> {
    // SAFETY: the layout above is the kernel's for the two codes checked here; other codes are not read further.
    unsafe {
        let info = info.cast::<QueuedSignalInfo>();
        matches!((*info).code, libc::SI_TIMER | libc::SI_QUEUE).then(|| (*info).value)
    }
}

/// How many more expiries a timer signal stands for.
///
/// # Safety
/// `info` points to a siginfo from the kernel.
pub(crate) unsafe fn signal_overrun(info: *const libc::siginfo_t) -> u64 {
    // SAFETY: as for `signal_value`.
    unsafe {
        let info = info.cast::<QueuedSignalInfo>();
        if (*info).code == libc::SI_TIMER { u64::try_from((*info).user_or_overrun).unwrap_or(0) } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: all payloads are encoded and decoded, and foreign values are offered.
    /// Guarantee: ours come back unchanged, the others are refused.
    #[test]
    fn only_our_values_are_understood() {
        for payload in [Payload::ThreadCpu { slot: 4095 }, Payload::ProcessCpu, Payload::Wall { slot: 7 }] {
            assert_eq!(Payload::decode(payload.encode()), Some(payload));
        }
        for foreign in [0, 1, u64::MAX, 0x7fff_dead_beef, MAGIC, MAGIC | (9 << KIND_SHIFT)] {
            assert_eq!(Payload::decode(foreign), None);
        }
        assert_eq!(size_of::<QueuedSignalInfo>(), size_of::<libc::siginfo_t>());
    }
}
