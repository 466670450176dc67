//! A word that each thread has for itself, and that a signal handler may read and write.
//!
//! `thread_local!` may make its memory on first use, inside a library that was loaded late. This is declared in assembly,
//! where the access goes through a TLS descriptor, which the linker turns into a plain offset in executables: it neither
//! allocates nor locks. That also gives it a symbol, which others can find it by.

/// Declares the word by its symbol and visibility (`.globl`, or `.hidden` where nobody outside needs it), and a function
/// that tells where the calling thread's lies. It is zero at first.
macro_rules! thread_word {
    ($(#[$documentation:meta])* fn $address:ident, $symbol:literal, $visibility:literal) => {
        core::arch::global_asm!(
            concat!(".pushsection .tbss.", $symbol, ",\"awT\",@nobits"),
            concat!(".globl ", $symbol),
            concat!($visibility, " ", $symbol),
            concat!(".type ", $symbol, ", @object"),
            concat!(".size ", $symbol, ", 8"),
            ".balign 8",
            concat!($symbol, ":"),
            ".zero 8",
            ".popsection",
        );

        $(#[$documentation])*
        #[inline(always)]
        fn $address() -> *mut usize {
            let address: *mut usize;
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the descriptor call is defined to change only rax and flags; it returns the offset from the
            // thread pointer, which the first word of the fs segment holds.
            unsafe {
                core::arch::asm!(
                    concat!("lea rax, [rip + ", $symbol, "@TLSDESC]"),
                    concat!("call [rax + ", $symbol, "@TLSCALL]"),
                    "add rax, fs:[0]",
                    out("rax") address,
                    options(pure, nomem),
                );
            }
            #[cfg(target_arch = "aarch64")]
            // SAFETY: the descriptor call is defined to change only x0, x1, x30 and flags; it returns the offset from
            // the thread pointer in x0.
            unsafe {
                core::arch::asm!(
                    concat!("adrp x0, :tlsdesc:", $symbol),
                    concat!("ldr x1, [x0, :tlsdesc_lo12:", $symbol, "]"),
                    concat!("add x0, x0, :tlsdesc_lo12:", $symbol),
                    concat!(".tlsdesccall ", $symbol),
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
    };
}

pub(crate) use thread_word;
