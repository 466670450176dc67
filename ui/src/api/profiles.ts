// Pyroscope's querier and Hotspan's own profile endpoints. Flame graphs come back as bytes: the flame worker decodes them.
import type { ResolvedRange } from '../location/timeRange';
import type { Exactness } from './evidence';
import { address, getBytes, getJson, postJson } from './request';

const querier = (method: string) => address(`/querier.v1.QuerierService/${method}`);

export interface ProfileType {
  ID: string;
  name?: string;
  sampleType?: string;
  sampleUnit?: string;
}

export async function readProfileTypes(range: ResolvedRange, signal: AbortSignal): Promise<ProfileType[]> {
  const body = await postJson<{ profileTypes?: ProfileType[] }>(querier('ProfileTypes'), { start: range.fromMs, end: range.toMs }, signal);
  return body.profileTypes ?? [];
}

export async function readLabelNames(matchers: string[], range: ResolvedRange, signal: AbortSignal): Promise<string[]> {
  const body = await postJson<{ names?: string[] }>(querier('LabelNames'), { matchers, start: range.fromMs, end: range.toMs }, signal);
  return (body.names ?? []).filter((name) => !name.startsWith('__'));
}

export async function readLabelValues(name: string, matchers: string[], range: ResolvedRange, signal: AbortSignal): Promise<string[]> {
  const body = await postJson<{ names?: string[] }>(querier('LabelValues'), { name, matchers, start: range.fromMs, end: range.toMs }, signal);
  return body.names ?? [];
}

export interface ValueSeries {
  labels?: { name: string; value: string }[];
  points?: { timestamp: string | number; value: number }[];
}

export async function selectSeries(
  typeId: string,
  selector: string,
  range: ResolvedRange,
  stepSeconds: number,
  groupBy: string[],
  signal: AbortSignal,
): Promise<ValueSeries[]> {
  const body = await postJson<{ series?: ValueSeries[] }>(
    querier('SelectSeries'),
    { profileTypeID: typeId, labelSelector: selector, start: range.fromMs, end: range.toMs, step: stepSeconds, groupBy, limit: 20 },
    signal,
  );
  return body.series ?? [];
}

/** First and last moment that holds anything; points stand at the end of their step. */
export function extentOfSeries(series: readonly ValueSeries[], stepSeconds: number): ResolvedRange | null {
  const times = series.flatMap((line) => (line.points ?? []).filter((point) => point.value > 0).map((point) => Number(point.timestamp)));
  return times.length > 0 ? { fromMs: Math.min(...times) - stepSeconds * 1000, toMs: Math.max(...times) } : null;
}

export interface HeatmapExemplar {
  timestamp?: string | number;
  traceId?: string;
  spanId?: string;
  value?: string | number;
}

export interface HeatmapSlots {
  slots: { timestamp: number; yMin: number[]; counts: number[] }[];
  exemplars: HeatmapExemplar[];
}

/** How much of a profile's value single spans took, over time. */
export async function selectSpanHeatmap(typeId: string, selector: string, range: ResolvedRange, stepSeconds: number, signal: AbortSignal): Promise<HeatmapSlots> {
  type RawSlot = { timestamp?: string | number; yMin?: (string | number)[]; counts?: (string | number)[]; exemplars?: HeatmapExemplar[] };
  const body = await postJson<{ series?: { slots?: RawSlot[] }[] }>(
    querier('SelectHeatmap'),
    { profileTypeID: typeId, labelSelector: selector, start: Math.floor(range.fromMs), end: Math.ceil(range.toMs), step: stepSeconds, queryType: 'HEATMAP_QUERY_TYPE_SPAN', exemplarType: 'EXEMPLAR_TYPE_SPAN' },
    signal,
  );
  const slots = (body.series ?? []).flatMap((series) => series.slots ?? []);
  return {
    slots: slots.map((slot) => ({ timestamp: Number(slot.timestamp ?? 0), yMin: (slot.yMin ?? []).map(Number), counts: (slot.counts ?? []).map(Number) })),
    exemplars: slots.flatMap((slot) => slot.exemplars ?? []).sort((a, b) => Number(b.value ?? 0) - Number(a.value ?? 0)),
  };
}

export interface StackSelection {
  typeId: string;
  selector: string;
  range: ResolvedRange;
}

const selectionAddress = ({ typeId, selector, range }: StackSelection, more: Record<string, string | number>): string =>
  address('/api/v1/profile', { labels: selector, type: typeId, from: Math.floor(range.fromMs), until: Math.ceil(range.toMs), ...more });

export function selectFlame(selection: StackSelection, maxNodes: number, signal: AbortSignal): Promise<ArrayBuffer> {
  return getBytes(selectionAddress(selection, { format: 'packed', max_nodes: maxNodes }), signal);
}

export function selectionPprof(selection: StackSelection, signal: AbortSignal): Promise<ArrayBuffer> {
  return getBytes(selectionAddress(selection, { format: 'pprof' }), signal);
}

export function selectDiff(left: StackSelection, right: StackSelection, maxNodes: number, signal: AbortSignal): Promise<ArrayBuffer> {
  const side = (name: string, { typeId, selector, range }: StackSelection) => ({
    [name]: `${typeId}${selector}`,
    [`${name}_from`]: Math.floor(range.fromMs),
    [`${name}_until`]: Math.ceil(range.toMs),
  });
  return getBytes(address('/api/v1/diff', { ...side('baseline', left), ...side('comparison', right), per: 'none', format: 'json', limit: 0, max_nodes: maxNodes }), signal);
}

export type Scope = 'span' | 'subtree' | 'trace' | 'process';

export interface ProfileQuestion {
  app?: string;
  trace_id?: string;
  span_id?: string;
  type: string;
  scope?: Scope;
  from?: number;
  until?: number;
  max_nodes?: number;
}

export function readProfile(question: ProfileQuestion, signal: AbortSignal, format: 'json' | 'pprof' = 'json'): Promise<ArrayBuffer> {
  return getBytes(address('/api/v1/profile', { ...question, format }), signal);
}

const SAMPLE_PAGE = 10_000;
/** More than this no screen tells apart; what is left out is told. */
const MOST_SAMPLES = 100_000;

/** Samples with their time and thread, of the whole trace or of those spans of it that are wanted. */
export async function readTimedSamples(traceId: string, spans: ReadonlySet<string> | null, type: string, signal: AbortSignal): Promise<ArrayBuffer> {
  const samples: { span_id?: string }[] = [];
  let total = 0;
  let dropped: number | undefined;
  let offset: number | null = 0;
  while (offset !== null && offset < MOST_SAMPLES) {
    const only: string | null = spans?.size === 1 ? [...spans][0]! : null;
    const page: { samples?: { span_id?: string }[]; next_offset?: number | null; total?: number; exactness?: Exactness } = await getJson(address('/api/v1/profiles', { trace_id: traceId, span_id: only, type, limit: SAMPLE_PAGE, offset }), signal);
    for (const sample of page.samples ?? []) if (!spans || spans.has(sample.span_id ?? '')) samples.push(sample);
    total = page.total ?? samples.length;
    dropped = page.exactness?.dropped;
    offset = page.next_offset ?? null;
  }
  const exactness: Exactness = { samples: samples.length, dropped, ...(offset === null ? {} : { samples_left_out: total - offset }) };
  return new TextEncoder().encode(JSON.stringify({ samples, exactness })).buffer;
}

export interface SpanProfileFacts {
  cpu_ns?: number;
  wait_ns?: number;
  samples?: number;
}

export async function readTraceProfileSummary(traceId: string, signal: AbortSignal): Promise<Record<string, SpanProfileFacts>> {
  const body = await getJson<{ spans?: Record<string, SpanProfileFacts> }>(address(`/api/v1/trace/${traceId}/profile-summary`), signal);
  return body.spans ?? {};
}

export interface FunctionSpans {
  function?: string;
  /** All time in it, and how much of that belongs to no span. */
  value?: number;
  unlinked_value?: number;
  /** More than are listed, usually. */
  span_count?: number;
  operations?: { service: string; operation: string; value?: number; spans?: number; samples?: number; traces?: string[] }[];
  spans?: { trace_id: string; span_id: string; service?: string; name?: string; duration_ns?: number; value?: number; samples?: number; start_ns?: string | number }[];
}

export function readSpansOfFunction(name: string, range: ResolvedRange, signal: AbortSignal): Promise<FunctionSpans> {
  return getJson(address('/api/v1/functions/spans', { function: name, start: Math.floor(range.fromMs / 1000), end: Math.ceil(range.toMs / 1000) }), signal);
}

export interface SourceExcerpt {
  file: string;
  /** Number of the first line given. */
  first_line: number;
  lines: string[];
  /** Where the line can be read in a browser. */
  url?: string;
}

export function readSource(file: string, line: number, signal: AbortSignal): Promise<SourceExcerpt> {
  return getJson(address('/api/v1/source', { file, line, context: 20 }), signal);
}
