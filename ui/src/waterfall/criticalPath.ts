// The critical path: from the root's end backwards, always into the child that ended last before the current point. Only time
// on it delays the answer. It never exceeds the trace's duration, since its pieces do not overlap.
import { childrenOf, type TraceModel } from './traceModel';

export interface CriticalPath {
  /** Span's own time on the path, as [from, to] pairs. */
  pieces: ReadonlyMap<number, readonly [from: number, to: number][]>;
  totalNs: number;
}

export function criticalPath(trace: TraceModel): CriticalPath {
  const pieces = new Map<number, [number, number][]>();
  let totalNs = 0;
  const add = (span: number, from: number, to: number) => {
    if (to <= from) return;
    totalNs += to - from;
    const list = pieces.get(span);
    if (list) list.push([from, to]);
    else pieces.set(span, [[from, to]]);
  };
  // The path of the root that covers most; other roots are usually late or unlinked parts.
  let root = 0;
  for (let span = 0; span < trace.count; span = trace.subtreeEnd[span]!) if (trace.duration[span]! > trace.duration[root]!) root = span;
  const stack: { span: number; until: number; floor: number }[] = [{ span: root, until: trace.start[root]! + trace.duration[root]!, floor: trace.start[root]! }];
  while (stack.length > 0) {
    const { span, until, floor } = stack.pop()!;
    const begin = Math.max(floor, trace.start[span]!);
    const byEnd = childrenOf(trace, span).sort((a, b) => trace.start[b]! + trace.duration[b]! - (trace.start[a]! + trace.duration[a]!));
    let point = Math.min(until, trace.start[span]! + trace.duration[span]!);
    for (const child of byEnd) {
      const childStart = Math.max(begin, trace.start[child]!);
      const childEnd = Math.min(point, trace.start[child]! + trace.duration[child]!);
      if (childStart >= childEnd) continue;
      add(span, childEnd, point);
      stack.push({ span: child, until: childEnd, floor: childStart });
      point = childStart;
    }
    add(span, begin, point);
  }
  return { pieces, totalNs };
}
