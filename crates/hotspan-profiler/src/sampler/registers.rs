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
    /// What the kernel saved when the signal interrupted the thread, which runs `handler`.
    ///
    /// Of signals that come together, the kernel makes each interrupt the handler of the one before at its first
    /// instruction. That has not run yet: what was interrupted is what its own context, its third argument, says.
    ///
    /// # Safety
    /// `context` is the third argument of `handler`, installed with SA_SIGINFO.
    pub(crate) unsafe fn of_interrupted(context: *mut libc::c_void, handler: usize) -> Registers {
        let mut context = context;
        loop {
            // SAFETY: the kernel passes a valid ucontext to each handler.
            let machine = unsafe { &(*context.cast::<libc::ucontext_t>()).uc_mcontext };
            #[cfg(target_arch = "x86_64")]
            let (registers, third_argument) = {
                let register = |index: libc::c_int| machine.gregs[index as usize] as u64;
                let (pc, sp, fp) = (register(libc::REG_RIP), register(libc::REG_RSP), register(libc::REG_RBP));
                (Registers { pc, sp, fp }, register(libc::REG_RDX))
            };
            // The interrupted program counter itself, not x30: the link register is the caller's address.
            #[cfg(target_arch = "aarch64")]
            let (registers, third_argument) = {
                let (fp, lr) = (machine.regs[29], machine.regs[30]);
                (Registers { pc: machine.pc, sp: machine.sp, fp, lr }, machine.regs[2])
            };
            if registers.pc != handler as u64 {
                return registers;
            }
            context = third_argument as *mut libc::c_void;
        }
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
