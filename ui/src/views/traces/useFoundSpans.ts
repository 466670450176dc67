// What a question finds: the heatmap of all, and the list of those that matter. Where more match than a list holds, it holds the
// slowest, or those in the box, and never just the newest.
import { useMemo } from 'react';
import { cohortTraces, type TraceCost } from '../../api/cohort';
import { queryMetricRange, type SpanRow } from '../../api/traces';
import { type Answer, useAnswer } from '../../api/useAnswer';
import { gridOfHistogram, gridOfSpans, type HeatBox, type HeatGrid, slowestEdge } from '../../heatmap/grid';
import type { ResolvedRange } from '../../location/timeRange';
import { durationLiteral, narrow } from '../../traceql/narrow';
import { searchSpans } from './searchSpans';

const COLUMNS = 60;
const ROWS = 24;
export const LIMIT = 1000;

export interface FoundSpans {
  /** Null until something is here. */
  rows: readonly SpanRow[] | null;
  /** Which of those that match stand in the list. */
  listed: 'all' | 'slowest' | 'in the box' | 'newest';
  grid: HeatGrid | null;
  /** By trace; null until known. */
  costs: Readonly<Record<string, TraceCost>> | null;
  answer: Answer<unknown>;
}

export function stepSeconds(range: ResolvedRange): number {
  return Math.max(1, Math.round((range.toMs - range.fromMs) / 1000 / COLUMNS));
}

/** The box as conditions of the question. */
export function inBox(query: string, box: HeatBox): string {
  return narrow(query, `duration >= ${durationLiteral(box.lowNs)} && duration <= ${durationLiteral(box.highNs)}`);
}

const isInside = (row: SpanRow, box: HeatBox) => row.startMs >= box.fromMs && row.startMs < box.toMs && row.durationNs >= box.lowNs && row.durationNs <= box.highNs;

/** A null question asks nothing. */
export function useFoundSpans(query: string | null, range: ResolvedRange, box: HeatBox | null): FoundSpans {
  const when = `${range.fromMs}|${range.toMs}`;
  const newest = useAnswer(query && `${query}|${when}`, (signal) => searchSpans(query!, range, LIMIT, signal));
  const isAll = newest.value !== null && newest.value.length < LIMIT;
  const isMore = newest.value !== null && !isAll;
  const histogramOf = (of: string, signal: AbortSignal) => queryMetricRange(`${of} | histogram_over_time(duration)`, range, stepSeconds(range), signal);
  const histogram = useAnswer(query && `histogram|${query}|${when}`, (signal) => histogramOf(query!, signal));
  const failures = useAnswer(query && isMore ? `failures|${query}|${when}` : null, (signal) => histogramOf(narrow(query!, 'status = error'), signal));
  const grid = useMemo(() => {
    // Powers of two are coarse: where the list is complete, counting it shows more.
    if (newest.value && (isAll || !histogram.value)) return gridOfSpans(newest.value, range.fromMs, range.toMs, COLUMNS, ROWS);
    return histogram.value ? gridOfHistogram(histogram.value, failures.value ?? [], range.fromMs, range.toMs, COLUMNS) : null;
  }, [newest.value, isAll, histogram.value, failures.value, range]);

  const edge = useMemo(() => (isMore && grid && !grid.sampled ? slowestEdge(grid, LIMIT) : null), [isMore, grid]);
  const [closer, closerRange] = !isMore ? [null, range] : box ? [inBox(query!, box), box] : edge ? [narrow(query!, `duration >= ${durationLiteral(edge)}`), range] : [null, range];
  const focused = useAnswer(closer && `${closer}|${closerRange.fromMs}|${closerRange.toMs}`, (signal) => searchSpans(closer!, closerRange, LIMIT, signal));
  const rows = useMemo(() => {
    const known = focused.value ?? newest.value;
    return known && box ? known.filter((row) => isInside(row, box)) : known;
  }, [focused.value, newest.value, box]);

  const listQuery = closer ?? query;
  const costs = useAnswer(rows && rows.length > 0 ? `costs|${listQuery}|${closerRange.fromMs}|${closerRange.toMs}` : null, (signal) => cohortTraces({ query: listQuery!, type: 'cpu', range: closerRange }, signal));
  const listed = isAll ? 'all' : !focused.value ? 'newest' : box ? 'in the box' : 'slowest';
  return { rows, listed, grid, costs: costs.value ?? (costs.error ? {} : null), answer: newest.loading || newest.error ? newest : closer ? focused : newest };
}
