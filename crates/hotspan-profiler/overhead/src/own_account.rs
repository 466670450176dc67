//! What the profiler itself says it used, after a while of steady work with the usual settings.

use crate::work::{numbers, work_for};
use hotspan_profiler::{Ctx, Profiler};
use std::time::Duration;

const SECONDS_OF_WORK: u64 = 30;

/// Works inside spans, and prints the profiler's own account.
pub fn print() {
    let profiler = Profiler::builder("overhead").ignore_environment().on_upload(|_| {}).start().unwrap();
    let (request, text) = (Ctx::for_request([1; 16], [2; 8]), numbers());
    for _ in 0..SECONDS_OF_WORK * 100 {
        let _inside = request.attach();
        work_for(10_000_000, &text, 0);
    }
    profiler.flush();
    let status = profiler.status();
    let percent = |cpu: Duration| 100.0 * cpu.as_secs_f64() / status.process_cpu.as_secs_f64();
    println!(
        "own account at 100 Hz, {} samples, {:.1} s of CPU: handler {:.3} %, monitor {:.3} %, export {:.3} %, all {:.3} %\n",
        status.samples,
        status.process_cpu.as_secs_f64(),
        percent(status.handler_cpu),
        percent(status.monitor_cpu),
        percent(status.export_cpu),
        status.overhead_percent()
    );
}
