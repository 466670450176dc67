//! Randomness for sampling decisions and made-up ids: fast, per thread, not for secrets.

use crate::sampler::clock::{current_tid, monotonic_ns, ticks};
use std::cell::Cell;

thread_local! {
    // Const and without a destructor, so that an allocator may use it at any time.
    static STATE: Cell<u64> = const { Cell::new(0) };
}

/// The next number of this thread's sequence (splitmix64).
pub(crate) fn random_u64() -> u64 {
    STATE.with(|state| {
        let mut seed = state.get();
        if seed == 0 {
            seed = mix(ticks() ^ monotonic_ns().rotate_left(32) ^ ((current_tid() as u64) << 17));
        }
        let next = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        state.set(next);
        mix(next)
    })
}

fn mix(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// Uniform in (0, 1].
pub(crate) fn random_unit() -> f64 {
    ((random_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: many draws of one thread.
    /// Guarantee: they stay in range, differ, and average a half.
    #[test]
    fn draws_are_uniform_enough() {
        let draws: Vec<f64> = (0..20_000).map(|_| random_unit()).collect();
        assert!(draws.iter().all(|draw| *draw > 0.0 && *draw <= 1.0));
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
        assert_ne!(random_u64(), random_u64());
    }
}
