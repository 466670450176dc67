//! OTEP 4719: what this process is, published in a named mapping for profilers outside.
//!
//! Header (32 bytes): signature, version, payload size, publication time, payload address. The payload is a protobuf
//! message with the resource and the keys of the attributes in thread records.

use crate::export::wire::Message;
use crate::sampler::clock::read_clock;
use std::ffi::c_void;
use std::io;
use std::sync::atomic::{Ordering, fence};

const NAME: &std::ffi::CStr = c"OTEL_CTX";
const SIGNATURE: [u8; 8] = *b"OTEL_CTX";
const VERSION: u32 = 2;
/// The name of the thread record's layout, as the OTEP's current text has it.
const THREAD_SCHEMA: &str = "tlsdesc_v1_dev";
/// The one attribute that thread records carry, at key index 0.
const LOCAL_ROOT_KEY: &str = "hotspan.local_root_span_id";

#[repr(C)]
struct Header {
    signature: [u8; 8],
    version: u32,
    payload_size: u32,
    published_at_ns: u64,
    payload: u64,
}

/// The published mapping; unpublished when dropped.
#[derive(Debug)]
pub(crate) struct ProcessContext {
    mapping: *mut Header,
    size: usize,
    /// Kept alive: the header points into it.
    _payload: Box<[u8]>,
}

// SAFETY: the mapping belongs to this value alone, and readers are other processes.
unsafe impl Send for ProcessContext {}
// SAFETY: nothing can be done through a shared reference.
unsafe impl Sync for ProcessContext {}

impl ProcessContext {
    /// Publishes the resource attributes of this process.
    pub(crate) fn publish(resource: &[(String, String)]) -> io::Result<ProcessContext> {
        let payload = encode_payload(resource).into_boxed_slice();
        let size = page_size();
        let mapping = map_named(size)?.cast::<Header>();
        let published_at_ns = read_clock(libc::CLOCK_BOOTTIME).unwrap_or(1).max(1);
        // SAFETY: the mapping is fresh, writable, page-aligned and larger than the header.
        unsafe {
            // A child must not seem to be this process.
            libc::madvise(mapping.cast(), size, libc::MADV_DONTFORK);
            mapping.write(Header {
                signature: SIGNATURE,
                version: VERSION,
                payload_size: payload.len() as u32,
                published_at_ns: 0,
                payload: payload.as_ptr() as u64,
            });
            // The time is written last: zero means "being written".
            fence(Ordering::SeqCst);
            (&raw mut (*mapping).published_at_ns).write_volatile(published_at_ns);
            name_mapping(mapping.cast(), size);
        }
        Ok(ProcessContext { mapping, size, _payload: payload })
    }
}

impl Drop for ProcessContext {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours; the time is zeroed before the payload goes.
        unsafe {
            (&raw mut (*self.mapping).published_at_ns).write_volatile(0);
            fence(Ordering::SeqCst);
            libc::munmap(self.mapping.cast(), self.size);
        }
    }
}

fn page_size() -> usize {
    // SAFETY: sysconf has no preconditions.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// A private mapping that shows its name in procfs: through a memfd, or anonymous where that is not allowed.
fn map_named(size: usize) -> io::Result<*mut c_void> {
    const MFD_NOEXEC_SEAL: libc::c_uint = 8;
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: plain system calls on values of our own; the descriptor is closed on every path.
    unsafe {
        let mut file = libc::memfd_create(NAME.as_ptr(), flags | MFD_NOEXEC_SEAL);
        if file < 0 {
            // Kernels before 6.3 do not know the seal.
            file = libc::memfd_create(NAME.as_ptr(), flags);
        }
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let mapping = if file >= 0 && libc::ftruncate(file, size as libc::off_t) == 0 {
            libc::mmap(std::ptr::null_mut(), size, protection, libc::MAP_PRIVATE, file, 0)
        } else {
            libc::mmap(std::ptr::null_mut(), size, protection, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
        };
        let error = io::Error::last_os_error();
        if file >= 0 {
            libc::close(file);
        }
        if mapping == libc::MAP_FAILED { Err(error) } else { Ok(mapping) }
    }
}

/// Names the mapping where the kernel can; the call itself is what the eBPF profiler listens for.
///
/// # Safety
/// `mapping` is a mapping of `size` bytes.
unsafe fn name_mapping(mapping: *mut c_void, size: usize) {
    // SAFETY: as above; failure is harmless, the memfd carries the name as well.
    unsafe {
        libc::prctl(libc::PR_SET_VMA, libc::PR_SET_VMA_ANON_NAME, mapping, size, NAME.as_ptr());
    }
}

fn encode_payload(resource: &[(String, String)]) -> Vec<u8> {
    let mut payload = Message::new();
    payload.message(1, |out| {
        for (key, value) in resource {
            out.message(1, |out| out.resource_attribute(key, value));
        }
    });
    payload.message(2, |out| out.string_attribute("threadlocal.schema_version", THREAD_SCHEMA));
    payload.message(2, |out| {
        out.string(1, "threadlocal.attribute_key_map");
        // AnyValue.array_value (5) of ArrayValue.values (1) of AnyValue.string_value (1).
        out.message(2, |out| out.message(5, |out| out.message(1, |out| out.string(1, LOCAL_ROOT_KEY))));
    });
    payload.into_bytes()
}

/// Whether profilers outside this process can find the thread records: the program's dynamic symbol table must name
/// them, which takes one line in the program's `build.rs`:
///
/// ```text
/// println!("cargo:rustc-link-arg-bins=-Wl,--export-dynamic-symbol=otel_thread_ctx_v1");
/// ```
///
/// The profiler in this crate does not need it.
pub fn thread_context_is_exported() -> bool {
    // SAFETY: dlsym with a valid name; a thread-local's address is only compared with null.
    unsafe { !libc::dlsym(libc::RTLD_DEFAULT, c"otel_thread_ctx_v1".as_ptr()).is_null() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: a process context is published and looked for as an outside reader does, then dropped.
    /// Guarantee: procfs shows the name, the header is complete, and afterwards it is gone.
    #[test]
    fn the_context_can_be_found_in_procfs() {
        let published = ProcessContext::publish(&[("service.name".into(), "test".into())]).unwrap();
        let address = published.mapping as u64;
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let line = maps.lines().find(|line| line.starts_with(&format!("{address:x}-"))).unwrap();
        assert!(line.contains("OTEL_CTX"), "{line}");
        // SAFETY: the mapping lives until `published` is dropped.
        let header = unsafe { &*published.mapping };
        assert_eq!((header.signature, header.version), (SIGNATURE, VERSION));
        assert!(header.published_at_ns > 0 && header.payload_size > 0);
        drop(published);
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        assert!(!maps.lines().any(|line| line.starts_with(&format!("{address:x}-")) && line.contains("OTEL_CTX")));
    }
}
