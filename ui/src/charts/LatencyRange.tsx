// P50 to P99 as one mark on a log scale that all rows share: the eye finds the long tails before it reads a number.
import { formatDuration } from '../format/units';

export interface LatencyScale {
  lowNs: number;
  highNs: number;
}

/** Whole decades around all values, so that rows stay put while numbers move. */
export function latencyScale(values: readonly number[]): LatencyScale {
  const known = values.filter((value) => value > 0);
  if (known.length === 0) return { lowNs: 1e6, highNs: 1e9 };
  return { lowNs: 10 ** Math.floor(Math.log10(Math.min(...known))), highNs: 10 ** Math.ceil(Math.log10(Math.max(...known) * 1.001)) };
}

export function LatencyRange({ p50, p95, p99, scale, width = 120 }: { p50: number; p95: number; p99: number; scale: LatencyScale; width?: number }) {
  const span = Math.log(scale.highNs) - Math.log(scale.lowNs) || 1;
  const x = (ns: number) => 2 + ((Math.log(Math.max(ns, scale.lowNs)) - Math.log(scale.lowNs)) / span) * (width - 4);
  const decades: number[] = [];
  for (let at = scale.lowNs; at <= scale.highNs * 1.001; at *= 10) decades.push(at);
  if (p99 <= 0) return null;
  return (
    <svg width={width} height={18} role="img" aria-label={`P50 ${formatDuration(p50)}, P95 ${formatDuration(p95)}, P99 ${formatDuration(p99)}`} style={{ verticalAlign: 'middle' }}>
      {decades.map((at) => (
        <line key={at} x1={x(at)} x2={x(at)} y1={0} y2={18} stroke="var(--line)" />
      ))}
      <line x1={x(p50)} x2={x(p99)} y1={9} y2={9} stroke="var(--accent)" strokeWidth={1.5} />
      <line x1={x(p50)} x2={x(p95)} y1={9} y2={9} stroke="var(--accent)" strokeWidth={5} opacity={0.45} />
      <circle cx={x(p50)} cy={9} r={3} fill="var(--accent)" />
      <line x1={x(p99)} x2={x(p99)} y1={4} y2={14} stroke="var(--accent)" strokeWidth={2} />
    </svg>
  );
}
