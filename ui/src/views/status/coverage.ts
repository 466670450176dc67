// How well the stored data can answer: which share of spans has samples, of samples a span, of samples a name; and whose clocks differ.
import { getBytes, getJson, address } from '../../api/request';
import { searchTraces } from '../../api/traces';
import { decodeFlamebearer, type RawAnswer } from '../../flame/flamebearer';
import type { ResolvedRange } from '../../location/timeRange';
import { type ClockSkew, clockSkews } from '../../waterfall/clockSkew';
import { buildTrace, type RawTrace } from '../../waterfall/traceModel';

export interface Coverage {
  spans: number | null;
  profiledSpans: number | null;
  samples: number | null;
  linkedSamples: number | null;
  /** Share of sampled time whose innermost frame has a name. */
  symbolised: number | null;
  skews: ClockSkew[] | null;
  tracesLookedAt: number;
}

/** An address where a name should be: `0x7f…`, `libc.so.6!0x891f4`, `[unknown]`. */
export const isUnnamed = (name: string) => /(^|!|\+|\s)0x[0-9a-f]+$|^\[?unknown\]?$|^$/i.test(name);

export function symbolisedShare(answer: RawAnswer): number | null {
  const { count, names, name, selfA } = decodeFlamebearer(answer, '');
  let all = 0;
  let named = 0;
  for (let node = 1; node < count; node++) {
    all += selfA[node]!;
    if (!isUnnamed(names[name[node]!]!)) named += selfA[node]!;
  }
  return all > 0 ? named / all : null;
}

const TRACES = 20;

async function countOf(query: string, range: ResolvedRange, signal: AbortSignal): Promise<number> {
  const body = await getJson<{ series?: { value?: number; samples?: { value?: number }[] }[] }>(
    address('/api/metrics/query', { q: `${query} | count_over_time()`, start: Math.floor(range.fromMs / 1000), end: Math.ceil(range.toMs / 1000) }),
    signal,
  );
  return (body.series ?? []).reduce((sum, series) => sum + (series.value ?? series.samples?.[0]?.value ?? 0), 0);
}

async function skewsOf(range: ResolvedRange, signal: AbortSignal): Promise<{ skews: ClockSkew[]; tracesLookedAt: number }> {
  const { traces } = await searchTraces('{ kind = client }', range, TRACES, signal);
  const worst = new Map<string, ClockSkew>();
  for (const { traceID } of traces) {
    const trace = buildTrace(await getJson<RawTrace>(address(`/api/v2/traces/${traceID}`), signal));
    for (const skew of trace ? clockSkews(trace) : []) {
      const key = `${skew.caller} ${skew.callee}`;
      if (Math.abs(skew.ns) > Math.abs(worst.get(key)?.ns ?? 0)) worst.set(key, skew);
    }
  }
  return { skews: [...worst.values()].sort((a, b) => Math.abs(b.ns) - Math.abs(a.ns)), tracesLookedAt: traces.length };
}

/** Each part may fail by itself (an older server, no data): the others are still told. */
export async function readCoverage(range: ResolvedRange, signal: AbortSignal): Promise<Coverage> {
  const orNull = <T>(asked: Promise<T>) => asked.catch(() => null);
  const flame = orNull(getBytes(address('/api/v1/profile', { type: 'cpu', from: Math.floor(range.fromMs), until: Math.ceil(range.toMs), max_nodes: 20_000 }), signal).then((bytes) => JSON.parse(new TextDecoder().decode(bytes)) as RawAnswer));
  const [spans, profiledSpans, answer, skew] = await Promise.all([orNull(countOf('{ }', range, signal)), orNull(countOf('{ profile.samples > 0 }', range, signal)), flame, orNull(skewsOf(range, signal))]);
  return {
    spans,
    profiledSpans,
    samples: answer?.exactness?.samples ?? null,
    linkedSamples: answer?.exactness?.linked_samples ?? null,
    symbolised: answer ? symbolisedShare(answer) : null,
    skews: skew?.skews ?? null,
    tracesLookedAt: skew?.tracesLookedAt ?? 0,
  };
}
