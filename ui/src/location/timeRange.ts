// A time range as it stands in the URL: relative (`now-1h`) or absolute (milliseconds since the epoch).

export interface TimeRange {
  from: string;
  to: string;
}

export interface ResolvedRange {
  fromMs: number;
  toMs: number;
}

export const DEFAULT_RANGE: TimeRange = { from: 'now-1h', to: 'now' };

export const RELATIVE_RANGES: readonly { label: string; range: TimeRange }[] = [
  ['last 5 min', 'now-5m'],
  ['last 15 min', 'now-15m'],
  ['last 1 h', 'now-1h'],
  ['last 6 h', 'now-6h'],
  ['last 24 h', 'now-24h'],
  ['last 7 d', 'now-7d'],
].map(([label, from]) => ({ label: label!, range: { from: from!, to: 'now' } }));

const UNIT_MS: Record<string, number> = { s: 1e3, m: 60e3, h: 3_600e3, d: 86_400e3 };

function resolvePoint(point: string, nowMs: number): number {
  if (point === 'now') return nowMs;
  const relative = /^now-(\d+)([smhd])$/.exec(point);
  if (relative) return nowMs - Number(relative[1]) * UNIT_MS[relative[2]!]!;
  const absolute = Number(point);
  return Number.isFinite(absolute) && point !== '' ? absolute : Date.parse(point);
}

export function resolveRange(range: TimeRange, nowMs: number): ResolvedRange {
  const fromMs = resolvePoint(range.from, nowMs);
  const toMs = resolvePoint(range.to, nowMs);
  if (Number.isNaN(fromMs) || Number.isNaN(toMs) || fromMs >= toMs) return { fromMs: nowMs - 3_600e3, toMs: nowMs };
  return { fromMs, toMs };
}

/** Half a window earlier (−1) or later (+1): what `[` and `]` do. The result is absolute, since "now" no longer describes it. */
export function shiftRange(range: TimeRange, direction: -1 | 1, nowMs: number): TimeRange {
  const { fromMs, toMs } = resolveRange(range, nowMs);
  const step = ((toMs - fromMs) / 2) * direction;
  return { from: String(Math.round(fromMs + step)), to: String(Math.round(toMs + step)) };
}

export function rangeLabel(range: TimeRange): string | null {
  return RELATIVE_RANGES.find((known) => known.range.from === range.from && known.range.to === range.to)?.label ?? null;
}
