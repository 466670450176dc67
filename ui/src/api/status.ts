import { address, getJson } from './request';

export interface StoreTable {
  table: string;
  level: number | string;
  segments: number;
  rows: number;
  bytes: number;
  min_time?: number | string | null;
  max_time?: number | string | null;
}

export interface ServerStatus {
  version?: string;
  listeners?: { name: string; address: string }[];
  ready?: boolean;
  uptime_s?: number;
  tenant?: string;
  store?: { tables?: StoreTable[] } & Record<string, unknown>;
  ingest?: Record<string, unknown>;
  /** Shares 0..1, where the server computes them. */
  coverage?: Record<string, unknown>;
  queries?: unknown;
  nodes?: unknown;
  source?: { url_template?: string };
  [unknownField: string]: unknown;
}

export function readStatus(signal: AbortSignal): Promise<ServerStatus> {
  return getJson(address('/api/v1/status'), signal);
}

export interface ScrapeTarget {
  service: string;
  target: string;
  profile?: string;
  health: string;
  scrapes?: number;
  failures?: number;
  last_error?: string | null;
}

export async function readTargets(signal: AbortSignal): Promise<ScrapeTarget[]> {
  return (await getJson<{ targets?: ScrapeTarget[] }>(address('/api/v1/targets'), signal)).targets ?? [];
}
