//! pyroscope 2.1, beside this crate: the profiler alone, nothing is uploaded.
#![allow(clippy::unwrap_used)]

use hotspan_profiler_overhead::toggled::Toggled;
use hotspan_profiler_overhead::{Rival, compare};
use pyroscope::backend::{BackendConfig, BackendImpl, BackendReady, PprofConfig, pprof_backend};

#[derive(Default)]
struct Pyroscope(Option<BackendImpl<BackendReady>>);

impl Toggled for Pyroscope {
    fn on(&mut self) {
        self.0 = Some(pprof_backend(PprofConfig::default(), BackendConfig::default()).initialize().unwrap());
    }

    fn off(&mut self) {
        if let Some(backend) = self.0.take() {
            backend.shutdown().unwrap();
        }
    }
}

fn main() {
    compare(Rival { name: "pyroscope 2.1", profiler: Box::<Pyroscope>::default() });
}
