// Made-up answers of a known size: a flame graph of a million nodes, a trace of a hundred thousand spans. Same seed, same data.
import { packFlame } from './packFlame.mjs';

function random(seed) {
  let state = seed;
  return () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32;
}

/** Splits the whole into parts, level by level, until there are enough nodes. Every level covers its parents. */
export function flameAnswer(nodes, distinctNames) {
  const next = random(7);
  const names = ['total'];
  for (let i = 1; i <= distinctNames; i++) names.push(`github.com/acme/pkg${i % 300}/mod${i % 37}.(*Type${i % 91}).method${i}`);
  const columns = { self: [], name: [], children: [] };
  let depth = 0;
  let count = 1;
  let current = [[1e12, 0]];
  while (current.length > 0) {
    const below = [];
    for (const [total, name] of current) {
      let children = depth < 4 ? 6 : depth > 40 ? 0 : 1 + Math.floor(next() * 1.9);
      let self = depth > 3 && next() < 0.3 ? Math.floor(total * 0.1 * next()) : 0;
      if (count >= nodes || total < 50) children = 0;
      if (children === 0) self = total;
      let left = total - self;
      const before = below.length;
      for (let child = 0; child < children && left > 0; child++) {
        const width = child === children - 1 ? left : Math.floor(left * (0.2 + 0.6 * next()));
        if (width <= 0) continue;
        below.push([width, 1 + Math.floor(next() * next() * distinctNames)]);
        count++;
        left -= width;
      }
      columns.self.push(self);
      columns.name.push(name);
      columns.children.push(below.length - before);
    }
    depth++;
    current = below;
  }
  const told = { names, frames: names.map(() => ({})), metadata: { units: 'nanoseconds' }, exactness: { samples: 1e6, exact_share: 0.5, dropped: 0 } };
  return { body: Buffer.from(packFlame(told, columns)), count, depth };
}

export function traceAnswer(spans) {
  const next = random(5);
  const base = 1_700_000_000_000_000_000n;
  const hex = (n) => n.toString(16).padStart(16, '0');
  const b64 = (text) => Buffer.from(text, 'hex').toString('base64');
  const services = new Map();
  const outline = [];
  const parents = [[1, 0, 1e11, 0]];
  for (let id = 1; id <= spans; id++) {
    const [parent, start, duration, depth] = id === 1 ? [0, 0, 1e11, -1] : parents[Math.floor(next() * parents.length)];
    const from = id === 1 ? 0 : start + next() * duration * 0.8;
    const length = id === 1 ? 1e11 : Math.max(1e5, duration * 0.2 * next());
    if (id > 1 && depth < 9) parents.push([id, from, length, depth + 1]);
    if (parents.length > 4000) parents.splice(1, 1000);
    const service = id === 1 ? 'gateway' : ['shop', 'cart', 'tax', 'db', 'cache', 'mail'][Math.floor(next() * 6)];
    if (!services.has(service)) services.set(service, []);
    const name = `operation-${Math.floor(next() * 40)}`;
    outline.push({ number: id, span_id: hex(id), parent, service, name, failed: false, start_ns: Math.round(from), duration_ns: Math.round(length), depth: 0, descendants: 0 });
    services.get(service).push({
      spanId: b64(hex(id)),
      ...(id > 1 ? { parentSpanId: b64(hex(parent)) } : {}),
      name,
      kind: 'SPAN_KIND_INTERNAL',
      startTimeUnixNano: String(base + BigInt(Math.round(from))),
      endTimeUnixNano: String(base + BigInt(Math.round(from + length))),
      attributes: [
        { key: 'http.route', value: { stringValue: '/api/items/{id}' } },
        { key: 'thread.id', value: { intValue: '42' } },
      ],
      status: next() < 0.003 ? { code: 'STATUS_CODE_ERROR' } : {},
    });
  }
  const whole = JSON.stringify({
    trace: { resourceSpans: [...services].map(([service, list]) => ({ resource: { attributes: [{ key: 'service.name', value: { stringValue: service } }] }, scopeSpans: [{ spans: list }] })) },
  });
  const rows = asWaterfall(outline);
  const times = { start_ns: String(base), duration_ns: 1e11, total_spans: spans };
  return { whole, window: (limit) => JSON.stringify({ ...times, spans: rows.slice(0, limit) }), outline: JSON.stringify({ ...times, ...asColumns(rows) }) };
}

/** The rows by columns, as `/api/v1/trace/{id}/outline` has them. */
function asColumns(rows) {
  const numbered = (key) => {
    const list = [...new Set(rows.map((row) => row[key]))];
    const number = new Map(list.map((text, index) => [text, index]));
    return [list, rows.map((row) => number.get(row[key]))];
  };
  const [services, service] = numbered('service');
  const [names, name] = numbered('name');
  return { services, names, service, name, span_ids: rows.map((row) => row.span_id).join(''), start: rows.map((row) => row.start_ns), duration: rows.map((row) => row.duration_ns), depth: rows.map((row) => row.depth), failed: [] };
}

/** Parents before children, children by start; depth and number of descendants told, as the server tells them. */
function asWaterfall(spans) {
  const children = new Map();
  for (const span of spans) {
    const siblings = children.get(span.parent);
    if (siblings) siblings.push(span);
    else children.set(span.parent, [span]);
  }
  const rows = [];
  const walk = (span, depth) => {
    const at = rows.push({ ...span, depth }) - 1;
    for (const child of (children.get(span.number) ?? []).sort((a, b) => a.start_ns - b.start_ns)) walk(child, depth + 1);
    rows[at].descendants = rows.length - at - 1;
  };
  walk(spans[0], 0);
  return rows;
}
