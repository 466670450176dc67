// The profilers that can run beside the service. Each has
//   request(chosen, span, handle)  around a request; it gives `handle` the function `work(span, calculate)`,
//                                  which the service puts around code that keeps the CPU busy;
//   stop()                         which sends what is left.
import { startInspector } from './profiler_inspector.js';
import { startPyroscope } from './profiler_pyroscope.js';

export const plainly = (_span, calculate) => calculate();

export function startProfiler(mode) {
  if (mode === 'pyroscope') return startPyroscope();
  if (mode === 'inspector') return startInspector();
  throw new Error(`there is no profiler ${mode}; use pyroscope or inspector`);
}
