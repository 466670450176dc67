// The first window of a long trace: enough to draw its rows while the rest, with all attributes, is still on the way.
import type { TraceModel } from './traceModel';

export interface TraceOutline {
  start_ns: string;
  duration_ns: number;
  total_spans: number;
  spans: { span_id: string; service: string; name: string; failed: boolean; start_ns: number; duration_ns: number; depth: number; descendants: number }[];
}

/** Spans come as the waterfall shows them, so that a subtree is a range already. */
export function traceOfOutline(outline: TraceOutline): TraceModel | null {
  const { spans } = outline;
  const count = spans.length;
  if (count === 0) return null;
  const parent = new Int32Array(count).fill(-1);
  const depth = Uint16Array.from(spans, (span) => span.depth);
  const open: number[] = [];
  spans.forEach((span, index) => {
    open.length = Math.min(open.length, span.depth);
    if (span.depth > 0) parent[index] = open[span.depth - 1] ?? -1;
    open[span.depth] = index;
  });
  const service = spans.map((span) => span.service);
  const originNanos = BigInt(outline.start_ns);
  const left = outline.total_spans - count;
  return {
    count,
    raw: spans.map(() => ({})),
    resource: spans.map(() => []),
    scope: spans.map(() => ''),
    spanId: spans.map((span) => span.span_id),
    service,
    name: spans.map((span) => span.name),
    parent,
    depth,
    // A subtree that goes on past the window ends with it.
    subtreeEnd: Int32Array.from(spans, (span, index) => Math.min(count, index + 1 + span.descendants)),
    start: Float64Array.from(spans, (span) => span.start_ns),
    duration: Float64Array.from(spans, (span) => span.duration_ns),
    failed: Uint8Array.from(spans, (span) => (span.failed ? 1 : 0)),
    orphans: 0,
    originNanos,
    originMs: Number(originNanos / 1_000_000n),
    totalNs: Math.max(1, outline.duration_ns),
    services: [...new Set(service)],
    partial: `${left > 0 ? `the first ${count.toLocaleString('en-US')} of ${outline.total_spans.toLocaleString('en-US')} spans; the` : 'the'} rest is being read`,
  };
}
