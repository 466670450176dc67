//! What the kernel is asked for: `perf_event_attr`, as far as we use it.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

use crate::registers::USER_REGISTERS;

const TYPE_SOFTWARE: u32 = 1;
const CPU_CLOCK: u64 = 0;
const CONTEXT_SWITCHES: u64 = 3;
const FLAG_CLOSE_ON_EXEC: libc::c_ulong = 8;

/// Parts of a sample, in the order in which the kernel writes them.
pub(super) mod part {
    pub(crate) const IP: u64 = 1 << 0;
    pub(crate) const TID: u64 = 1 << 1;
    pub(crate) const TIME: u64 = 1 << 2;
    pub(crate) const CALLCHAIN: u64 = 1 << 5;
    pub(crate) const PERIOD: u64 = 1 << 8;
    pub(crate) const REGS_USER: u64 = 1 << 12;
    pub(crate) const STACK_USER: u64 = 1 << 13;
}

/// What every sample holds.
pub(super) const SAMPLE_PARTS: u64 =
    part::IP | part::TID | part::TIME | part::CALLCHAIN | part::PERIOD | part::REGS_USER | part::STACK_USER;

mod flag {
    pub(super) const DISABLED: u64 = 1 << 0;
    pub(super) const INHERIT: u64 = 1 << 1;
    pub(super) const EXCLUDE_KERNEL: u64 = 1 << 5;
    pub(super) const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
    pub(super) const MMAP: u64 = 1 << 8;
    pub(super) const COMM: u64 = 1 << 9;
    pub(super) const ENABLE_ON_EXEC: u64 = 1 << 12;
    pub(super) const TASK: u64 = 1 << 13;
    pub(super) const WATERMARK: u64 = 1 << 14;
    pub(super) const SAMPLE_ID_ALL: u64 = 1 << 18;
    pub(super) const EXCLUDE_CALLCHAIN_USER: u64 = 1 << 22;
    pub(super) const MMAP2: u64 = 1 << 23;
    pub(super) const COMM_EXEC: u64 = 1 << 24;
    pub(super) const USE_CLOCKID: u64 = 1 << 25;
    pub(super) const CONTEXT_SWITCH: u64 = 1 << 26;
}

/// The kernel's structure, in its fifth version (Linux 4.1).
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct RawAttributes {
    event_type: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint_type: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_stack_user: u32,
    clockid: i32,
    sample_regs_intr: u64,
    aux_watermark: u32,
    sample_max_stack: u16,
    reserved: u16,
}

/// When a sample is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    /// Whenever a thread has used so many nanoseconds of CPU time.
    CpuTime(u64),
    /// Whenever a thread leaves its processor; coming back is told too.
    LeavingCpu,
}

/// One kind of event, to be opened for threads and processors.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attributes {
    pub(super) moment: Moment,
    /// Stack that is copied with each sample.
    pub(super) stack_bytes: u32,
    /// Whether time in the kernel counts too.
    pub(super) kernel: bool,
    /// Starts with the program that the thread executes, rather than at once.
    pub(super) enable_on_exec: bool,
    /// Unread bytes at which a reader is woken.
    pub(super) wake_at: u32,
}

impl Attributes {
    /// Opens the event for one thread, and what it starts, on one processor.
    pub(super) fn open(&self, tid: i32, cpu: i32) -> io::Result<OwnedFd> {
        let mut flags = flag::INHERIT
            | flag::EXCLUDE_HYPERVISOR
            | flag::MMAP
            | flag::MMAP2
            | flag::COMM
            | flag::COMM_EXEC
            | flag::TASK
            | flag::WATERMARK
            | flag::SAMPLE_ID_ALL
            | flag::EXCLUDE_CALLCHAIN_USER
            | flag::USE_CLOCKID;
        if !self.kernel {
            flags |= flag::EXCLUDE_KERNEL;
        }
        let (config, sample_period) = match self.moment {
            Moment::CpuTime(period_ns) => (CPU_CLOCK, period_ns),
            Moment::LeavingCpu => (CONTEXT_SWITCHES, 1),
        };
        if self.moment == Moment::LeavingCpu {
            flags |= flag::CONTEXT_SWITCH;
            // The other event tells of these already.
            flags &= !(flag::MMAP | flag::MMAP2 | flag::COMM | flag::COMM_EXEC | flag::TASK);
        }
        if self.enable_on_exec {
            flags |= flag::DISABLED | flag::ENABLE_ON_EXEC;
        }
        let raw = RawAttributes {
            event_type: TYPE_SOFTWARE,
            size: size_of::<RawAttributes>() as u32,
            config,
            sample_period,
            sample_type: SAMPLE_PARTS,
            flags,
            wakeup: self.wake_at,
            sample_regs_user: USER_REGISTERS,
            sample_stack_user: self.stack_bytes,
            clockid: libc::CLOCK_MONOTONIC,
            ..RawAttributes::default()
        };
        // SAFETY: the structure is as the kernel wants it and lives for the call.
        let fd = unsafe {
            libc::syscall(libc::SYS_perf_event_open, &raw const raw, tid, cpu, -1 as libc::c_int, FLAG_CLOSE_ON_EXEC)
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just given us this descriptor.
        Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
    }
}
