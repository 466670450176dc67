//! This crate alone: its own account, and what it makes of context switches.

use hotspan_profiler_overhead::{own_account, pairs, switches};

fn main() {
    own_account::print();
    switches::print(pairs());
}
