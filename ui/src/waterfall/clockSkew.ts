// Clocks of two machines that disagree show in traces: a callee that begins before its caller, or ends after it was answered.
import type { TraceModel } from './traceModel';

export interface ClockSkew {
  caller: string;
  callee: string;
  /** How far the callee's clock is at least behind (negative) or ahead, in ns. */
  ns: number;
}

/** The largest disagreement of each pair of services; what lies inside its caller tells nothing. */
export function clockSkews(trace: TraceModel, leastNs = 1e6): ClockSkew[] {
  const worst = new Map<string, ClockSkew>();
  for (let span = 0; span < trace.count; span++) {
    const parent = trace.parent[span]!;
    if (parent < 0 || trace.service[parent] === trace.service[span]) continue;
    const early = trace.start[span]! - trace.start[parent]!;
    const late = trace.start[span]! + trace.duration[span]! - (trace.start[parent]! + trace.duration[parent]!);
    // Longer than its caller: work that goes on after the answer, no matter of clocks.
    if (trace.duration[span]! > trace.duration[parent]!) continue;
    const ns = early < 0 ? early : late > 0 ? late : 0;
    if (Math.abs(ns) < leastNs) continue;
    const key = `${trace.service[parent]}\0${trace.service[span]}`;
    if (Math.abs(ns) > Math.abs(worst.get(key)?.ns ?? 0)) worst.set(key, { caller: trace.service[parent]!, callee: trace.service[span]!, ns });
  }
  return [...worst.values()].sort((a, b) => Math.abs(b.ns) - Math.abs(a.ns));
}
