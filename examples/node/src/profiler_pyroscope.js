// The Pyroscope SDK: one profiler for the process; the samples of chosen requests carry their span as labels.
import Pyroscope from '@pyroscope/nodejs';

import { plainly } from './profiler.js';
import { serviceName } from './tracing.js';

export function startPyroscope() {
  Pyroscope.init({
    serverAddress: process.env.PYROSCOPE_SERVER_ADDRESS ?? 'http://127.0.0.1:4040',
    appName: serviceName,
    wall: { collectCpuTime: true },
    flushIntervalMs: 10_000,
  });
  Pyroscope.start();
  return {
    request: (chosen, _span, handle) => handle(chosen ? labelled : plainly),
    stop: () => Pyroscope.stop(),
  };
}

// Labels hold while `calculate` runs and until it returns: it must not wait for anything.
function labelled(span, calculate) {
  const { traceId, spanId } = span.spanContext();
  let result;
  Pyroscope.wrapWithLabels({ trace_id: traceId, span_id: spanId }, () => {
    result = calculate();
  });
  return result;
}
