//! Functions that only hand a request for memory on: the profiler's own, those of the allocator it wraps or is wrapped by,
//! and the way there through the standard library. They are on top of every allocation and would be the leaf of them all.

/// Whether a function stands between who asks for memory and the sample of it. Who asks may be a library: a growing `Vec`
/// says more than the allocator below it.
pub(super) fn hands_memory_on(name: &str) -> bool {
    let path = name.trim_start_matches('<');
    let last = name.rsplit("::").next().unwrap_or(name);
    // `alloc::alloc` is where the standard library calls the allocator, and nothing else.
    ["hotspan_profiler::heap::", "alloc::alloc::", "core::alloc::global::"].iter().any(|own| path.starts_with(own))
        || name.contains(" as core::alloc::global::GlobalAlloc>::")
        || ["__rust_alloc", "__rust_alloc_zeroed", "__rust_realloc"].contains(&last)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: names on top of allocations, as both ways of mangling and inlined code give them, and names of those who ask.
    /// Guarantee: the allocator and what leads to it are told from who asks, also where that one is a library.
    #[test]
    fn who_asks_is_told_from_who_hands_on() {
        for name in [
            "hotspan_profiler::heap::sample_allocation",
            "<hotspan_profiler::heap::HeapProfiler<A> as core::alloc::global::GlobalAlloc>::alloc",
            "<shop::Allocator as core::alloc::global::GlobalAlloc>::realloc",
            "core::alloc::global::GlobalAlloc::alloc_zeroed",
            "__rustc::__rust_alloc",
            "__rust_realloc",
            "alloc::alloc::exchange_malloc",
            "<alloc::alloc::Global>::alloc_impl_runtime",
            "<alloc::alloc::Global as core::alloc::Allocator>::grow",
        ] {
            assert!(hands_memory_on(name), "{name}");
        }
        for name in [
            "alloc::raw_vec::finish_grow",
            "<alloc::boxed::Box<T>>::new",
            "alloc::slice::<impl [T]>::to_vec",
            "shop::alloc::alloc::orders",
            "shop::heap::sample_allocation",
            "malloc",
        ] {
            assert!(!hands_memory_on(name), "{name}");
        }
    }
}
