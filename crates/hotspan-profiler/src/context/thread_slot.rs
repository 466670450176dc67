//! The thread-local pointer `otel_thread_ctx_v1` that OTEP 4947 defines.
//!
//! It is declared in assembly because stable Rust cannot give a thread-local an exported symbol. The access goes
//! through a TLS descriptor, which the linker turns into a plain offset in executables; so reading it in a signal
//! handler neither allocates nor locks.

use super::record::OtepHead;

core::arch::global_asm!(
    ".pushsection .tbss.otel_thread_ctx_v1,\"awT\",@nobits",
    ".globl otel_thread_ctx_v1",
    ".type otel_thread_ctx_v1, @object",
    ".size otel_thread_ctx_v1, 8",
    ".balign 8",
    "otel_thread_ctx_v1:",
    ".zero 8",
    ".popsection",
);

/// Where the calling thread keeps its pointer.
#[inline(always)]
fn slot() -> *mut *const OtepHead {
    let address: *mut *const OtepHead;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the descriptor call is defined to change only rax and flags; it returns the offset from the thread
    // pointer, which the first word of the fs segment holds.
    unsafe {
        core::arch::asm!(
            "lea rax, [rip + otel_thread_ctx_v1@TLSDESC]",
            "call [rax + otel_thread_ctx_v1@TLSCALL]",
            "add rax, fs:[0]",
            out("rax") address,
            options(pure, nomem),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the descriptor call is defined to change only x0, x1, x30 and flags; it returns the offset from the
    // thread pointer in x0.
    unsafe {
        core::arch::asm!(
            "adrp x0, :tlsdesc:otel_thread_ctx_v1",
            "ldr x1, [x0, :tlsdesc_lo12:otel_thread_ctx_v1]",
            "add x0, x0, :tlsdesc_lo12:otel_thread_ctx_v1",
            ".tlsdesccall otel_thread_ctx_v1",
            "blr x1",
            "mrs x1, tpidr_el0",
            "add x0, x0, x1",
            out("x0") address,
            out("x1") _,
            out("x30") _,
            options(pure, nomem),
        );
    }
    address
}

/// Makes `head` the thread's published record; null for none.
#[inline(always)]
pub(super) fn publish(head: *const OtepHead) {
    // The fences keep the compiler from moving writes to the record past the pointer, in either direction. The
    // processor needs none: every reader runs on this thread, or while it is stopped.
    std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
    // SAFETY: the slot belongs to this thread and is always mapped.
    unsafe { slot().write_volatile(head) };
    std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
}

/// Where the calling thread's pointer lies: zero there means that it works on no span. Valid while the thread lives.
#[inline(always)]
pub(crate) fn published_at() -> u64 {
    slot() as u64
}

/// The thread's published record; null for none.
#[inline(always)]
pub(super) fn published() -> *const OtepHead {
    // SAFETY: as above.
    unsafe { slot().read_volatile() }
}
