// The data of the end-to-end checks: a small shop, half an hour of it, with one planted cause. Same seed, same shop; only the
// clock moves. It goes in as any client would send it: OTLP over HTTP, JSON.
//
//   web POST /api/checkout ─ checkout ─ SELECT items × n · tax calculateTax · payment charge (waits for a lock)
//
// From the middle of the range on, version 1.4.2 of tax parses its table on every call for large carts: tax.lookupTaxRate,
// tax.go:112, takes 1.9 s instead of 48 ms.

export const CULPRIT = 'shop/tax.lookupTaxRate';
export const CULPRIT_PLACE = 'tax.go:112';
export const MINUTES = 20;
const CHECKOUTS = 240;
const SAMPLE_NS = 10_000_000;
const MS = 1_000_000;

function random(seed) {
  let state = seed;
  return () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32;
}

/** function, file, line: the frames of the shop, root first in each stack. */
const SERVE = [['net/http.(*conn).serve', '/usr/local/go/src/net/http/server.go', 2092], ['net/http.HandlerFunc.ServeHTTP', '/usr/local/go/src/net/http/server.go', 2220]];
const STACKS = {
  tax: [
    ...SERVE,
    ['shop/tax.(*Server).calculateTax', 'shop/tax/tax.go', 88],
    [CULPRIT, 'shop/tax/tax.go', 112],
    ['encoding/json.Unmarshal', '/usr/local/go/src/encoding/json/decode.go', 108],
    ['encoding/json.(*decodeState).value', '/usr/local/go/src/encoding/json/decode.go', 379],
  ],
  taxSum: [...SERVE, ['shop/tax.(*Server).calculateTax', 'shop/tax/tax.go', 88], ['shop/tax.sumLines', 'shop/tax/sum.go', 31]],
  cart: [...SERVE, ['shop/checkout.(*Server).checkout', 'shop/checkout/checkout.go', 54], ['shop/checkout.renderCart', 'shop/checkout/cart.go', 77], ['runtime.mallocgc', '/usr/local/go/src/runtime/malloc.go', 1029]],
  rules: [...SERVE, ['shop/checkout.(*Server).checkout', 'shop/checkout/checkout.go', 61], ['shop/checkout.walkRules', 'shop/checkout/rules.go', 20], ['shop/checkout.walkRules', 'shop/checkout/rules.go', 20], ['shop/checkout.walkRules', 'shop/checkout/rules.go', 20]],
  web: [...SERVE, ['shop/web.(*Server).route', 'shop/web/web.go', 40]],
  lock: [...SERVE, ['shop/payment.(*Server).charge', 'shop/payment/payment.go', 63], ['shop/payment.(*Ledger).append', 'shop/payment/ledger.go', 19], ['sync.(*Mutex).Lock', '/usr/local/go/src/sync/mutex.go', 90]],
};

const hex = (next, bytes) => Array.from({ length: bytes }, () => Math.floor(next() * 256).toString(16).padStart(2, '0')).join('');
const text = (key, value) => ({ key, value: { stringValue: value } });
const whole = (key, value) => ({ key, value: { intValue: String(value) } });
const resourceOf = (service, version) => ({ attributes: [text('service.name', service), text('service.version', version), text('deployment.environment', 'test')] });
const KIND = { internal: 1, server: 2, client: 3 };

/** Everything, as OTLP requests. `endMs` is when the newest request of the shop began. */
export function shop(endMs) {
  const next = random(11);
  const spans = new Map();
  const samples = { cpu: [], off_cpu: [] };
  const slowTraces = [];
  const startMs = endMs - MINUTES * 60_000;
  const base = BigInt(Math.floor(startMs)) * 1_000_000n;
  let manyReads = '';

  const put = (service, version, span) => {
    const key = `${service}|${version}`;
    if (!spans.has(key)) spans.set(key, []);
    spans.get(key).push(span);
  };
  const sample = (type, service, version, thread, traceId, spanId, stack, fromNs, lengthNs) => {
    for (let at = SAMPLE_NS / 2; at < lengthNs; at += SAMPLE_NS) samples[type].push({ service, version, thread, traceId, spanId, stack, timeNs: Math.round(fromNs + at) });
  };

  for (let number = 0; number < CHECKOUTS; number++) {
    const at = Math.round((number / CHECKOUTS) * MINUTES * 60_000 * MS + next() * 2000 * MS);
    const isLate = number >= CHECKOUTS / 2;
    const isSlow = isLate && number % 6 === 5;
    const version = isLate ? '1.4.2' : '1.4.1';
    const traceId = hex(next, 16);
    const items = number === CHECKOUTS - 20 ? 70 : 2 + Math.floor(next() * 3);
    if (items === 70) manyReads = traceId;
    if (isSlow) slowTraces.push(traceId);
    const failed = number % 23 === 7;
    const thread = 1 + (number % 4);
    const span = (service, name, kind, parentSpanId, fromNs, lengthNs, more = {}) => {
      const spanId = hex(next, 8);
      put(service, version, {
        traceId, spanId, ...(parentSpanId ? { parentSpanId } : {}), name, kind: KIND[kind],
        startTimeUnixNano: String(base + BigInt(Math.round(fromNs))), endTimeUnixNano: String(base + BigInt(Math.round(fromNs + lengthNs))), ...more,
      });
      return spanId;
    };
    const cartNs = (8 + next() * 12) * MS;
    const readNs = (1 + next() * 2) * MS;
    const taxNs = (isSlow ? 1900 + next() * 80 : 48 + next() * 6) * MS;
    const lockNs = (next() < 0.15 ? 60 : 4) * MS;
    const cartEnd = at + 3 * MS + cartNs + items * (readNs + 0.2 * MS);
    const taxFrom = cartEnd + 1 * MS;
    const chargeFrom = taxFrom + taxNs + 4 * MS;
    const endNs = chargeFrom + lockNs + 6 * MS;

    const root = span('web', 'POST /api/checkout', 'server', null, at, endNs - at + 2 * MS, {
      attributes: [text('http.request.method', 'POST'), text('http.route', '/api/checkout'), whole('http.response.status_code', failed ? 502 : 200), text('cart.size', items > 20 || isSlow ? 'large' : 'small')],
      ...(failed ? { status: { code: 2, message: 'payment refused' } } : {}),
      ...(number > 0 && number % 40 === 0 ? { links: [{ traceId: slowTraces[0] ?? traceId, spanId: hex(next, 8) }] } : {}),
    });
    const call = span('web', 'POST', 'client', root, at + 0.5 * MS, endNs - at, { attributes: [text('server.address', 'checkout')] });
    const checkout = span('checkout', 'checkout', 'server', call, at + 1 * MS, endNs - at - 1 * MS);
    const cart = span('checkout', 'loadCart', 'internal', checkout, at + 2 * MS, cartEnd - at - 2 * MS);
    for (let item = 0; item < items; item++) {
      span('checkout', 'SELECT items', 'client', cart, at + 3 * MS + cartNs + item * (readNs + 0.2 * MS), readNs, { attributes: [text('db.system', 'postgresql'), text('db.query.text', `SELECT * FROM items WHERE id = ${item}`)] });
    }
    const taxCall = span('checkout', 'POST', 'client', checkout, taxFrom, taxNs + 2 * MS, { attributes: [text('server.address', 'tax')] });
    const tax = span('tax', 'calculateTax', 'server', taxCall, taxFrom + 1 * MS, taxNs, { attributes: [whole('thread.id', thread)] });
    const chargeCall = span('checkout', 'POST', 'client', checkout, chargeFrom - 1 * MS, lockNs + 5 * MS, { attributes: [text('server.address', 'payment')] });
    const charge = span('payment', 'charge', 'server', chargeCall, chargeFrom, lockNs + 3 * MS, {
      ...(failed
        ? { status: { code: 2, message: 'card declined' }, events: [{ name: 'exception', timeUnixNano: String(base + BigInt(Math.round(chargeFrom + lockNs + 1 * MS))), attributes: [text('exception.type', 'CardDeclined'), text('exception.message', 'the bank said no')] }] }
        : {}),
    });
    sample('cpu', 'web', version, thread, traceId, root, STACKS.web, at, number % 8 === 0 ? SAMPLE_NS : 0);
    sample('cpu', 'checkout', version, thread, traceId, cart, number % 3 === 0 ? STACKS.rules : STACKS.cart, at + 3 * MS, cartNs);
    sample('cpu', 'tax', version, thread, traceId, tax, STACKS.tax, taxFrom + 1 * MS, taxNs - 10 * MS);
    sample('cpu', 'tax', version, thread, traceId, tax, STACKS.taxSum, taxFrom + taxNs - 9 * MS, 10 * MS);
    sample('off_cpu', 'payment', version, thread, traceId, charge, STACKS.lock, chargeFrom, lockNs);
  }
  return { traceRequests: traceRequests(spans), profileRequests: [profileRequest(samples.cpu, 'cpu', 'cpu', base, next), profileRequest(samples.off_cpu, 'off_cpu', 'off_cpu', base, next)], slowTraces, manyReads, checkouts: CHECKOUTS };
}

function traceRequests(spans) {
  return [...spans].map(([key, list]) => {
    const [service, version] = key.split('|');
    return { resourceSpans: [{ resource: resourceOf(service, version), scopeSpans: [{ scope: { name: 'shop', version: '1' }, spans: list }] }] };
  });
}

/** One request with a profile per service, version and fifteen seconds, over one dictionary. */
function profileRequest(samples, type, unitType, base, next) {
  const strings = [''];
  const intern = (word) => (strings.includes(word) ? strings.indexOf(word) : strings.push(word) - 1);
  const functions = [{}];
  const locations = [{}];
  const stacks = [{}];
  const links = [{}];
  const attributes = [{}];
  const known = new Map();
  const once = (key, make) => (known.has(key) ? known.get(key) : (known.set(key, make()), known.get(key)));
  const locationOf = ([name, file, line]) =>
    once(`${name}:${line}`, () => {
      functions.push({ nameStrindex: intern(name), filenameStrindex: intern(file) });
      return locations.push({ lines: [{ functionIndex: functions.length - 1, line: String(line) }] }) - 1;
    });
  const stackOf = (stack) => once(stack, () => stacks.push({ locationIndices: stack.map(locationOf).reverse() }) - 1);
  const linkOf = (traceId, spanId) => once(`link ${spanId}`, () => links.push({ traceId, spanId }) - 1);
  const threadOf = (service, thread) => once(`thread ${service}${thread}`, () => [attributes.push({ keyStrindex: intern('thread.id'), value: { intValue: String(thread) } }) - 1, attributes.push({ keyStrindex: intern('thread.name'), value: { stringValue: `${service}-${thread}` } }) - 1]);

  const windows = new Map();
  for (const one of samples) {
    const key = `${one.service}|${one.version}|${Math.floor(one.timeNs / 15e9)}`;
    if (!windows.has(key)) windows.set(key, []);
    windows.get(key).push({
      stackIndex: stackOf(one.stack), linkIndex: linkOf(one.traceId, one.spanId), values: [String(SAMPLE_NS)],
      timestampsUnixNano: [String(base + BigInt(one.timeNs))], attributeIndices: threadOf(one.service, one.thread),
    });
  }
  const valueType = { typeStrindex: intern(unitType), unitStrindex: intern('nanoseconds') };
  const resourceProfiles = [...windows].map(([key, list]) => {
    const [service, version, window] = key.split('|');
    const profile = { sampleType: valueType, periodType: valueType, period: String(SAMPLE_NS), samples: list, timeUnixNano: String(base + BigInt(Number(window) * 15e9)), durationNano: String(15e9), profileId: hex(next, 16) };
    return { resource: resourceOf(service, version), scopeProfiles: [{ scope: { name: type }, profiles: [profile] }] };
  });
  return { resourceProfiles, dictionary: { stringTable: strings, functionTable: functions, locationTable: locations, stackTable: stacks, linkTable: links, attributeTable: attributes, mappingTable: [{}] } };
}

/** Sends the shop; each request is acknowledged once it is durable, so that every later question sees it. */
export async function sendShop(origin, endMs) {
  const made = shop(endMs);
  const send = async (path, body) => {
    const answer = await fetch(`${origin}${path}`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
    const said = await answer.text();
    if (!answer.ok || /rejected/i.test(said)) throw new Error(`${path} answered ${answer.status}: ${said}`);
  };
  for (const request of made.traceRequests) await send('/v1/traces', request);
  for (const request of made.profileRequests) await send('/v1development/profiles', request);
  return made;
}
