//! Exports the thread context from this crate's own tests, which read it from outside as the eBPF profiler does.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-link-arg-tests=-Wl,--export-dynamic-symbol=otel_thread_ctx_v1");
}
