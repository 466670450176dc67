// OTLP requests as JSON, with a known content: what goes in must come out.
import { randomBytes } from 'node:crypto';

const nanoseconds = () => BigInt(Date.now()) * 1_000_000n;
const text = (key, value) => ({ key, value: { stringValue: value } });

// A trace of `count` spans below one root.
export function traceRequest(service, count, padding = 0) {
  const traceId = randomBytes(16).toString('hex');
  const root = randomBytes(8).toString('hex');
  const start = nanoseconds();
  const spans = Array.from({ length: count }, (_, index) => ({
    traceId,
    spanId: index === 0 ? root : randomBytes(8).toString('hex'),
    ...(index > 0 && { parentSpanId: root }),
    name: index === 0 ? 'request' : `step ${index}`,
    kind: 1,
    startTimeUnixNano: String(start + BigInt(index)),
    endTimeUnixNano: String(start + 1_000_000n),
    attributes: padding ? [text('note', randomBytes(padding / 2).toString('hex'))] : [],
  }));
  const resource = { attributes: [text('service.name', service)] };
  return { traceId, spanId: root, body: { resourceSpans: [{ resource, scopeSpans: [{ spans }] }] } };
}

// A CPU profile in the shape that the OpenTelemetry eBPF profiler sends, made after its documentation and source, since the
// profiler itself does not run everywhere: timestamps without values, period in nanoseconds, native frames as addresses of
// a mapping with a build id, thread name and id on the samples, a link to the span.
export function profileRequest(service, { traceId, spanId }, count) {
  const start = nanoseconds();
  const strings = ['', 'samples', 'count', 'cpu', 'nanoseconds', '/usr/bin/orders', 'parse_tax_table', 'tax.c',
    'thread.name', 'thread.id', 'process.executable.build_id.htlhash', 'profile.frame.type'];
  const attribute = (keyStrindex, value) => ({ keyStrindex, value });
  const dictionary = {
    stringTable: strings,
    mappingTable: [{}, { memoryStart: '4096', memoryLimit: '1048576', filenameStrindex: 5, attributeIndices: [3] }],
    functionTable: [{}, { nameStrindex: 6, systemNameStrindex: 6, filenameStrindex: 7 }],
    locationTable: [
      {},
      { mappingIndex: 1, address: '8192', attributeIndices: [4] },
      { lines: [{ functionIndex: 1, line: '42' }], attributeIndices: [4] },
    ],
    stackTable: [{}, { locationIndices: [2, 1] }],
    linkTable: [{ traceId: '00'.repeat(16), spanId: '00'.repeat(8) }, { traceId, spanId }],
    attributeTable: [
      {},
      attribute(8, { stringValue: 'worker' }),
      attribute(9, { intValue: '7' }),
      attribute(10, { stringValue: '0123456789abcdef0123456789abcdef' }),
      attribute(11, { stringValue: 'native' }),
    ],
  };
  const samples = Array.from({ length: count }, (_, index) => ({
    stackIndex: 1,
    linkIndex: 1,
    attributeIndices: [1, 2],
    timestampsUnixNano: [String(start + BigInt(index) * 50_000_000n)],
  }));
  const profile = {
    sampleType: { typeStrindex: 1, unitStrindex: 2 },
    periodType: { typeStrindex: 3, unitStrindex: 4 },
    period: '50000000',
    samples,
    timeUnixNano: String(start),
    durationNano: String(BigInt(count) * 50_000_000n),
    profileId: randomBytes(16).toString('hex'),
  };
  const attributes = [text('service.name', service), text('container.id', 'c0ffee'), { key: 'process.pid', value: { intValue: '42' } }];
  return { resourceProfiles: [{ resource: { attributes }, scopeProfiles: [{ profiles: [profile] }] }], dictionary };
}

// Sends a request to an OTLP/HTTP endpoint, and insists that it is taken.
export async function send(url, path, body) {
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
}
