// An example service, started by its one command, and the requests that it gets.
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';

import { Child } from './processes.mjs';
import { example } from './project.mjs';

// Installing and compiling on a busy machine.
const START_PATIENCE = 600_000;
// The CPU time that a slow request is to take, in milliseconds: some ninety samples at the usual hundred a second. It is
// CPU time, since a busy machine makes any request slow.
const SLOW = 900;
// Linux counts CPU time in hundredths of a second.
const MILLISECONDS_A_TICK = 10;

// What the examples are told about a server.
export const addressesOf = (hotspan) => ({
  OTEL_EXPORTER_OTLP_ENDPOINT: `http://${hotspan.addresses['otlp-http']}`,
  PYROSCOPE_SERVER_ADDRESS: hotspan.url,
  HOTSPAN_ADDRESS: hotspan.url,
});

export async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

export class Service {
  static async start({ language, mode, name, env }) {
    const settings = { PORT: '0', PROFILE_SHARE: '0', OTEL_SERVICE_NAME: name, ...env };
    const child = new Child('./run', [mode], { cwd: example(language), env: settings });
    const [, url] = await child.line(/listens on (http:\S+?),? /, START_PATIENCE);
    const service = new Service();
    return Object.assign(service, { child, url });
  }

  // Sends a request with a trace id of our own. Only `chosen` ones are to be profiled: those with a header, or where the
  // profiler knows of traces only, those whose trace is sampled.
  async send(method, path, { chosen, by }) {
    const traceId = randomBytes(16).toString('hex');
    const sampled = by === 'trace' && !chosen ? '00' : '01';
    const headers = { traceparent: `00-${traceId}-${randomBytes(8).toString('hex')}-${sampled}` };
    if (chosen) headers['x-profile'] = '1';
    await this.sendPlainly(method, path, headers);
    return { traceId };
  }

  // Sends a request as anybody would.
  async sendPlainly(method, path, headers = {}) {
    const response = await fetch(this.url + path, { method, headers, signal: AbortSignal.timeout(60_000) });
    if (!response.ok) throw this.child.failure(`${method} ${path}: ${response.status} ${await response.text()}`);
    await response.text();
  }

  // The CPU time in milliseconds that the whole process takes while `work` runs, and what that gives.
  async cpuOf(work) {
    const from = this.cpu();
    const result = await work();
    return [this.cpu() - from, result];
  }

  cpu() {
    const line = readFileSync(`/proc/${this.child.process.pid}/stat`, 'utf8');
    // The name of the process, in brackets, may hold anything.
    const [user, system] = line.slice(line.lastIndexOf(')') + 2).split(' ').slice(11, 13).map(Number);
    return (user + system) * MILLISECONDS_A_TICK;
  }

  // How many items make a slow request, once the runtime is warm: its first requests take long for
  // reasons of their own, so only an amount that is slow twice in a row counts.
  async calibrate(send) {
    let amount = 10;
    let slowBefore = false;
    for (let round = 0; round < 16; round += 1) {
      const [milliseconds] = await this.cpuOf(() => send(amount));
      const isSlow = milliseconds > 0.7 * SLOW;
      if (isSlow && slowBefore) return amount;
      slowBefore = isSlow;
      if (!isSlow) amount = Math.min(Math.ceil(amount * Math.min(10, Math.max(1.2, SLOW / Math.max(milliseconds, MILLISECONDS_A_TICK)))), 100_000);
    }
    throw this.child.failure(`${amount} items take less than ${0.7 * SLOW} ms of CPU time`);
  }
}
