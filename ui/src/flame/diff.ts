// Ways of comparing two sides. Each is a pair of weights (see SideWeights), so layout, colours and table agree by construction.
import { formatSigned, formatShare, formatValue } from '../format/units';
import type { FlameTree, SideWeights } from './tree';

export type DiffMode = 'share' | 'absolute' | 'per-second' | 'per-request';

export interface SideSizes {
  ticksA: number;
  ticksB: number;
  secondsA?: number;
  secondsB?: number;
  requestsA?: number;
  requestsB?: number;
}

/** Null where the sizes needed are unknown. Values stay in units of side A, so that numbers keep their meaning. */
export function weightsFor(mode: DiffMode, sizes: SideSizes): SideWeights | null {
  const ratio = (a: number | undefined, b: number | undefined) => (a && b ? { a: 1, b: a / b } : null);
  switch (mode) {
    case 'absolute':
      return { a: 1, b: 1 };
    case 'share':
      return ratio(sizes.ticksA, sizes.ticksB) ?? { a: 1, b: 1 };
    case 'per-second':
      return ratio(sizes.secondsA, sizes.secondsB);
    case 'per-request':
      return ratio(sizes.requestsA, sizes.requestsB);
  }
}

/** −1 (gone) over 0 (same) to +1 (new). */
export function changeOf(a: number, b: number): number {
  const larger = Math.max(a, b);
  return larger === 0 ? 0 : (b - a) / larger;
}

export function nodeChange(tree: FlameTree, node: number, weights: SideWeights): number {
  return tree.sides ? changeOf(tree.sides.totalA[node]! * weights.a, tree.sides.totalB[node]! * weights.b) : 0;
}

/** The sign that stands in the box, so that colour is never the only mark. */
export function changeMark(change: number): string {
  if (change >= 1) return 'new ';
  if (change <= -1) return 'gone ';
  if (change > 0.02) return '+ ';
  if (change < -0.02) return '− ';
  return '';
}

/** A value in units of side A, said the way the comparison counts. */
export function formatCompared(value: number, mode: DiffMode, unit: string, sizes: SideSizes): string {
  switch (mode) {
    case 'share':
      return formatShare(sizes.ticksA ? value / sizes.ticksA : 0);
    case 'per-second':
      return `${formatValue(value / (sizes.secondsA || 1), unit)}/s`;
    case 'per-request':
      return formatValue(value / (sizes.requestsA || 1), unit);
    case 'absolute':
      return formatValue(value, unit);
  }
}

/** With its sign; what rounding alone made is nothing. */
export function formatDelta(delta: number, mode: DiffMode, unit: string, sizes: SideSizes): string {
  const noticeable = Math.abs(delta) > Math.max(sizes.ticksA, sizes.ticksB) * 1e-9 ? delta : 0;
  if (mode === 'share') return formatSigned((noticeable / (sizes.ticksA || 1)) * 100, (points) => `${points.toFixed(2)} points`);
  return formatSigned(noticeable, (magnitude) => formatCompared(magnitude, mode, unit, sizes));
}

export function describeChange(a: number, b: number, mode: DiffMode, unit: string, sizes: SideSizes): string {
  const per = mode === 'per-request' ? ' per request' : '';
  return `${formatCompared(a, mode, unit, sizes)} → ${formatCompared(b, mode, unit, sizes)} (${formatDelta(b - a, mode, unit, sizes)}${per})`;
}

/**
 * Could chance alone have made this change? Samples are counted as independent here, which flatters small changes: `explain`
 * resamples whole requests and is the judge. This only hides what is noise even under that kind assumption.
 */
export function beyondNoise(a: number, b: number, weights: SideWeights, perSample: SideWeights, sigmas = 3): boolean {
  // n samples of size s vary by s √n; a side that saw none may have missed one.
  const variance = (value: number, size: number) => Math.max(value, size) * size;
  const spread = Math.sqrt(variance(a, perSample.a) * weights.a ** 2 + variance(b, perSample.b) * weights.b ** 2);
  return Math.abs(b * weights.b - a * weights.a) > sigmas * spread;
}
