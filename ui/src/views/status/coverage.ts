// How well the stored data can answer: which share of spans has samples, of samples a span, of samples a name; and whose clocks differ.
import { cohortFlame } from '../../api/cohort';
import { address, getBytes } from '../../api/request';
import { readTrace, searchTraces } from '../../api/traces';
import { decodeFlamebearer, type RawAnswer } from '../../flame/flamebearer';
import type { ResolvedRange } from '../../location/timeRange';
import { type ClockSkew, clockSkews } from '../../waterfall/clockSkew';
import { buildTrace } from '../../waterfall/traceModel';

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

interface Linked {
  range: ResolvedRange;
  spans: number;
  profiledSpans: number;
  linkedSamples: number;
}

/** Looks at all spans of the range, or of as much of its end as one answer holds: halves until nothing is left out. */
async function linkedIn(range: ResolvedRange, signal: AbortSignal): Promise<Linked> {
  for (let from = range.fromMs; ; from = (from + range.toMs) / 2) {
    const part = { fromMs: from, toMs: range.toMs };
    const bytes = await cohortFlame({ query: '{ }', type: 'cpu', range: part, scope: 'span', maxNodes: 1 }, signal);
    const { exactness } = JSON.parse(new TextDecoder().decode(bytes)) as RawAnswer;
    const isWhole = !exactness?.is_cut || range.toMs - from < 1000;
    if (isWhole) return { range: part, spans: exactness?.spans ?? 0, profiledSpans: exactness?.spans_with_samples ?? 0, linkedSamples: exactness?.samples ?? 0 };
  }
}

async function skewsOf(range: ResolvedRange, signal: AbortSignal): Promise<{ skews: ClockSkew[]; tracesLookedAt: number }> {
  const { traces } = await searchTraces('{ kind = client }', range, TRACES, signal);
  const worst = new Map<string, ClockSkew>();
  for (const { traceID } of traces) {
    const trace = buildTrace(await readTrace(traceID, signal));
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
  const [linked, skew] = await Promise.all([orNull(linkedIn(range, signal)), orNull(skewsOf(range, signal))]);
  // The same stretch of time as above, or the shares would be of different wholes.
  const { fromMs, toMs } = linked?.range ?? range;
  const answer = await orNull(getBytes(address('/api/v1/profile', { type: 'cpu', from: Math.floor(fromMs), until: Math.ceil(toMs), max_nodes: 20_000 }), signal).then((bytes) => JSON.parse(new TextDecoder().decode(bytes)) as RawAnswer));
  return {
    spans: linked?.spans ?? null,
    profiledSpans: linked?.profiledSpans ?? null,
    samples: answer?.exactness?.samples ?? null,
    linkedSamples: linked?.linkedSamples ?? null,
    symbolised: answer ? symbolisedShare(answer) : null,
    skews: skew?.skews ?? null,
    tracesLookedAt: skew?.tracesLookedAt ?? 0,
  };
}
