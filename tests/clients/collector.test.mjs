// The OpenTelemetry Collector in front of Hotspan, with the configurations in examples/collector.
//
// Collectors and servers use their usual ports, on loopback addresses of their own.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { checkClient } from './lib/check.mjs';
import { Hotspan, until } from './lib/hotspan.mjs';
import { profileRequest, send, traceRequest } from './lib/otlp.mjs';
import { Child } from './lib/processes.mjs';
import { example } from './lib/project.mjs';
import { Service } from './lib/service.mjs';
import go from './rows/go.mjs';

const wanted = process.env.CLIENTS ?? 'quick';
const options = { skip: !['all', 'collector'].includes(wanted) && 'building the collector takes minutes: make test-clients' };

async function startCollector(config, host, env) {
  const child = new Child('./run', [config], { cwd: example('collector'), env: { COLLECTOR_HOST: host, ...env } });
  await child.line(/Everything is ready/, 900_000);
  return { child, url: `http://${host}:4318` };
}

// Scenario: traces and eBPF-shaped profiles through a collector. Guarantee: every span and every sample arrives.
async function checkComplete(hotspan, collector, service) {
  const sent = [];
  for (let round = 0; round < 20; round += 1) {
    const trace = traceRequest(service, 50);
    await send(collector.url, '/v1/traces', trace.body);
    await send(collector.url, '/v1development/profiles', profileRequest(service, trace, 30));
    sent.push(trace);
  }
  for (const { traceId, spanId } of sent) {
    await until(`all spans of ${traceId}`, async () => (await hotspan.spans(traceId)).length === 50, 60_000);
    const samples = await until(`all samples of ${traceId}`, async () => {
      const samples = await hotspan.samples({ trace_id: traceId }, 'cpu');
      return samples.length === 30 && samples;
    });
    for (const sample of samples) {
      assert.equal(sample.span_id, spanId);
      assert.equal(sample.value, 50_000_000);
      assert.equal(sample.thread_name, 'worker');
      assert.equal(sample.stack_trace[0].function, 'parse_tax_table');
    }
  }
}

let hotspan;
before(async () => {
  if (!options.skip) hotspan = await Hotspan.start();
});
after(() => hotspan?.stop());

const ways = [
  { config: 'collector.yaml', exporter: 'otlp over gRPC', compression: 'gzip', host: '127.0.0.51' },
  { config: 'collector.yaml', exporter: 'otlp over gRPC', compression: 'zstd', host: '127.0.0.52' },
  { config: 'http-zstd.yaml', exporter: 'otlphttp', compression: 'gzip', host: '127.0.0.53' },
  { config: 'http-zstd.yaml', exporter: 'otlphttp', compression: 'zstd', host: '127.0.0.54' },
];
for (const { config, exporter, compression, host } of ways) {
  test(`collector: ${exporter}, ${compression}`, options, async () => {
    const env = { HOTSPAN_GRPC: hotspan.addresses['otlp-grpc'], HOTSPAN_ADDRESS: hotspan.addresses.http, COMPRESSION: compression };
    const collector = await startCollector(config, host, env);
    await checkComplete(hotspan, collector, `collector-${config}-${compression}`).finally(() => collector.child.stop());
  });
}

// Scenario: a server that can hold one megabyte is full, while forty requests of half a megabyte each go through a collector.
// Guarantee: it refuses them for the time being, the collector sends them again, and nothing is lost.
test('collector: an overloaded server loses nothing', options, async () => {
  const small = { HOTSPAN_INGEST_QUEUE_BYTES: '1MiB', HOTSPAN_INGEST_FLUSH_INTERVAL: '2s' };
  const server = await Hotspan.start({ variables: small });
  const collector = await startCollector('collector.yaml', '127.0.0.55', { HOTSPAN_GRPC: server.addresses['otlp-grpc'] });
  let refused = false;
  try {
    // Each of these has all the room while it waits for its commit. They stop when the collector has been turned away.
    const filling = (async () => {
      while (!refused) await send(server.url, '/v1/traces', traceRequest('filler', 50, 30_000).body).catch(() => {});
    })();
    const traces = Array.from({ length: 40 }, () => traceRequest('overload', 50, 10_000));
    const sending = Promise.all(traces.map(({ body }) => send(collector.url, '/v1/traces', body)));
    await collector.child.line(/Exporting failed\. Will retry/, 60_000).finally(() => (refused = true));
    await Promise.all([sending, filling]);
    for (const { traceId } of traces) {
      await until(`all spans of ${traceId}`, async () => (await server.spans(traceId)).length === 50, 120_000);
    }
  } finally {
    await collector.child.stop();
    await server.stop();
  }
});

// Scenario: the Compose set-up as plain processes: server on 4040, collector on 4317, 4318 and 4327, an app that knows both.
// Guarantee: the row of the app holds as it does without a collector.
test('compose: server, collector and app', options, async () => {
  const host = '127.0.0.56';
  const server = await Hotspan.start({ host, ports: { http: 4040 } });
  const running = [server];
  try {
    const collector = await startCollector('collector.yaml', host, { HOTSPAN_GRPC: server.addresses['otlp-grpc'] });
    running.unshift(collector.child);
    const row = { ...go.find(({ mode }) => mode === 'pyroscope'), name: 'compose', service: 'order-service' };
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, PYROSCOPE_SERVER_ADDRESS: `http://${host}:4040` };
    await checkClient(row, server, await Service.start({ ...row, name: row.service, env }));
  } finally {
    for (const child of running) await child.stop();
  }
});
