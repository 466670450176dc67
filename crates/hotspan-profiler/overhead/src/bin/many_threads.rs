//! This crate alone, in processes of many threads.

fn main() {
    hotspan_profiler_overhead::many_threads::print();
}
