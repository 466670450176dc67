//! V8's `.cpuprofile` and `.heapprofile`, as Node's `--cpu-prof`, `--heap-prof` and inspector write them.

mod cpu;
mod frames;
mod heap;

pub use cpu::decode as decode_cpu;
pub use heap::decode as decode_heap;
