// How a bar is painted: child time where it happened; the span's own time split into on-CPU, waiting and unexplained.
import type { SpanProfileFacts } from '../api/profiles';
import { ownIntervals, type TraceModel } from './traceModel';

export type PartKind = 'cpu' | 'wait' | 'child' | 'unexplained' | 'own';

export interface BarPart {
  kind: PartKind;
  from: number;
  to: number;
}

export interface SpanLedger {
  durationNs: number;
  cpuNs: number;
  waitNs: number;
  childNs: number;
  unexplainedNs: number;
}

/** Sums to the duration whatever the samples say: CPU and waiting are cut to the span's own time, the rest is unexplained. */
export function spanLedger(trace: TraceModel, span: number, facts: SpanProfileFacts | undefined): SpanLedger {
  const durationNs = trace.duration[span]!;
  const ownNs = ownIntervals(trace, span).reduce((sum, [from, to]) => sum + to - from, 0);
  const cpuNs = Math.min(ownNs, facts?.cpu_ns ?? 0);
  const waitNs = Math.min(ownNs - cpuNs, facts?.wait_ns ?? 0);
  return { durationNs, cpuNs, waitNs, childNs: durationNs - ownNs, unexplainedNs: ownNs - cpuNs - waitNs };
}

/** More gaps than this cannot be told apart on a screen. */
const MOST_GAPS = 24;

export function barParts(trace: TraceModel, span: number, facts: SpanProfileFacts | undefined, traceHasProfiles: boolean): BarPart[] {
  const start = trace.start[span]!;
  const end = start + trace.duration[span]!;
  const ledger = spanLedger(trace, span, facts);
  const ownNs = ledger.cpuNs + ledger.waitNs + ledger.unexplainedNs;
  const split: [PartKind, number][] = traceHasProfiles
    ? [
        ['cpu', ledger.cpuNs],
        ['wait', ledger.waitNs],
        ['unexplained', ledger.unexplainedNs],
      ]
    : [['own', ownNs]];
  const parts: BarPart[] = [];
  const paint = (from: number, to: number) => {
    let edge = from;
    for (const [kind, amount] of split) {
      if (amount <= 0 || ownNs <= 0) continue;
      const next = edge + (to - from) * (amount / ownNs);
      parts.push({ kind, from: edge, to: next });
      edge = next;
    }
  };
  const gaps = ownIntervals(trace, span);
  if (gaps.length > MOST_GAPS) {
    // Too fine to place: own time first, child time after it.
    paint(start, start + ownNs);
    parts.push({ kind: 'child', from: start + ownNs, to: end });
    return parts;
  }
  let edge = start;
  for (const [from, to] of gaps) {
    if (from > edge) parts.push({ kind: 'child', from: edge, to: from });
    paint(from, to);
    edge = to;
  }
  if (end > edge) parts.push({ kind: 'child', from: edge, to: end });
  return parts;
}
