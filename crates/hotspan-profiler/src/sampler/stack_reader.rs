//! Reads of stack memory that cannot fault.
//!
//! A thread's stack and its thread-control block lie in one block of memory, the block at the upper end (glibc and
//! musl both), so everything from the stack pointer up to the thread pointer stays readable while the thread runs.
//! The main thread's stack is known by name. Any other stack (a coroutine's, an alternate signal stack) is read
//! through the kernel, which answers "no" where a load would crash.

use crate::sampler::address_space::{AddressSpace, MappedRange};
use std::mem::MaybeUninit;
use std::ops::Range;

const CHUNK_WORDS: usize = 64;
/// Kernel reads one sample may make: enough for ordinary stacks, and bounded for hostile ones.
const MAX_KERNEL_READS: u32 = 64;

/// Words of the red zone below the stack pointer that leaf functions may use.
const RED_ZONE: u64 = 128;

/// Bounds inside which loads are safe, or a window read through the kernel.
#[derive(Debug)]
pub(crate) struct StackReader {
    trusted: Range<u64>,
    is_unknown: bool,
    window_start: u64,
    window_words: usize,
    /// Filled as far as `window_words` tells: most stacks need none, and to clear it would cost each sample.
    window: [MaybeUninit<u64>; CHUNK_WORDS],
    kernel_reads: u32,
}

impl StackReader {
    /// A reader for the stack that `sp` points into, which is most often the one that was read last.
    pub(crate) fn for_stack(space: &AddressSpace, sp: u64, thread_pointer: u64, last: &mut LastStack) -> StackReader {
        if let Some(end) = last.end_if_same(space, sp, thread_pointer) {
            return StackReader::of_kind(StackKind::OwnUpTo(end), sp);
        }
        let mapping = space.mapping_of(sp);
        let stack = StackKind::of(space, mapping, sp, thread_pointer);
        if let (StackKind::OwnUpTo(end), Some(mapping)) = (stack, mapping) {
            *last = LastStack { space_serial: space.serial, thread_pointer, range: mapping.start..end };
        }
        StackReader::of_kind(stack, sp)
    }

    fn of_kind(stack: StackKind, sp: u64) -> StackReader {
        StackReader {
            is_unknown: stack == StackKind::Unknown,
            trusted: if let StackKind::OwnUpTo(end) = stack { sp.saturating_sub(RED_ZONE)..end } else { 0..0 },
            window_start: 0,
            window_words: 0,
            window: [MaybeUninit::uninit(); CHUNK_WORDS],
            kernel_reads: 0,
        }
    }

    /// Whether the snapshot is older than the stack, so that a new one would make its reading cheaper.
    pub(crate) fn is_unknown(&self) -> bool {
        self.is_unknown
    }

    /// The word at `address`, or an error where there is none.
    #[inline]
    pub(crate) fn read(&mut self, address: u64) -> Result<u64, ()> {
        if address & 7 != 0 {
            return Err(());
        }
        if self.trusted.start <= address && address + 8 <= self.trusted.end {
            // SAFETY: the range is live stack memory of the interrupted thread, and the address is aligned.
            return Ok(unsafe { (address as *const u64).read_volatile() });
        }
        if self.trusted.is_empty() { self.read_through_kernel(address) } else { Err(()) }
    }

    #[cold]
    fn read_through_kernel(&mut self, address: u64) -> Result<u64, ()> {
        let in_window = |reader: &StackReader| {
            let index = address.wrapping_sub(reader.window_start) / 8;
            // SAFETY: the kernel has filled as many words as are told.
            (index < reader.window_words as u64).then(|| unsafe { reader.window[index as usize].assume_init() })
        };
        if let Some(word) = in_window(self) {
            return Ok(word);
        }
        if self.kernel_reads >= MAX_KERNEL_READS {
            return Err(());
        }
        self.kernel_reads += 1;
        let local = libc::iovec { iov_base: self.window.as_mut_ptr().cast(), iov_len: size_of_val(&self.window) };
        let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: size_of_val(&self.window) };
        // SAFETY: a raw system call, async-signal-safe; it writes only into `window` and reports unreadable memory
        // as an error or a short count.
        let copied = unsafe {
            libc::syscall(libc::SYS_process_vm_readv, libc::getpid(), &local, 1usize, &remote, 1usize, 0usize)
        };
        self.window_start = address;
        self.window_words = usize::try_from(copied).unwrap_or(0) / 8;
        in_window(self).ok_or(())
    }
}

/// Reads one word at each address, wherever it lies: in memory of other threads, which may end meanwhile. What can't be
/// read is told as [`u64::MAX`].
pub(crate) fn read_words(addresses: &[u64], words: &mut Vec<u64>) {
    /// As many as one system call takes.
    const AT_ONCE: usize = 1024;
    const WORD: usize = size_of::<u64>();
    words.clear();
    words.resize(addresses.len(), u64::MAX);
    let mut from = 0;
    while from < addresses.len() {
        let until = addresses.len().min(from + AT_ONCE);
        let place = |address: &u64| libc::iovec { iov_base: *address as *mut libc::c_void, iov_len: WORD };
        let remote: Vec<libc::iovec> = addresses[from..until].iter().map(place).collect();
        let local = libc::iovec { iov_base: words[from..until].as_mut_ptr().cast(), iov_len: WORD * remote.len() };
        // SAFETY: the call writes only into the words that `local` names, and reports unreadable memory as an error or
        // a short count.
        let copied = unsafe {
            let (pid, remotes) = (libc::getpid(), remote.len());
            libc::syscall(libc::SYS_process_vm_readv, pid, &local, 1usize, remote.as_ptr(), remotes, 0usize)
        };
        let read = usize::try_from(copied).unwrap_or(0) / WORD;
        // It stops at the first that can't be read.
        from = if from + read == until { until } else { from + read + 1 };
    }
}

/// The stack that was last found, so that the next sample of its thread need not search for it.
#[derive(Debug, Default)]
pub(crate) struct LastStack {
    space_serial: u64,
    thread_pointer: u64,
    range: Range<u64>,
}

impl LastStack {
    /// Where the stack ends up to which it may be read, if `sp` lies in it, on the same thread and by the same snapshot.
    fn end_if_same(&self, space: &AddressSpace, sp: u64, thread_pointer: u64) -> Option<u64> {
        let is_same = self.space_serial == space.serial && self.thread_pointer == thread_pointer;
        (is_same && self.range.contains(&sp)).then_some(self.range.end)
    }
}

/// Which stack a thread runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StackKind {
    /// Its own, readable up to this address.
    OwnUpTo(u64),
    /// Another one: a coroutine's, or one for signals.
    Foreign,
    /// One that is younger than the snapshot of memory, or whose thread is.
    Unknown,
}

impl StackKind {
    /// The kind of the stack that lies in `mapping`, which holds `sp`.
    fn of(space: &AddressSpace, mapping: Option<MappedRange>, sp: u64, thread_pointer: u64) -> StackKind {
        match mapping {
            None => StackKind::Unknown,
            Some(mapping) if mapping.is_main_stack => StackKind::OwnUpTo(mapping.end),
            Some(mapping) if sp < thread_pointer && thread_pointer < mapping.end => StackKind::OwnUpTo(thread_pointer),
            Some(_) if space.mapping_of(thread_pointer).is_none() => StackKind::Unknown,
            Some(_) => StackKind::Foreign,
        }
    }
}

/// Where the running thread's control block lies.
#[inline]
pub(crate) fn thread_pointer() -> u64 {
    let pointer: u64;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: on Linux the first word of the fs segment is its own address.
    unsafe {
        core::arch::asm!("mov {}, fs:[0]", out(reg) pointer, options(nostack, readonly, preserves_flags));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: reading the thread register has no side effects.
    unsafe {
        core::arch::asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nostack, nomem, preserves_flags));
    }
    pointer
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: a thread other than main reads its own stack within the snapshot's bounds.
    /// Guarantee: its own words are read, what lies past the thread pointer is refused.
    #[test]
    fn a_thread_reads_its_own_stack() {
        std::thread::spawn(|| {
            let space = AddressSpace::capture();
            let local = 0x1234_5678u64;
            let address = &raw const local as u64;
            let mut last = LastStack::default();
            let mut reader = StackReader::for_stack(&space, address, thread_pointer(), &mut last);
            assert!(!reader.trusted.is_empty());
            assert_eq!(reader.read(address), Ok(local));
            assert_eq!(reader.read(address + 1), Err(()));
            assert_eq!(reader.read(thread_pointer() & !7), Err(()));
        })
        .join()
        .unwrap();
    }

    /// Scenario: a thread asks for its stack twice, then with another snapshot, a stack pointer elsewhere, and as another thread.
    /// Guarantee: only the second time the answer is remembered, and it is the same as the first.
    #[test]
    fn the_last_stack_is_remembered() {
        std::thread::spawn(|| {
            let (space, local, mut last) = (AddressSpace::capture(), 0u64, LastStack::default());
            let (sp, pointer) = (&raw const local as u64, thread_pointer());
            assert_eq!(last.end_if_same(&space, sp, pointer), None);
            let first = StackReader::for_stack(&space, sp, pointer, &mut last).trusted;
            assert_eq!(last.end_if_same(&space, sp, pointer), Some(first.end));
            assert_eq!(StackReader::for_stack(&space, sp, pointer, &mut last).trusted, first);
            assert_eq!(last.end_if_same(&AddressSpace::capture(), sp, pointer), None);
            assert_eq!(last.end_if_same(&space, pointer, pointer), None);
            assert_eq!(last.end_if_same(&space, sp, pointer + 8), None);
            // What is no stack of this thread is not remembered as one.
            let elsewhere = StackReader::for_stack(&space, main_code(), pointer, &mut last);
            assert!(elsewhere.trusted.is_empty());
            assert_eq!(last.end_if_same(&space, main_code(), pointer), None);
        })
        .join()
        .unwrap();
    }

    fn main_code() -> u64 {
        main_code as *const () as u64
    }

    /// Scenario: a stack that no snapshot knows, and an address that is not mapped at all.
    /// Guarantee: the first is read through the kernel, the second is refused without a fault.
    #[test]
    fn unknown_memory_is_read_through_the_kernel() {
        let heap: Vec<u64> = (0..200).collect();
        let mut reader = StackReader::of_kind(StackKind::Unknown, heap.as_ptr() as u64);
        for (index, word) in heap.iter().enumerate() {
            assert_eq!(reader.read(heap.as_ptr() as u64 + 8 * index as u64), Ok(*word));
        }
        assert_eq!(reader.read(8), Err(()));
    }

    /// Scenario: more words than one system call reads, among them addresses where there is no memory, at both ends too.
    /// Guarantee: every word is read, and what is not there is told as such and disturbs no other.
    #[test]
    fn words_are_read_around_what_is_missing() {
        let known: Vec<u64> = (0..2500).collect();
        let mut addresses: Vec<u64> = known.iter().map(|word| word as *const u64 as u64).collect();
        let mut expected = (0..2500).collect::<Vec<u64>>();
        for missing in [0, 1, 1023, 1024, 1500, 2499] {
            addresses[missing] = 8;
            expected[missing] = u64::MAX;
        }
        let mut words = Vec::new();
        read_words(&addresses, &mut words);
        assert_eq!(words, expected);
        read_words(&[], &mut words);
        assert!(words.is_empty());
    }
}
