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
  /** p99 (ns) over the range in equal steps, oldest first; null where nothing ran. */
  p99_series?: (number | null)[];
}

export interface ServiceFacts extends Omit<OperationFacts, 'operation' | 'kind'> {
  service: string;
  rate_series?: (number | null)[];
  errors_series?: (number | null)[];
  cpu_series?: (number | null)[];
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
    p99_series: series(raw.p99_series),
    ...(typeof raw.kind === 'string' ? { kind: raw.kind } : {}),
  };
}

const seconds = (range: ResolvedRange) => ({ start: Math.floor(range.fromMs / 1000), end: Math.ceil(range.toMs / 1000) });

export async function readServices(range: ResolvedRange, signal: AbortSignal): Promise<ServiceFacts[]> {
  const body = await getJson<{ services?: Raw[] } | Raw[]>(address('/api/v1/services', seconds(range)), signal);
  const list = Array.isArray(body) ? body : (body.services ?? []);
  return list.map((raw) => ({
    ...facts(raw),
    service: String(raw.service ?? raw.name ?? ''),
    rate_series: series(raw.rate_series),
    errors_series: series(raw.errors_series),
    cpu_series: series(raw.cpu_series),
    profile_types: Array.isArray(raw.profile_types) ? raw.profile_types.map(String) : undefined,
    operations: (Array.isArray(raw.operations) ? (raw.operations as Raw[]) : []).map((operation) => ({
      ...facts(operation),
      operation: String(operation.operation ?? operation.name ?? ''),
    })),
  }));
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
