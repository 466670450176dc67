//! The memory through which the kernel hands over records.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

/// Where the kernel keeps its position, ours, and the start of the data, in the first page.
const HEAD: usize = 1024;
const TAIL: usize = 1032;
const DATA_OFFSET: usize = 1040;

/// One ring, shared by all events of a processor.
#[derive(Debug)]
pub(super) struct Ring {
    event: OwnedFd,
    memory: *mut u8,
    mapped: usize,
    data: *const u8,
    size: usize,
}

// SAFETY: the mapping belongs to this value alone and is not tied to a thread.
unsafe impl Send for Ring {}

impl Ring {
    /// Maps the ring of an event: the first of these sizes that the kernel grants. Each is a power of two of at least a page.
    pub(super) fn map(event: OwnedFd, sizes: &[usize]) -> io::Result<Ring> {
        // SAFETY: sysconf has no preconditions.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let mut granted = Err(io::ErrorKind::InvalidInput.into());
        for size in sizes {
            granted = map_shared(&event, page + size).map(|memory| (memory, *size));
            if granted.is_ok() {
                break;
            }
        }
        let (memory, size) = granted?;
        // SAFETY: the first page is mapped and holds this field, 8-byte aligned.
        let offset = unsafe { memory.add(DATA_OFFSET).cast::<u64>().read_volatile() } as usize;
        // Kernels before 4.1 leave the field zero: data starts at the second page.
        let offset = if offset == 0 { page } else { offset };
        Ok(Ring { event, memory, mapped: page + size, data: memory.wrapping_add(offset), size })
    }

    /// The event whose ring this is.
    pub(super) fn event(&self) -> &OwnedFd {
        &self.event
    }

    fn position(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: the first page is mapped for as long as `self` lives; the kernel uses these words atomically.
        unsafe { &*self.memory.add(offset).cast::<AtomicU64>() }
    }

    /// Hands every record that is there to `take`: its type, its flags and its body.
    pub(super) fn drain(&mut self, mut take: impl FnMut(u32, u16, &[u8])) {
        let head = self.position(HEAD).load(Ordering::Acquire);
        let mut tail = self.position(TAIL).load(Ordering::Relaxed);
        let mut record = Vec::new();
        while tail < head {
            let mut header = [0; 8];
            self.copy(tail, &mut header);
            let kind = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]);
            let flags = u16::from_ne_bytes([header[4], header[5]]);
            let length = usize::from(u16::from_ne_bytes([header[6], header[7]]));
            if length < 8 || length as u64 > head - tail {
                // The kernel never writes this; going on would read nonsense for ever.
                tail = head;
                break;
            }
            record.resize(length - 8, 0);
            self.copy(tail + 8, &mut record);
            take(kind, flags, &record);
            tail += length as u64;
        }
        self.position(TAIL).store(tail, Ordering::Release);
    }

    /// Copies out of the ring, which wraps.
    fn copy(&self, position: u64, into: &mut [u8]) {
        let start = position as usize & (self.size - 1);
        let first = into.len().min(self.size - start);
        // SAFETY: both pieces lie inside the data area, which is mapped for as long as `self` lives; the kernel does
        // not write between our tail and its head.
        unsafe {
            std::ptr::copy_nonoverlapping(self.data.add(start), into.as_mut_ptr(), first);
            std::ptr::copy_nonoverlapping(self.data, into.as_mut_ptr().add(first), into.len() - first);
        }
    }
}

fn map_shared(event: &OwnedFd, length: usize) -> io::Result<*mut u8> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new shared mapping of a descriptor that we own.
    let memory = unsafe { libc::mmap(std::ptr::null_mut(), length, access, libc::MAP_SHARED, event.as_raw_fd(), 0) };
    if memory == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(memory.cast()) }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: mapped in `map`, unmapped once.
        unsafe { libc::munmap(self.memory.cast(), self.mapped) };
    }
}
