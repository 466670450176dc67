//! What a source of samples tells about the program: the same from perf events and from ptrace.

use std::ops::Range;

use crate::registers::Registers;

/// A thread's user stack at a moment.
#[derive(Debug, Clone)]
pub(crate) struct Stack {
    pub(crate) registers: Registers,
    /// Memory from the stack pointer up.
    pub(crate) bytes: Vec<u8>,
}

/// What a sample stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Measure {
    /// CPU time that the thread has used.
    Cpu { nanoseconds: u64 },
    /// The thread leaves its processor: the time until it is back.
    LeavesCpu,
}

#[derive(Debug, Clone)]
pub(crate) enum Event {
    /// Code was mapped.
    Mapped { pid: i32, range: Range<u64>, offset: u64, path: String },
    /// A thread has a name; `executed` if it runs another program from here on.
    Named { pid: i32, tid: i32, name: String, executed: bool },
    /// A process (or thread, if `pid` and `parent` are the same) began.
    Forked { pid: i32, parent: i32 },
    /// A thread ended.
    Exited { pid: i32, tid: i32 },
    /// There was no room for some records.
    Lost { samples: u64 },
    /// A thread got a processor again.
    BackOnCpu { pid: i32, tid: i32, time: u64 },
    /// A thread used CPU time, or leaves its processor.
    Sample {
        pid: i32,
        tid: i32,
        /// Nanoseconds of the monotonic clock.
        time: u64,
        measure: Measure,
        interrupted: u64,
        /// Addresses in the kernel, innermost first.
        kernel: Vec<u64>,
        user: Option<Stack>,
    },
}
