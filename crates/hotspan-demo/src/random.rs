//! Random numbers for ids, carts and waits: nothing here guards a secret.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

thread_local! {
    static STATE: Cell<u64> = Cell::new(RandomState::new().hash_one(std::thread::current().id()));
}

/// A random number (splitmix64, one state per thread).
pub(crate) fn random_u64() -> u64 {
    let state = STATE.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
    STATE.set(state);
    let mut mixed = state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// A number from 0 up to, not including, `end`.
pub(crate) fn below(end: u64) -> u64 {
    random_u64() % end.max(1)
}

/// A number from 0 to 1.
pub(crate) fn unit() -> f64 {
    (random_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// True in this share of cases.
pub(crate) fn chance(share: f64) -> bool {
    unit() < share
}

/// A time between two numbers of milliseconds.
pub(crate) fn millis_between(least: f64, most: f64) -> Duration {
    Duration::from_secs_f64((least + unit() * (most - least)) / 1e3)
}

/// The pause until the next of events that come by themselves at this mean rate.
pub(crate) fn until_next(per_second: f64) -> Duration {
    // Capped, so that an unlucky draw does not look like a shop that hangs.
    Duration::from_secs_f64((-(1.0 - unit()).ln()).min(3.0) / per_second)
}
