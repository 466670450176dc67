//! The few registers that unwinding starts from.

/// Where a thread was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Registers {
    pub(crate) pc: u64,
    pub(crate) sp: u64,
    pub(crate) fp: u64,
    /// The return address of a leaf function, on processors that keep it in a register.
    #[cfg_attr(target_arch = "x86_64", allow(dead_code))]
    pub(crate) lr: u64,
}

#[cfg(target_arch = "x86_64")]
mod native {
    use super::Registers;

    /// rbp, rsp and rip among perf's register numbers.
    pub(crate) const USER_REGISTERS: u64 = 1 << 6 | 1 << 7 | 1 << 8;
    pub(crate) const USER_REGISTER_COUNT: usize = 3;
    pub(crate) type Unwinder<D> = framehop::x86_64::UnwinderX86_64<D>;
    pub(crate) type Cache = framehop::x86_64::CacheX86_64;

    impl Registers {
        pub(crate) fn from_perf([fp, sp, pc]: [u64; USER_REGISTER_COUNT]) -> Registers {
            Registers { pc, sp, fp, lr: 0 }
        }

        pub(crate) fn for_unwinder(self) -> framehop::x86_64::UnwindRegsX86_64 {
            framehop::x86_64::UnwindRegsX86_64::new(self.pc, self.sp, self.fp)
        }
    }
}

#[cfg(target_arch = "aarch64")]
mod native {
    use super::Registers;

    /// x29, x30, sp and pc among perf's register numbers.
    pub(crate) const USER_REGISTERS: u64 = 1 << 29 | 1 << 30 | 1 << 31 | 1 << 32;
    pub(crate) const USER_REGISTER_COUNT: usize = 4;
    pub(crate) type Unwinder<D> = framehop::aarch64::UnwinderAarch64<D>;
    pub(crate) type Cache = framehop::aarch64::CacheAarch64;

    impl Registers {
        pub(crate) fn from_perf([fp, lr, sp, pc]: [u64; USER_REGISTER_COUNT]) -> Registers {
            Registers { pc, sp, fp, lr }
        }

        pub(crate) fn for_unwinder(self) -> framehop::aarch64::UnwindRegsAarch64 {
            framehop::aarch64::UnwindRegsAarch64::new(self.lr, self.sp, self.fp)
        }
    }
}

pub(crate) use native::{Cache, USER_REGISTER_COUNT, USER_REGISTERS, Unwinder};
