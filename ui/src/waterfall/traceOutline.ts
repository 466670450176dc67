// A long trace without what its spans carry: enough to draw every row, in a tenth of the bytes.
import type { TraceModel } from './traceModel';

/** The first rows, which come before all others. */
export interface TraceWindow {
  start_ns: string;
  duration_ns: number;
  total_spans: number;
  spans: { span_id: string; service: string; name: string; failed: boolean; start_ns: number; duration_ns: number; depth: number }[];
}

/** All rows by columns, in the order of a waterfall. */
export interface TraceOutline {
  start_ns: string;
  duration_ns: number;
  total_spans: number;
  services: string[];
  names: string[];
  /** Sixteen characters each. */
  span_ids: string;
  service: number[];
  name: number[];
  start: number[];
  duration: number[];
  depth: number[];
  /** Places of the spans that failed. */
  failed: number[];
}

const ID_LENGTH = 16;

export function traceOfOutline(outline: TraceOutline): TraceModel | null {
  const count = outline.depth.length;
  const failed = new Uint8Array(count);
  for (const span of outline.failed) failed[span] = 1;
  return traceOfRows(outline, null, {
    spanId: Array.from({ length: count }, (_, span) => outline.span_ids.slice(span * ID_LENGTH, (span + 1) * ID_LENGTH)),
    service: outline.service.map((number) => outline.services[number]!),
    name: outline.name.map((number) => outline.names[number]!),
    depth: Uint16Array.from(outline.depth),
    start: Float64Array.from(outline.start),
    duration: Float64Array.from(outline.duration),
    failed,
  });
}

export function traceOfWindow(window: TraceWindow): TraceModel | null {
  const { spans } = window;
  const left = window.total_spans - spans.length;
  const partial = left > 0 ? `the first ${spans.length.toLocaleString('en-US')} of ${window.total_spans.toLocaleString('en-US')} spans; the rest is being read` : null;
  return traceOfRows(window, partial, {
    spanId: spans.map((span) => span.span_id),
    service: spans.map((span) => span.service),
    name: spans.map((span) => span.name),
    depth: Uint16Array.from(spans, (span) => span.depth),
    start: Float64Array.from(spans, (span) => span.start_ns),
    duration: Float64Array.from(spans, (span) => Math.max(0, span.duration_ns)),
    failed: Uint8Array.from(spans, (span) => (span.failed ? 1 : 0)),
  });
}

type Rows = Pick<TraceModel, 'spanId' | 'service' | 'name' | 'depth' | 'start' | 'duration' | 'failed'>;

/** Rows come as the waterfall shows them, so that depths alone tell who called whom. */
function traceOfRows({ start_ns, duration_ns }: { start_ns: string; duration_ns: number }, partial: string | null, rows: Rows): TraceModel | null {
  const { depth } = rows;
  const count = depth.length;
  if (count === 0) return null;
  const parent = new Int32Array(count).fill(-1);
  // A subtree that goes on past a window ends with it.
  const subtreeEnd = new Int32Array(count).fill(count);
  const open: number[] = [];
  for (let span = 0; span < count; span++) {
    for (let ended = depth[span]!; ended < open.length; ended++) subtreeEnd[open[ended]!] = span;
    open.length = Math.min(open.length, depth[span]!);
    if (depth[span]! > 0) parent[span] = open[depth[span]! - 1] ?? -1;
    open[depth[span]!] = span;
  }
  const originNanos = BigInt(start_ns);
  return { ...rows, count, details: null, parent, subtreeEnd, orphans: 0, originNanos, originMs: Number(originNanos / 1_000_000n), totalNs: Math.max(1, duration_ns), services: [...new Set(rows.service)], partial };
}
