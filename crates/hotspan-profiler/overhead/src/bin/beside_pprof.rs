//! pprof 0.15, beside this crate.
#![allow(clippy::unwrap_used)]

use hotspan_profiler_overhead::toggled::Toggled;
use hotspan_profiler_overhead::{Rival, compare};

const HERTZ: i32 = 100;

#[derive(Default)]
struct Pprof(Option<pprof::ProfilerGuard<'static>>);

impl Toggled for Pprof {
    fn on(&mut self) {
        self.0 = Some(pprof::ProfilerGuard::new(HERTZ).unwrap());
    }

    fn off(&mut self) {
        self.0 = None;
    }
}

fn main() {
    compare(Rival { name: "pprof 0.15", profiler: Box::<Pprof>::default() });
}
