// A Hotspan server on free ports, and the questions that the matrix asks of its public API.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { Child } from './processes.mjs';
import { root } from './project.mjs';

export const program = process.env.HOTSPAN ?? join(root, 'target', 'debug', 'hotspan');

export class Hotspan {
  // `ports` may fix some of them: http, otlp-grpc, otlp-http, tempo.
  static async start({ host = '127.0.0.1', ports = {}, args = [], variables = {}, store = mkdtempSync(join(tmpdir(), 'hotspan-clients-')) } = {}) {
    const listeners = ['http', 'otlp-grpc', 'otlp-http', 'tempo'];
    const flags = listeners.flatMap((name) => [`--${name}`, `${host}:${ports[name] ?? 0}`]);
    // Only the services' data: the server's own would take part in the counts.
    const env = { HOTSPAN_LOG_LEVEL: 'warn', HOTSPAN_SELF_TRACING_ENABLED: 'false', ...variables };
    const child = new Child(program, ['serve', '--store', store, ...flags, ...args], { env });
    const server = new Hotspan();
    Object.assign(server, { child, store, addresses: {} });
    for (const name of listeners) {
      const [, address] = await child.line(new RegExp(`^${name.replace('-', '[-_]')} (\\S+:\\d+)$`), 60_000);
      server.addresses[name] = address;
    }
    server.url = `http://${server.addresses.http}`;
    await until('the server is ready', async () => (await fetch(`${server.url}/ready`)).ok);
    return server;
  }

  async stop() {
    const exit = await this.child.stop();
    rmSync(this.store, { recursive: true, force: true });
    if (exit !== 0) throw this.child.failure(`the server ended with ${exit}`);
  }

  async get(path, parameters = {}) {
    const response = await fetch(`${this.url}${path}?${new URLSearchParams(parameters)}`);
    if (!response.ok) throw new Error(`GET ${path}: ${response.status} ${await response.text()}`);
    return response;
  }

  async post(path, body) {
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(`${this.url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
    if (!response.ok) throw new Error(`POST ${path}: ${response.status} ${await response.text()}`);
    return response.json();
  }

  // The spans of a trace with their service, name, ids in hex and duration in nanoseconds; none if it is not known.
  async spans(traceId) {
    const response = await fetch(`${this.url}/api/traces/${traceId}`);
    if (response.status === 404) return [];
    const trace = await response.json();
    return (trace.batches ?? []).flatMap((batch) => {
      const attributes = batch.resource?.attributes ?? [];
      const service = attributes.find(({ key }) => key === 'service.name')?.value.stringValue;
      return batch.scopeSpans.flatMap(({ spans }) => spans).map((span) => ({
        service,
        name: span.name,
        id: hex(span.spanId),
        parent: hex(span.parentSpanId ?? ''),
        start: BigInt(span.startTimeUnixNano),
        nanoseconds: Number(BigInt(span.endTimeUnixNano) - BigInt(span.startTimeUnixNano)),
      }));
    });
  }

  // The flame graph of a span, trace or service as stacks with their values.
  async stacks(parameters) {
    const text = await (await this.get('/api/v1/profile', { format: 'collapsed', ...parameters })).text();
    return text.split('\n').filter(Boolean).map((line) => {
      const at = line.lastIndexOf(' ');
      return { stack: line.slice(0, at), value: Number(line.slice(at + 1)) };
    });
  }

  // All samples of a trace or span.
  async samples(id, type) {
    const samples = [];
    for (let offset = 0; offset !== null; ) {
      const parameters = { ...id, type, limit: 10_000, offset };
      const page = await (await this.get('/api/v1/profiles', parameters)).json();
      samples.push(...page.samples);
      offset = page.next_offset;
    }
    return samples;
  }
}

// Tries until it gets a true answer.
export async function until(what, attempt, patience = 30_000) {
  const deadline = Date.now() + patience;
  let last;
  while (Date.now() < deadline) {
    try {
      const answer = await attempt();
      if (answer) return answer;
    } catch (error) {
      last = error;
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`${what}: not within ${patience / 1000} s${last ? `; the last error was ${last}` : ''}`);
}

const hex = (base64) => Buffer.from(base64, 'base64').toString('hex');
