// Node's own inspector: a .cpuprofile for each chosen request, uploaded under the request's trace and span.
import { Session } from 'node:inspector/promises';

import { plainly } from './profiler.js';
import { recordTurns, turnsOf } from './turns.js';
import { serviceName } from './tracing.js';

const hotspan = process.env.HOTSPAN_ADDRESS ?? 'http://127.0.0.1:4040';

export function startInspector() {
  const uploads = new Set();
  const request = async (chosen, span, handle) => {
    if (!chosen) return handle(plainly);
    const session = new Session();
    session.connect();
    await session.post('Profiler.enable');
    await session.post('Profiler.setSamplingInterval', { interval: 1000 });
    const from = Date.now();
    await session.post('Profiler.start');
    const recording = recordTurns(() => handle(plainly));
    try {
      return await recording.result;
    } finally {
      const { profile } = await session.post('Profiler.stop');
      session.disconnect();
      const upload = send(withoutOthers(profile, recording.end()), span, from).catch((error) => {
        console.error(`profile not uploaded: ${error.message}`);
      });
      uploads.add(upload);
      upload.finally(() => uploads.delete(upload));
    }
  };
  return { request, stop: () => Promise.all(uploads) };
}

// The event loop serves many requests in turn. While others had theirs, this one was waiting: that is what its profile
// says then, instead of showing their code.
function withoutOthers(profile, turns) {
  const idle = profile.nodes.find((node) => node.callFrame.functionName === '(idle)') ?? addIdleNode(profile);
  const isOwn = turnsOf(turns);
  let time = profile.startTime;
  const samples = profile.samples.map((node, index) => {
    time += profile.timeDeltas[index];
    return isOwn(time) ? node : idle.id;
  });
  return { ...profile, samples };
}

function addIdleNode(profile) {
  const id = Math.max(...profile.nodes.map((node) => node.id)) + 1;
  const callFrame = { functionName: '(idle)', scriptId: '0', url: '', lineNumber: -1, columnNumber: -1 };
  const idle = { id, callFrame, hitCount: 0 };
  profile.nodes[0].children = [...(profile.nodes[0].children ?? []), id];
  profile.nodes.push(idle);
  return idle;
}

async function send(profile, span, from) {
  const { traceId, spanId } = span.spanContext();
  const query = new URLSearchParams({ service: serviceName, trace_id: traceId, span_id: spanId, from: String(from) });
  const response = await fetch(`${hotspan}/api/v1/profiles?${query}`, { method: 'POST', body: JSON.stringify(profile) });
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
}
