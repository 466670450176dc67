// Units as people say them: 1.9 s, 214 ms, 12 µs, 1.2 GB; never 1900000000.

/** Three significant digits at most, without trailing zeros. */
function short(value: number): string {
  const magnitude = Math.abs(value);
  if (magnitude >= 100) return value.toFixed(0);
  return String(Number(value.toFixed(magnitude >= 10 ? 1 : 2)));
}

function scaled(value: number, steps: readonly (readonly [number, string])[]): string {
  for (const [size, unit] of steps) {
    // 0.9995 of a unit would print as "1000 ms"; step up early instead.
    if (Math.abs(value) >= size * 0.9995) return `${short(value / size)} ${unit}`;
  }
  const [size, unit] = steps[steps.length - 1]!;
  return `${short(value / size)} ${unit}`;
}

const DURATION_STEPS = [
  [86_400e9, 'd'],
  [3_600e9, 'h'],
  [60e9, 'min'],
  [1e9, 's'],
  [1e6, 'ms'],
  [1e3, 'µs'],
  [1, 'ns'],
] as const;

export function formatDuration(nanoseconds: number): string {
  if (nanoseconds === 0) return '0 s';
  return scaled(nanoseconds, DURATION_STEPS);
}

export function formatBytes(bytes: number): string {
  if (bytes === 0) return '0 B';
  return scaled(bytes, [
    [1e12, 'TB'],
    [1e9, 'GB'],
    [1e6, 'MB'],
    [1e3, 'kB'],
    [1, 'B'],
  ]);
}

/** Counts stay exact up to a million: 18,402 is evidence, 18 k is an impression. */
export function formatCount(count: number): string {
  if (Math.abs(count) < 1e6) return Math.round(count).toLocaleString('en-US');
  return scaled(count, [
    [1e9, 'G'],
    [1e6, 'M'],
  ]).replace(' ', ' ');
}

/** `1 span`, `2 spans`, `3 series`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${formatCount(count)} ${count === 1 ? one : many}`;
}

export type RateUnit = 's' | 'min';

/** One unit for a column of rates: numbers one compares should not change it from row to row. */
export function rateUnitFor(perSecond: readonly number[]): RateUnit {
  return Math.max(0, ...perSecond) < 0.5 ? 'min' : 's';
}

export function formatRate(perSecond: number, unit: RateUnit = perSecond > 0 && perSecond < 0.1 ? 'min' : 's'): string {
  const rate = unit === 'min' ? perSecond * 60 : perSecond;
  return `${rate >= 1000 ? `${short(rate / 1000)} k` : short(rate)}/${unit}`;
}

/** `share` is 0..1. Tiny but real shares never print as 0 %. */
export function formatShare(share: number): string {
  if (!Number.isFinite(share)) return 'n/a';
  const percent = share * 100;
  if (percent !== 0 && Math.abs(percent) < 0.01) return percent > 0 ? '< 0.01 %' : '> −0.01 %';
  return `${short(percent)} %`;
}

export type ValueUnit = 'nanoseconds' | 'bytes' | 'objects' | 'samples' | (string & {});

export function formatValue(value: number, unit: ValueUnit): string {
  switch (unit) {
    case 'nanoseconds':
      return formatDuration(value);
    case 'microseconds':
      return formatDuration(value * 1e3);
    case 'milliseconds':
      return formatDuration(value * 1e6);
    case 'seconds':
      return formatDuration(value * 1e9);
    case 'bytes':
      return formatBytes(value);
    default:
      return `${formatCount(value)} ${unit || 'samples'}`;
  }
}

export function formatSigned(value: number, format: (magnitude: number) => string): string {
  if (value === 0) return `±${format(0)}`;
  return `${value > 0 ? '+' : '−'}${format(Math.abs(value))}`;
}
