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

/** Sums are kept longer than the samples they are of. */
const TABLES = { spans: ['spans'], samples: ['samples', 'rollup_15s', 'rollup_1h'] };
export type StoredSignal = keyof typeof TABLES;

/** From the first that is stored to the last; null where nothing is. */
export function storedTime(tables: readonly StoreTable[], signal: StoredSignal): { fromMs: number; toMs: number } | null {
  const filled = tables.filter(({ table, rows, min_time, max_time }) => TABLES[signal].includes(table) && rows > 0 && Number(min_time) > 0 && Number(max_time) > 0);
  if (filled.length === 0) return null;
  return { fromMs: Math.min(...filled.map((table) => Number(table.min_time))) / 1e6, toMs: Math.max(...filled.map((table) => Number(table.max_time))) / 1e6 };
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
