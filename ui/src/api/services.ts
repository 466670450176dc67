import type { ResolvedRange } from '../location/timeRange';
import { address, getJson } from './request';

export interface OperationFacts {
  operation: string;
  kind?: string;
  /** Requests per second. */
  rate: number;
  /** Failed share, 0..1. */
  errors: number;
  p50_ns: number;
  p95_ns: number;
  p99_ns: number;
  cpu_ns_per_request?: number | null;
  spans?: number;
  /** The operations of a service past those that are told apart, all in one. */
  isRest?: boolean;
  /** Over the range in equal steps, oldest first; null where nothing ran. */
  rate_series?: (number | null)[];
  errors_series?: (number | null)[];
  p50_series?: (number | null)[];
  p95_series?: (number | null)[];
  p99_series?: (number | null)[];
  cpu_ns_per_request_series?: (number | null)[];
}

export interface ServiceFacts extends Omit<OperationFacts, 'operation' | 'kind'> {
  service: string;
  profile_types?: string[];
  operations: OperationFacts[];
}

export interface GraphEdge {
  client: string;
  server: string;
  rate: number;
  errors: number;
  p95_ns?: number;
  p50_ns?: number;
  p99_ns?: number;
}

const number = (value: unknown, fallback = 0): number => {
  const parsed = typeof value === 'string' ? Number(value) : value;
  return typeof parsed === 'number' && Number.isFinite(parsed) ? parsed : fallback;
};
const series = (value: unknown): (number | null)[] | undefined =>
  Array.isArray(value) ? value.map((point) => (point === null ? null : number(point))) : undefined;

type Raw = Record<string, unknown>;

/** Field names are read leniently: a rename on the server should cost a number, never the whole page. */
function facts(raw: Raw): Omit<OperationFacts, 'operation'> {
  const requests = number(raw.spans ?? raw.requests ?? raw.count);
  const errorCount = raw.error_count ?? raw.errors_count;
  const errors = errorCount !== undefined && requests > 0 ? number(errorCount) / requests : number(raw.error_share ?? raw.error_rate ?? raw.errors);
  const cpu = raw.cpu_ns_per_request ?? raw.cpu_per_request_ns ?? raw.cpu_per_request;
  return {
    rate: number(raw.rate),
    // A server that counts errors instead of giving a share would exceed one.
    errors: errors > 1 && requests > 0 ? errors / requests : errors,
    p50_ns: number(raw.p50_ns ?? raw.p50),
    p95_ns: number(raw.p95_ns ?? raw.p95),
    p99_ns: number(raw.p99_ns ?? raw.p99),
    cpu_ns_per_request: cpu === undefined || cpu === null ? null : number(cpu),
    spans: requests,
    rate_series: series(raw.rate_series),
    errors_series: series(raw.errors_series),
    p50_series: series(raw.p50_series),
    p95_series: series(raw.p95_series),
    p99_series: series(raw.p99_series),
    cpu_ns_per_request_series: series(raw.cpu_ns_per_request_series),
    isRest: raw.is_rest === true,
    ...(typeof raw.kind === 'string' ? { kind: raw.kind } : {}),
  };
}

const seconds = (range: ResolvedRange) => ({ start: Math.floor(range.fromMs / 1000), end: Math.ceil(range.toMs / 1000) });

export interface ServiceList {
  services: ServiceFacts[];
  /** The time that all series cut into steps, as the server took it. */
  span: ResolvedRange;
  /** Since when the CPU of operations is counted, where that is not the whole time: there are too many samples in it. */
  costsFromMs: number | null;
}

export async function readServices(range: ResolvedRange, signal: AbortSignal): Promise<ServiceList> {
  const body = await getJson<{ services?: Raw[]; start?: number; end?: number; is_cut?: boolean; costs_start?: number }>(address('/api/v1/services', seconds(range)), signal);
  const services = (body.services ?? []).map((raw) => ({
    ...facts(raw),
    service: String(raw.service ?? raw.name ?? ''),
    profile_types: Array.isArray(raw.profile_types) ? raw.profile_types.map(String) : undefined,
    operations: (Array.isArray(raw.operations) ? (raw.operations as Raw[]) : []).map((operation) => ({
      ...facts(operation),
      operation: String(operation.operation ?? operation.name ?? ''),
    })),
  }));
  const span = body.start !== undefined && body.end !== undefined ? { fromMs: body.start / 1e6, toMs: body.end / 1e6 } : range;
  return { services, span, costsFromMs: body.is_cut && body.costs_start !== undefined ? body.costs_start / 1e6 : null };
}

/** First and last moment in which anything was asked of any service; null for silence. */
export function activeTime(services: readonly ServiceFacts[], range: ResolvedRange): ResolvedRange | null {
  let first = Infinity;
  let last = -1;
  let steps = 0;
  for (const { rate_series } of services) {
    steps = Math.max(steps, rate_series?.length ?? 0);
    rate_series?.forEach((rate, step) => {
      if (!rate) return;
      first = Math.min(first, step);
      last = Math.max(last, step);
    });
  }
  const width = (range.toMs - range.fromMs) / (steps || 1);
  return last < 0 ? null : { fromMs: range.fromMs + first * width, toMs: range.fromMs + (last + 1) * width };
}

export async function readServiceGraph(range: ResolvedRange, signal: AbortSignal): Promise<GraphEdge[]> {
  const body = await getJson<{ edges?: Raw[] } | Raw[]>(address('/api/v1/service-graph', seconds(range)), signal);
  const list = Array.isArray(body) ? body : (body.edges ?? []);
  return list.map((raw) => ({
    client: String(raw.client ?? raw.from ?? raw.source ?? ''),
    server: String(raw.server ?? raw.to ?? raw.target ?? ''),
    ...facts(raw),
  }));
}
