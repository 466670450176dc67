// Counts of spans by time and (logarithmic) latency.
import { roundedDuration } from '../traceql/narrow';
import { type MetricSeries, plainValue, type SpanRow } from '../api/traces';

export interface HeatGrid {
  columns: number;
  /** Lower edges of the latency rows in ns, ascending, and the upper edge of the last. */
  edges: Float64Array;
  fromMs: number;
  toMs: number;
  /** columns × rows, row-major from the lowest latency. */
  counts: Float64Array;
  errors: Float64Array;
  most: number;
  total: number;
  /** True when counted from a capped list of spans and not from all of them. */
  sampled: boolean;
  /** Rows of equal value instead of equal ratio. */
  isLinear?: boolean;
}

function emptyGrid(columns: number, edges: Float64Array, fromMs: number, toMs: number, sampled: boolean): HeatGrid {
  const cells = columns * (edges.length - 1);
  return { columns, edges, fromMs, toMs, counts: new Float64Array(cells), errors: new Float64Array(cells), most: 0, total: 0, sampled };
}

function finish(grid: HeatGrid): HeatGrid {
  grid.most = grid.counts.reduce((most, count) => Math.max(most, count), 0);
  grid.total = grid.counts.reduce((sum, count) => sum + count, 0);
  return grid;
}

/** Rows of equal height on a log scale that hold everything between the extremes. */
export function logEdges(leastNs: number, mostNs: number, rows: number): Float64Array {
  const low = Math.log(Math.max(1, leastNs * 0.95));
  const high = Math.log(Math.max(leastNs * 2, mostNs * 1.05, 2));
  return Float64Array.from({ length: rows + 1 }, (_, row) => Math.exp(low + ((high - low) * row) / rows));
}

export function gridOfSpans(spans: readonly SpanRow[], fromMs: number, toMs: number, columns: number, rows: number): HeatGrid {
  let least = Infinity;
  let most = 0;
  for (const span of spans) {
    least = Math.min(least, Math.max(1, span.durationNs));
    most = Math.max(most, span.durationNs);
  }
  const grid = emptyGrid(columns, logEdges(Number.isFinite(least) ? least : 1e6, most || 1e9, rows), fromMs, toMs, true);
  for (const span of spans) {
    const column = Math.floor(((span.startMs - fromMs) / (toMs - fromMs)) * columns);
    const row = rowOf(grid, span.durationNs);
    if (column < 0 || column >= columns || row < 0) continue;
    grid.counts[row * columns + column]!++;
    if (span.failed) grid.errors[row * columns + column]!++;
  }
  return finish(grid);
}

export function rowOf(grid: HeatGrid, durationNs: number): number {
  for (let row = 0; row < grid.edges.length - 1; row++) if (durationNs < grid.edges[row + 1]!) return durationNs >= grid.edges[0]! ? row : -1;
  return -1;
}

function bucketsOf(series: readonly MetricSeries[]): { upperNs: number; samples: NonNullable<MetricSeries['samples']> }[] {
  return series
    .map((line) => ({ upperNs: Number(plainValue(line.labels?.find((label) => label.key === '__bucket')?.value)) * 1e9, samples: line.samples ?? [] }))
    .filter((bucket) => bucket.upperNs > 0)
    .sort((a, b) => a.upperNs - b.upperNs);
}

/** From `histogram_over_time(duration)`: one series per bucket, labelled by its upper edge in seconds; and the same of failed spans. */
export function gridOfHistogram(series: readonly MetricSeries[], failures: readonly MetricSeries[], fromMs: number, toMs: number, columns: number): HeatGrid | null {
  const buckets = bucketsOf(series);
  if (buckets.length === 0) return null;
  // Buckets are powers of two; missing ones in between must not squeeze the scale.
  const steps = Math.max(1, Math.round(Math.log2(buckets.at(-1)!.upperNs / buckets[0]!.upperNs)));
  const edges = Float64Array.from({ length: steps + 2 }, (_, row) => (buckets[0]!.upperNs / 2) * 2 ** row);
  const grid = emptyGrid(columns, edges, fromMs, toMs, false);
  const fill = (cells: Float64Array, counted: typeof buckets) => {
    for (const bucket of counted) {
      const row = Math.round(Math.log2(bucket.upperNs / buckets[0]!.upperNs));
      if (row < 0 || row > steps) continue;
      for (const sample of bucket.samples) {
        // Labelled by the right edge of its step.
        const column = Math.min(columns - 1, Math.floor(((Number(sample.timestampMs) - 1 - fromMs) / (toMs - fromMs)) * columns));
        if (column >= 0) cells[row * columns + column]! += sample.value ?? 0;
      }
    }
  };
  fill(grid.counts, buckets);
  fill(grid.errors, bucketsOf(failures));
  return finish(grid);
}

/** The lowest edge that at most so many lie above: where "the slowest" begin. Null if the topmost row alone holds more. */
export function slowestEdge(grid: HeatGrid, most: number): number | null {
  let above = 0;
  for (let row = grid.edges.length - 2; row >= 0; row--) {
    for (let column = 0; column < grid.columns; column++) above += grid.counts[row * grid.columns + column]!;
    if (above > most) return row === grid.edges.length - 2 ? null : grid.edges[row + 1]!;
  }
  return grid.edges[0]!;
}

/** From Pyroscope's heatmap: slots of counts over buckets of equal width, each slot labelled by its right edge. */
export function gridOfSlots(slots: readonly { timestamp: number; yMin: readonly number[]; counts: readonly number[] }[], fromMs: number, toMs: number, columns: number): HeatGrid | null {
  const lows = [...new Set(slots.flatMap((slot) => [...slot.yMin]))].sort((a, b) => a - b);
  if (lows.length === 0) return null;
  let width = Infinity;
  for (let i = 1; i < lows.length; i++) width = Math.min(width, lows[i]! - lows[i - 1]!);
  if (!Number.isFinite(width) || width <= 0) width = Math.max(1, lows[0]! * 0.1);
  const rows = Math.min(64, Math.round((lows.at(-1)! - lows[0]!) / width) + 1);
  const edges = Float64Array.from({ length: rows + 1 }, (_, row) => lows[0]! + row * width);
  const grid = { ...emptyGrid(columns, edges, fromMs, toMs, false), isLinear: true };
  for (const slot of slots) {
    const column = Math.min(columns - 1, Math.floor(((slot.timestamp - 1 - fromMs) / (toMs - fromMs)) * columns));
    if (column < 0) continue;
    slot.yMin.forEach((low, index) => {
      const row = Math.min(rows - 1, Math.round((low - lows[0]!) / width));
      grid.counts[row * columns + column]! += slot.counts[index] ?? 0;
    });
  }
  return finish(grid);
}

export interface HeatBox {
  fromMs: number;
  toMs: number;
  lowNs: number;
  highNs: number;
}

export function countIn(grid: HeatGrid, box: HeatBox): number {
  let count = 0;
  const rows = grid.edges.length - 1;
  for (let row = 0; row < rows; row++) {
    const middle = Math.sqrt(grid.edges[row]! * grid.edges[row + 1]!);
    if (middle < box.lowNs || middle > box.highNs) continue;
    for (let column = 0; column < grid.columns; column++) {
      const at = grid.fromMs + ((column + 0.5) / grid.columns) * (grid.toMs - grid.fromMs);
      if (at >= box.fromMs && at <= box.toMs) count += grid.counts[row * grid.columns + column]!;
    }
  }
  return count;
}

/** First and last moment that holds anything; null for an empty grid. */
export function extentOf(grid: HeatGrid): { fromMs: number; toMs: number } | null {
  let first = grid.columns;
  let last = -1;
  for (let cell = 0; cell < grid.counts.length; cell++) {
    if (grid.counts[cell] === 0) continue;
    first = Math.min(first, cell % grid.columns);
    last = Math.max(last, cell % grid.columns);
  }
  if (last < 0) return null;
  const step = (grid.toMs - grid.fromMs) / grid.columns;
  return { fromMs: grid.fromMs + first * step, toMs: grid.fromMs + (last + 1) * step };
}

/** `from|to|low|high`, for the URL. */
export function formatBox(box: HeatBox): string {
  return [Math.round(box.fromMs), Math.round(box.toMs), Math.round(box.lowNs), Math.round(box.highNs)].join('|');
}

/** Its latencies are those that a question can name, so that what is counted in the box and what is asked for are the same spans. */
export function parseBox(text: string): HeatBox | null {
  const [fromMs, toMs, low, high] = text.split('|').map(Number);
  const [lowNs, highNs] = [roundedDuration(low!), roundedDuration(high!)];
  return text && fromMs! < toMs! && lowNs < highNs ? { fromMs: fromMs!, toMs: toMs!, lowNs, highNs } : null;
}
