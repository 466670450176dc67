// The join: a set of spans gives its code, and where its time went.
import type { ResolvedRange } from '../location/timeRange';
import type { Exactness } from './evidence';
import type { Scope } from './profiles';
import { address, postBytes, postJson } from './request';

export interface CohortQuestion {
  query: string;
  type: string;
  range: ResolvedRange;
  scope?: Scope;
  baseline?: string;
  /** When the spans of the baseline start, where that is another time. */
  baselineRange?: ResolvedRange;
  maxNodes?: number;
}

const body = ({ query, type, range, scope, baseline, baselineRange, maxNodes }: CohortQuestion, format?: string) => ({
  query,
  type,
  from: Math.floor(range.fromMs),
  to: Math.ceil(range.toMs),
  ...(scope ? { scope } : {}),
  ...(baseline ? { baseline } : {}),
  ...(baselineRange ? { baseline_from: Math.floor(baselineRange.fromMs), baseline_to: Math.ceil(baselineRange.toMs) } : {}),
  ...(format ? { format } : {}),
  ...(maxNodes ? { max_nodes: maxNodes } : {}),
});

export function cohortFlame(question: CohortQuestion, signal: AbortSignal): Promise<ArrayBuffer> {
  return postBytes(address('/api/v1/cohort/flame'), body(question, 'json'), signal);
}

/** Spans above, their code and waits below: one picture that sums to the whole duration. */
export function mergedFlame(question: CohortQuestion, signal: AbortSignal): Promise<ArrayBuffer> {
  return postBytes(address('/api/v1/cohort/flame'), body(question, 'merged'), signal);
}

export function cohortPprof(question: CohortQuestion, signal: AbortSignal): Promise<ArrayBuffer> {
  return postBytes(address('/api/v1/cohort/flame'), { ...body(question, 'pprof'), max_nodes: 0 }, signal);
}

export function cohortDiff(question: CohortQuestion, signal: AbortSignal): Promise<ArrayBuffer> {
  return postBytes(address('/api/v1/cohort/diff'), body(question, 'json'), signal);
}

export interface LedgerPart {
  /** cpu, gc, lock, io, scheduling, waiting, downstream, child, unexplained */
  kind: string;
  /** Which child, for children. */
  label?: string | null;
  ns: number;
}

export interface Ledger {
  spans?: number;
  duration_ns: number;
  parts: LedgerPart[];
  exactness?: Exactness;
}

/** What a whole trace costs, of all its spans in all services. */
export interface TraceCost {
  cpu_ns: number;
  wait_ns: number;
  samples: number;
}

/** By id; traces without samples are left out. */
export async function cohortTraces(question: CohortQuestion, signal: AbortSignal): Promise<Record<string, TraceCost>> {
  const answer = await postJson<{ traces?: Record<string, TraceCost> }>(address('/api/v1/cohort/traces'), body(question), signal);
  return answer.traces ?? {};
}

/** Share of the time of which the ledger knows where it went. */
export function explainedShare({ duration_ns, parts }: Ledger): number | undefined {
  const unexplained = parts.find((part) => part.kind === 'unexplained')?.ns ?? 0;
  // Samples may claim a little more than there was: nothing is then left to explain.
  return duration_ns > 0 ? Math.min(1, 1 - unexplained / duration_ns) : undefined;
}

export function cohortLedger(question: CohortQuestion, signal: AbortSignal): Promise<Ledger> {
  return postJson<Ledger>(address('/api/v1/cohort/ledger'), body(question), signal);
}
