// Tempo's API as the page uses it.
import { nanosTextToMillis } from '../format/clock';
import type { ResolvedRange } from '../location/timeRange';
import { address, getJson, postJson } from './request';

export interface AnyValue {
  stringValue?: string;
  intValue?: string | number;
  doubleValue?: number;
  boolValue?: boolean;
  bytesValue?: string;
  arrayValue?: { values?: AnyValue[] };
  kvlistValue?: { values?: KeyValue[] };
}

export interface KeyValue {
  key: string;
  value?: AnyValue;
}

export interface RawSpan {
  spanId?: string;
  parentSpanId?: string;
  name?: string;
  kind?: string | number;
  startTimeUnixNano?: string;
  endTimeUnixNano?: string;
  attributes?: KeyValue[];
  events?: { name?: string; timeUnixNano?: string; attributes?: KeyValue[] }[];
  links?: { traceId?: string; spanId?: string; attributes?: KeyValue[] }[];
  status?: { code?: string | number; message?: string };
  traceState?: string;
  droppedAttributesCount?: number;
}

export interface RawTrace {
  trace?: {
    resourceSpans?: { resource?: { attributes?: KeyValue[] }; scopeSpans?: { scope?: { name?: string; version?: string }; spans?: RawSpan[] }[] }[];
  };
  status?: string;
  message?: string;
}

export interface FoundSpan {
  spanID: string;
  name?: string;
  startTimeUnixNano: string;
  durationNanos: string;
  attributes?: KeyValue[];
}

export interface FoundTrace {
  traceID: string;
  rootServiceName?: string;
  rootTraceName?: string;
  startTimeUnixNano: string;
  durationMs?: number;
  spanSets?: { spans?: FoundSpan[]; matched?: number; attributes?: KeyValue[] }[];
  spanSet?: { spans?: FoundSpan[]; matched?: number };
  serviceStats?: Record<string, { spanCount?: number; errorCount?: number }>;
}

export interface SearchAnswer {
  traces: FoundTrace[];
  metrics?: Record<string, unknown>;
}

const seconds = (range: ResolvedRange) => ({ start: Math.floor(range.fromMs / 1000), end: Math.ceil(range.toMs / 1000) });

export async function searchTraces(query: string, range: ResolvedRange, limit: number, signal: AbortSignal): Promise<SearchAnswer> {
  const body = await getJson<Partial<SearchAnswer>>(address('/api/search', { q: query, limit, spss: 10, ...seconds(range) }), signal);
  return { traces: body.traces ?? [], metrics: body.metrics };
}

export function readTrace(traceId: string, signal: AbortSignal): Promise<RawTrace> {
  return getJson(address(`/api/v2/traces/${traceId}`), signal);
}

/** Everything about some spans of a long trace, in the form of a trace by id. */
export function readSpanDetails(traceId: string, spans: readonly string[], signal: AbortSignal): Promise<RawTrace> {
  return postJson(address(`/api/v1/trace/${traceId}/details`), { spans }, signal);
}

export interface TagScope {
  name: string;
  tags?: string[];
}

export async function readTags(range: ResolvedRange, signal: AbortSignal): Promise<TagScope[]> {
  const body = await getJson<{ scopes?: TagScope[] }>(address('/api/v2/search/tags', { limit: 5000, ...seconds(range) }), signal);
  return body.scopes ?? [];
}

export interface TagValue {
  type: string;
  value: string;
}

export async function readTagValues(tag: string, range: ResolvedRange, signal: AbortSignal): Promise<TagValue[]> {
  const body = await getJson<{ tagValues?: TagValue[] }>(
    address(`/api/v2/search/tag/${encodeURIComponent(tag)}/values`, { limit: 500, ...seconds(range) }),
    signal,
  );
  return body.tagValues ?? [];
}

export interface MetricSeries {
  labels?: KeyValue[];
  samples?: { timestampMs: string; value?: number }[];
}

export async function queryMetricRange(query: string, range: ResolvedRange, stepSeconds: number, signal: AbortSignal): Promise<MetricSeries[]> {
  const body = await getJson<{ series?: MetricSeries[] }>(
    address('/api/metrics/query_range', { q: query, step: `${stepSeconds}s`, exemplars: 0, ...seconds(range) }),
    signal,
  );
  return body.series ?? [];
}

export function plainValue(value: AnyValue | undefined): string {
  if (!value) return '';
  if (value.stringValue !== undefined) return value.stringValue;
  if (value.intValue !== undefined) return String(value.intValue);
  if (value.doubleValue !== undefined) return String(value.doubleValue);
  if (value.boolValue !== undefined) return String(value.boolValue);
  if (value.bytesValue !== undefined) return value.bytesValue;
  if (value.arrayValue) return `[${(value.arrayValue.values ?? []).map(plainValue).join(', ')}]`;
  if (value.kvlistValue) return `{${(value.kvlistValue.values ?? []).map((pair) => `${pair.key}: ${plainValue(pair.value)}`).join(', ')}}`;
  return '';
}

/** One matched span of a search answer, with its trace: a row of the slow-spans table, a point of the heatmap. */
export interface SpanRow {
  traceId: string;
  spanId: string;
  service: string;
  name: string;
  startMs: number;
  durationNs: number;
  traceDurationNs: number;
  failed: boolean;
}

export function spanRows(traces: readonly FoundTrace[]): SpanRow[] {
  const rows: SpanRow[] = [];
  for (const trace of traces) {
    const sets = trace.spanSets?.length ? trace.spanSets : trace.spanSet ? [trace.spanSet] : [];
    for (const set of sets) {
      for (const span of set.spans ?? []) {
        const attributes = span.attributes ?? [];
        const attribute = (key: string) => plainValue(attributes.find((pair) => pair.key === key)?.value);
        rows.push({
          traceId: trace.traceID,
          spanId: span.spanID,
          service: attribute('service.name') || trace.rootServiceName || '',
          name: span.name ?? attribute('name') ?? '',
          startMs: nanosTextToMillis(span.startTimeUnixNano),
          durationNs: Number(span.durationNanos),
          // Told in whole milliseconds; no trace is shorter than a span of it.
          traceDurationNs: Math.max(Number(span.durationNanos), (trace.durationMs ?? 0) * 1e6),
          failed: attribute('status') === 'error',
        });
      }
    }
  }
  return rows;
}
