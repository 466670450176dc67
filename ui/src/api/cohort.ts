// The join: a set of spans gives its code, and `explain` names the causes.
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
  maxNodes?: number;
}

const body = ({ query, type, range, scope, baseline, maxNodes }: CohortQuestion, format?: string) => ({
  query,
  type,
  from: Math.floor(range.fromMs),
  to: Math.ceil(range.toMs),
  ...(scope ? { scope } : {}),
  ...(baseline ? { baseline } : {}),
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

export function cohortDiff(question: CohortQuestion, signal: AbortSignal): Promise<ArrayBuffer> {
  return postBytes(address('/api/v1/cohort/diff'), body(question, 'json'), signal);
}

export interface LedgerPart {
  /** cpu, lock, io, gc, scheduling, waiting, child, unexplained */
  kind: string;
  label?: string;
  ns: number;
}

export interface Ledger {
  spans?: number;
  duration_ns: number;
  parts: LedgerPart[];
  exactness?: Exactness;
}

type RawLedger = Record<string, unknown>;

/** Accepts `parts` or flat `cpu_ns`, `wait_ns`, `child_ns`, `unexplained_ns` fields. */
export function ledgerOf(raw: unknown): Ledger | null {
  if (!raw || typeof raw !== 'object') return null;
  const from = raw as RawLedger;
  const inner = (from.ledger && typeof from.ledger === 'object' ? from.ledger : from) as RawLedger;
  const nanos = (entry: RawLedger) => Number(entry.ns ?? entry.value_ns ?? entry.value ?? (entry.ms !== undefined ? Number(entry.ms) * 1e6 : 0));
  const parts: LedgerPart[] = Array.isArray(inner.parts)
    ? (inner.parts as RawLedger[]).map((part) => ({ kind: String(part.kind ?? 'waiting'), label: part.label === undefined || part.label === null ? undefined : String(part.label), ns: nanos(part) }))
    : Object.entries(inner)
        .filter(([key, value]) => /_(ns|ms)$/.test(key) && !/^(duration|total|slow|fast)/.test(key) && typeof value === 'number')
        .map(([key, value]) => ({ kind: key.replace(/_(ns|ms)$/, ''), ns: key.endsWith('_ms') ? Number(value) * 1e6 : Number(value) }));
  if (parts.length === 0) return null;
  const total = Number(inner.duration_ns ?? (inner.duration_ms !== undefined ? Number(inner.duration_ms) * 1e6 : NaN));
  return {
    spans: typeof inner.spans === 'number' ? inner.spans : undefined,
    duration_ns: Number.isFinite(total) ? total : parts.reduce((sum, part) => sum + part.ns, 0),
    parts,
    exactness: (from.exactness ?? inner.exactness) as Exactness | undefined,
  };
}

export async function cohortLedger(question: CohortQuestion, signal: AbortSignal): Promise<Ledger | null> {
  return ledgerOf(await postJson(address('/api/v1/cohort/ledger'), body(question), signal));
}

export interface Cause {
  kind: string;
  service?: string;
  operation?: string;
  /** Null where the operation as a whole is the cause. */
  function?: string | null;
  file?: string | null;
  line?: number | null;
  slow_ms: number;
  fast_ms: number;
  delta_ms: number;
  interval_ms?: [number, number];
  /** Share of the latency difference, 0..1. */
  share: number;
  spans?: number;
  samples?: number;
  link?: string;
  via?: string | string[];
  helps?: string;
  pattern?: string;
  traces?: string[];
  /** More calls or slower calls, where calls repeat. */
  calls?: { slow: number; fast: number; more_calls_ms: number; slower_calls_ms: number; failed_share: number };
  /** Attributes that tell slow requests from fast ones: a value with its shares, or the means of a number. */
  where?: { attribute: string; value?: string; slow: number; fast: number }[];
}

export interface Explanation {
  verdict: 'found' | 'nothing' | 'not_enough_data' | (string & {});
  causes: Cause[];
  ledger?: unknown;
  critical_path?: { service?: string; operation?: string; name?: string; ms?: number; self_ms?: number; share?: number; span_id?: string; trace_id?: string }[];
  coverage?: unknown;
  notes?: (string | { text?: string; message?: string })[];
  exactness?: Exactness;
  slow?: { spans?: number; mean_ms?: number };
  fast?: { spans?: number; mean_ms?: number };
  /** Cost that went from one function to another and made no difference. */
  moved?: { service: string; within: string; from: string; to: string; ms: number }[];
  link?: string;
}

export interface ExplainQuestion {
  target: string;
  baseline?: string;
  range: ResolvedRange;
  type?: string;
}

export async function explain({ target, baseline, range, type }: ExplainQuestion, signal: AbortSignal): Promise<Explanation> {
  const answer = await postJson<Explanation>(
    address('/api/v1/explain'),
    { target, ...(baseline ? { baseline } : {}), from: Math.floor(range.fromMs), to: Math.ceil(range.toMs), ...(type ? { type } : {}) },
    signal,
  );
  return { ...answer, causes: answer.causes ?? [] };
}
