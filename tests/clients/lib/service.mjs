// An example service, started by its one command, and the requests that it gets.
import { randomBytes } from 'node:crypto';

import { Child } from './processes.mjs';
import { example } from './project.mjs';

// Installing and compiling on a busy machine.
const START_PATIENCE = 600_000;
// How long a slow request is to take: some ninety samples at the usual hundred a second.
const SLOW = 900;

export class Service {
  static async start({ language, mode, name, env }) {
    const settings = { PORT: '0', PROFILE_SHARE: '0', OTEL_SERVICE_NAME: name, ...env };
    const child = new Child('./run', [mode], { cwd: example(language), env: settings });
    const [, url] = await child.line(/listens on (http:\S+?),? /, START_PATIENCE);
    const service = new Service();
    return Object.assign(service, { child, url });
  }

  // Sends a request with a trace id of our own. Only `chosen` ones are to be profiled.
  async send(method, path, { chosen }) {
    const traceId = randomBytes(16).toString('hex');
    const headers = { traceparent: `00-${traceId}-${randomBytes(8).toString('hex')}-01` };
    if (chosen) headers['x-profile'] = '1';
    const from = performance.now();
    const response = await fetch(this.url + path, { method, headers });
    if (!response.ok) throw this.child.failure(`${method} ${path}: ${response.status} ${await response.text()}`);
    await response.text();
    return { traceId, milliseconds: performance.now() - from };
  }

  // How many items make a slow request on this machine; warms the runtime up on the way.
  async calibrate(send) {
    let amount = 10;
    for (let round = 0; round < 8; round += 1) {
      const { milliseconds } = await send(amount);
      if (milliseconds > SLOW / 3) return Math.min(Math.ceil((amount * SLOW) / milliseconds), 100_000);
      amount = Math.min(Math.ceil(amount * Math.min(10, Math.max(2, SLOW / milliseconds))), 100_000);
    }
    throw this.child.failure(`${amount} items take less than ${SLOW / 3} ms`);
  }
}
