// A trace as the waterfall needs it: spans in preorder (children by start time), times in nanoseconds since the trace began.
import { type KeyValue, plainValue, type RawSpan, type RawTrace } from '../api/traces';

/** What a span carries besides its place in the trace. */
export interface SpanDetails {
  raw: RawSpan;
  resource: readonly KeyValue[];
  scope: string;
}

export interface TraceModel {
  count: number;
  /** Null for a trace too long to be read whole: details are then read for the spans that are looked at. */
  details: readonly SpanDetails[] | null;
  spanId: readonly string[];
  service: readonly string[];
  name: readonly string[];
  /** −1 for roots and for spans whose parent is not there. */
  parent: Int32Array;
  depth: Uint16Array;
  subtreeEnd: Int32Array;
  start: Float64Array;
  duration: Float64Array;
  failed: Uint8Array;
  /** Spans whose parent never arrived. */
  orphans: number;
  originNanos: bigint;
  originMs: number;
  totalNs: number;
  services: readonly string[];
  partial: string | null;
}

const BASE64 = new Uint8Array(128);
[...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'].forEach((character, value) => {
  BASE64[character.charCodeAt(0)] = value;
});

const hexWord = (word: number) => (word >>> 0).toString(16).padStart(8, '0');

/** Tempo's JSON carries ids in base64; some proxies turn them into hex. Decoded by 32-bit words, since a big trace has 100,000. */
export function hexId(id: string | undefined, bytes: 8 | 16): string {
  if (!id) return '';
  if (id.length === bytes * 2 && /^[0-9a-fA-F]+$/.test(id)) return id.toLowerCase();
  let hex = '';
  let word = 0;
  let held = 0;
  for (let i = 0; i < id.length && id[i] !== '='; i++) {
    const six = BASE64[id.charCodeAt(i) & 127]!;
    if (held + 6 < 32) {
      word = (word << 6) | six;
      held += 6;
    } else {
      const taken = 32 - held;
      hex += hexWord((word << taken) | (six >> (6 - taken)));
      word = six & ((1 << (6 - taken)) - 1);
      held = 6 - taken;
    }
  }
  return hex;
}

/** Difference of two times in nanoseconds. Exact while it is under 104 days, and far cheaper than BigInt. */
export function nanosBetween(from: string, to: string): number {
  return (Number(to.slice(0, -9)) - Number(from.slice(0, -9))) * 1e9 + (Number(to.slice(-9)) - Number(from.slice(-9)));
}

/** All spans of an answer with what their resource and scope say. */
export function spansIn(answer: RawTrace): (SpanDetails & { service: string })[] {
  const flat: (SpanDetails & { service: string })[] = [];
  for (const batch of answer.trace?.resourceSpans ?? []) {
    const resource = batch.resource?.attributes ?? [];
    const service = plainValue(resource.find((pair) => pair.key === 'service.name')?.value) || 'unknown service';
    for (const scoped of batch.scopeSpans ?? []) {
      const scope = [scoped.scope?.name, scoped.scope?.version].filter(Boolean).join(' ');
      for (const raw of scoped.spans ?? []) flat.push({ raw, resource, service, scope });
    }
  }
  return flat;
}

export function buildTrace(answer: RawTrace): TraceModel | null {
  const flat = spansIn(answer);
  const count = flat.length;
  if (count === 0) return null;
  const anchor = flat[0]!.raw.startTimeUnixNano ?? '0';
  const sinceAnchor = Float64Array.from(flat, ({ raw }) => nanosBetween(anchor, raw.startTimeUnixNano ?? '0'));
  const earliest = sinceAnchor.reduce((least, start) => Math.min(least, start), 0);
  const originNanos = BigInt(anchor) + BigInt(earliest);
  const ids = flat.map(({ raw }) => hexId(raw.spanId, 8));
  // Ids are compared as they came: within one answer they are written alike.
  const indexOf = new Map<string, number>();
  flat.forEach(({ raw }, index) => indexOf.set(raw.spanId ?? '', index));
  const looseStart = sinceAnchor.map((start) => start - earliest);
  const looseDuration = Float64Array.from(flat, ({ raw }) => Math.max(0, nanosBetween(raw.startTimeUnixNano ?? '0', raw.endTimeUnixNano ?? raw.startTimeUnixNano ?? '0')));
  // Most spans are leaves: only parents get a list.
  const children: (number[] | undefined)[] = new Array<number[] | undefined>(count);
  const roots: number[] = [];
  const looseParent = new Int32Array(count).fill(-1);
  let orphans = 0;
  flat.forEach(({ raw }, index) => {
    const parent = raw.parentSpanId ? indexOf.get(raw.parentSpanId) : undefined;
    if (parent !== undefined && parent !== index) {
      looseParent[index] = parent;
      const siblings = children[parent];
      if (siblings) siblings.push(index);
      else children[parent] = [index];
    } else {
      if (raw.parentSpanId && !/^0*$/.test(hexId(raw.parentSpanId, 8))) orphans++;
      roots.push(index);
    }
  });
  const byStart = (a: number, b: number) => looseStart[a]! - looseStart[b]! || looseDuration[b]! - looseDuration[a]!;
  const order: number[] = [];
  const place = new Int32Array(count).fill(-1);
  const walkFrom = (root: number) => {
    // Explicit stack: a chain of ten thousand spans must not overflow the call stack.
    const stack = [root];
    while (stack.length > 0) {
      const node = stack.pop()!;
      if (place[node] !== -1) continue;
      place[node] = order.push(node) - 1;
      const below = children[node];
      if (!below) continue;
      if (below.length > 1) below.sort(byStart);
      for (let c = below.length - 1; c >= 0; c--) stack.push(below[c]!);
    }
  };
  roots.sort(byStart).forEach(walkFrom);
  // Spans on a parent cycle have no root; each cycle is entered once, so that nothing vanishes.
  for (let node = 0; node < count; node++) {
    if (place[node] === -1) {
      looseParent[node] = -1;
      orphans++;
      walkFrom(node);
    }
  }

  const parent = new Int32Array(count);
  const depth = new Uint16Array(count);
  const subtreeEnd = new Int32Array(count);
  const start = new Float64Array(count);
  const duration = new Float64Array(count);
  const failed = new Uint8Array(count);
  let totalNs = 1;
  order.forEach((loose, at) => {
    parent[at] = looseParent[loose]! < 0 ? -1 : place[looseParent[loose]!]!;
    depth[at] = parent[at]! < 0 ? 0 : depth[parent[at]!]! + 1;
    start[at] = looseStart[loose]!;
    duration[at] = looseDuration[loose]!;
    const code = flat[loose]!.raw.status?.code;
    failed[at] = code === 'STATUS_CODE_ERROR' || code === 2 ? 1 : 0;
    totalNs = Math.max(totalNs, start[at]! + duration[at]!);
    subtreeEnd[at] = at + 1;
  });
  for (let at = count - 1; at > 0; at--) {
    const above = parent[at]!;
    if (above >= 0 && subtreeEnd[at]! > subtreeEnd[above]!) subtreeEnd[above] = subtreeEnd[at]!;
  }
  const pick = <T>(read: (entry: (typeof flat)[number]) => T) => order.map((loose) => read(flat[loose]!));
  const service = pick((entry) => entry.service);
  return {
    count,
    details: pick((entry) => entry),
    spanId: order.map((loose) => ids[loose]!),
    service,
    name: pick((entry) => entry.raw.name ?? ''),
    parent,
    depth,
    subtreeEnd,
    start,
    duration,
    failed,
    orphans,
    originNanos,
    originMs: Number(originNanos / 1_000_000n),
    totalNs,
    services: [...new Set(service)],
    partial: answer.status === 'PARTIAL' ? (answer.message ?? 'The server sent only a part of this trace.') : null,
  };
}

export function childrenOf(trace: TraceModel, span: number): number[] {
  const children: number[] = [];
  for (let child = span + 1; child < trace.subtreeEnd[span]!; child = trace.subtreeEnd[child]!) children.push(child);
  return children;
}

/** Parts of a span during which no child runs, clipped to the span. */
export function ownIntervals(trace: TraceModel, span: number): [from: number, to: number][] {
  const end = trace.start[span]! + trace.duration[span]!;
  const own: [number, number][] = [];
  let edge = trace.start[span]!;
  // Children come by start time, so one sweep joins overlaps.
  for (const child of childrenOf(trace, span)) {
    const from = Math.min(end, trace.start[child]!);
    if (from > edge) own.push([edge, from]);
    edge = Math.max(edge, Math.min(end, trace.start[child]! + trace.duration[child]!));
  }
  if (end > edge) own.push([edge, end]);
  return own;
}
