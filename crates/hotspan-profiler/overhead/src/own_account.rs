//! What the profiler itself says it used, with the usual settings: once to get going, and then for each second of steady work.

use crate::work::{numbers, work_for};
use hotspan_profiler::{Ctx, Profiler, Status};
use std::time::Duration;

/// Long enough for the first upload, which reads the program's symbols.
const SECONDS_OF_START: u64 = 12;
const SECONDS_OF_WORK: u64 = 60;

/// Works inside spans, and prints the profiler's own account.
pub fn print() {
    let profiler = Profiler::builder("overhead").ignore_environment().on_upload(|_| {}).start().unwrap();
    let (request, text) = (Ctx::for_request([1; 16], [2; 8]), numbers());
    let status_after = |seconds: u64| {
        for _ in 0..seconds * 100 {
            let _inside = request.attach();
            work_for(10_000_000, &text, 0);
        }
        profiler.flush();
        profiler.status()
    };
    let start = status_after(SECONDS_OF_START);
    let end = status_after(SECONDS_OF_WORK);
    let cpu = (end.process_cpu - start.process_cpu).as_secs_f64();
    let percent = |used: fn(&Status) -> Duration| 100.0 * (used(&end) - used(&start)).as_secs_f64() / cpu;
    let (handler, monitor, export) =
        (percent(|status| status.handler_cpu), percent(|status| status.monitor_cpu), percent(|status| status.export_cpu));
    println!(
        "own account at 100 Hz, {} samples, {cpu:.1} s of CPU: handler {handler:.3} %, monitor {monitor:.3} %, export \
         {export:.3} %, all {:.3} %; the first {SECONDS_OF_START} s: monitor {:.1} ms, export {:.1} ms\n",
        end.samples - start.samples,
        handler + monitor + export,
        start.monitor_cpu.as_secs_f64() * 1e3,
        start.export_cpu.as_secs_f64() * 1e3,
    );
}
