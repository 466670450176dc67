// One side of a comparison, as it stands in the URL.
import { type ResolvedRange, resolveRange } from '../../location/timeRange';

export type SideKind = 'profile' | 'spans';

export interface Side {
  /** Label selector (`{version="1.4.2"}`) for profiles, TraceQL for spans. */
  selector: string;
  from: string;
  to: string;
}

export function rangeOfSide(side: Side, fallback: ResolvedRange): ResolvedRange {
  return side.from && side.to ? resolveRange({ from: side.from, to: side.to }, Date.now()) : fallback;
}

/** Adds the service to a selector that may be empty. */
export function profileSelector(selector: string, service: string): string {
  const inner = selector.trim().replace(/^\{|\}$/g, '').trim();
  const named = service && !/service_name\s*=/.test(inner) ? [`service_name=${JSON.stringify(service)}`] : [];
  return `{${[...named, inner].filter(Boolean).join(', ')}}`;
}
