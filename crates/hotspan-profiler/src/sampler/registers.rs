//! The registers an unwinder starts from: of an interrupted thread, or of the caller itself.

/// Program counter, stack pointer, frame pointer and (where the machine has one) link register.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Registers {
    pub(crate) pc: u64,
    pub(crate) sp: u64,
    fp: u64,
    #[cfg(target_arch = "aarch64")]
    lr: u64,
}

impl Registers {
    /// What the kernel saved when the signal interrupted the thread.
    ///
    /// # Safety
    /// `context` is the third argument of a handler installed with SA_SIGINFO.
    pub(crate) unsafe fn of_interrupted(context: *mut libc::c_void) -> Registers {
        // SAFETY: the kernel passes a valid ucontext.
        let machine = unsafe { &(*context.cast::<libc::ucontext_t>()).uc_mcontext };
        #[cfg(target_arch = "x86_64")]
        {
            let register = |index: libc::c_int| machine.gregs[index as usize] as u64;
            Registers { pc: register(libc::REG_RIP), sp: register(libc::REG_RSP), fp: register(libc::REG_RBP) }
        }
        // The interrupted program counter itself, not x30: the link register is the caller's address.
        #[cfg(target_arch = "aarch64")]
        Registers { pc: machine.pc, sp: machine.sp, fp: machine.regs[29], lr: machine.regs[30] }
    }

    /// The registers right here. Inlined, so that the first frame is the function that asks.
    #[inline(always)]
    pub(crate) fn of_caller() -> Registers {
        let (pc, sp, fp): (u64, u64, u64);
        #[cfg(target_arch = "x86_64")]
        // SAFETY: only reads registers.
        unsafe {
            core::arch::asm!("lea {}, [rip]", "mov {}, rsp", "mov {}, rbp", out(reg) pc, out(reg) sp, out(reg) fp,
                options(nomem, nostack, preserves_flags));
            Registers { pc, sp, fp }
        }
        #[cfg(target_arch = "aarch64")]
        // SAFETY: only reads registers.
        unsafe {
            let lr: u64;
            core::arch::asm!("adr {}, .", "mov {}, sp", "mov {}, x29", "mov {}, x30",
                out(reg) pc, out(reg) sp, out(reg) fp, out(reg) lr, options(nomem, nostack, preserves_flags));
            Registers { pc, sp, fp, lr }
        }
    }

    /// The same, as framehop wants them.
    pub(crate) fn for_unwinder(self) -> framehop::UnwindRegsNative {
        #[cfg(target_arch = "x86_64")]
        {
            framehop::UnwindRegsNative::new(self.pc, self.sp, self.fp)
        }
        #[cfg(target_arch = "aarch64")]
        {
            // User space addresses on Linux fit 48 bits; what lies above is a pointer-authentication code.
            let mask = framehop::aarch64::PtrAuthMask::from_max_known_address((1 << 48) - 1);
            framehop::UnwindRegsNative::new_with_ptr_auth_mask(mask, self.lr, self.sp, self.fp)
        }
    }
}
