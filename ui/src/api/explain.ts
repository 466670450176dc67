// Why requests are slow, or whether a change helped: what docs/explain.md describes, field by field.
import type { ResolvedRange } from '../location/timeRange';
import type { Exactness } from './evidence';
import { address, postJson } from './request';

export interface Cause {
  /** cpu, lock, io, gc, downstream, scheduling or waiting */
  kind: string;
  service: string;
  operation: string;
  /** For a call whose other side was seen: what it calls. */
  callee?: string;
  /** Null where the operation as a whole is the cause. */
  function: string | null;
  file: string | null;
  line: number | null;
  /** Library functions that it spends the time in, callers first. */
  via?: string[];
  slow_ms: number;
  fast_ms: number;
  delta_ms: number;
  interval_ms: [number, number];
  /** Share of the whole difference, 0..1. */
  share: number;
  spans: number;
  samples: number;
  /** Of `delta_ms`: time without a CPU, since the machine was busy. */
  waiting_for_cpu_ms?: number;
  pattern?: string;
  helps?: string;
  /** More calls or slower calls, where calls repeat. */
  calls?: { slow: number; fast: number; more_calls_ms: number; slower_calls_ms: number; failed_share: number };
  /** Attributes that tell slow requests from fast ones: a value with its shares, or the means of a number. */
  where?: { attribute: string; value?: string; slow: number; fast: number }[];
  traces: string[];
  link: string;
  /** What it does to a request, in a sentence. */
  sentence: string;
}

export interface SideSummary {
  spans: number;
  with_samples: number;
  samples: number;
  mean_ms: number;
  p50_ms: number;
  p95_ms: number;
  p99_ms: number;
}

export interface PathStep {
  service: string;
  operation: string;
  callee?: string;
  /** How many operations above it lie on the path. */
  depth: number;
  /** Its own time, without its callees. */
  ms: number;
  fast_ms: number;
  share: number;
  calls: number;
}

/** Where most of the time goes, whatever others do: told where no cause stands out. */
export interface Widest {
  service: string;
  operation: string;
  function: string | null;
  file: string | null;
  line: number | null;
  ms: number;
  share: number;
}

export interface FunctionChange {
  service: string;
  function: string;
  is_own: boolean;
  before_ms: number;
  after_ms: number;
  delta_ms: number;
  interval_ms: [number, number];
}

export interface Comparison {
  change: 'faster' | 'slower' | 'same' | 'not_enough_data';
  before: SideSummary;
  after: SideSummary;
  delta_ms: number;
  interval_ms: [number, number];
  functions: FunctionChange[];
}

export interface Explanation {
  verdict: 'found' | 'nothing' | 'not_enough_data';
  headline: string;
  causes: Cause[];
  widest?: Widest | null;
  slow: SideSummary;
  fast: SideSummary;
  ledger: { duration_ms: number; fast_duration_ms: number; parts: { kind: string; label?: string; ms: number; fast_ms: number; delta_ms: number }[] };
  critical_path: PathStep[];
  coverage: { explained: number; services: { service: string; ms: number; profiles: string[] }[] };
  /** Cost that went from one function to another and made no difference. */
  moved?: { service: string; within: string; from: string; to: string; ms: number }[];
  /** Whether a change helped, where that was asked. */
  comparison?: Comparison;
  notes: string[];
  exactness: Exactness;
  /** The whole of it for a ticket. */
  markdown: string;
}

export interface ExplainQuestion {
  target: string;
  baseline?: string;
  range: ResolvedRange;
  type?: string;
  /** Two times as `T1..T2`, instead of a range and a baseline: did a change between them help? */
  change?: { before: string; after: string };
}

export function explain({ target, baseline, range, type, change }: ExplainQuestion, signal: AbortSignal): Promise<Explanation> {
  const times = change ?? { from: Math.floor(range.fromMs), to: Math.ceil(range.toMs), ...(baseline ? { baseline } : {}) };
  return postJson<Explanation>(address('/api/v1/explain'), { target, ...times, ...(type ? { type } : {}) }, signal);
}
