import { describe, expect, it } from 'vitest';
import { durationLiteral } from '../traceql/narrow';
import { countIn, extentOf, formatBox, gridOfHistogram, gridOfSlots, gridOfSpans, parseBox, slowestEdge } from './grid';

describe('heatmap', () => {
  it('counts every span once, and the same in its box', () => {
    const spans = Array.from({ length: 100 }, (_, i) => ({ traceId: '', spanId: '', service: '', name: '', startMs: i * 10, durationNs: 1e6 * (1 + i), traceDurationNs: 0, failed: i === 3 }));
    const grid = gridOfSpans(spans, 0, 1000, 20, 12);
    expect(grid.total).toBe(100);
    expect(grid.errors.reduce((sum, count) => sum + count, 0)).toBe(1);
    expect(countIn(grid, { fromMs: 0, toMs: 1000, lowNs: 1, highNs: 1e12 })).toBe(100);
    const box = { fromMs: 5, toMs: 10, lowNs: 100, highNs: 200 };
    expect(parseBox(formatBox(box))).toEqual(box);
    expect(parseBox('')).toBeNull();
    expect(extentOf(gridOfSpans(spans.slice(40, 60), 0, 1000, 20, 12))).toEqual({ fromMs: 400, toMs: 600 });
    expect(extentOf(gridOfSpans([], 0, 1000, 20, 12))).toBeNull();
  });

  it('has boxes with the latencies that a question names', () => {
    const { lowNs, highNs } = parseBox('0|10|123456789|1987654321')!;
    expect([lowNs, highNs]).toEqual([123e6, 1.99e9]);
    expect([lowNs, highNs].map(durationLiteral)).toEqual(['123ms', '1.99s']);
  });

  it('reads buckets of powers of two, with gaps', () => {
    const line = (seconds: number, values: number[]) => ({ labels: [{ key: '__bucket', value: { doubleValue: seconds } }], samples: values.map((value, i) => ({ timestampMs: String((i + 1) * 100), value })) });
    const grid = gridOfHistogram([line(0.128, [1, 2]), line(1.024, [3, 0])], [line(1.024, [1, 0])], 0, 200, 2)!;
    expect(grid.edges.length - 1).toBe(4);
    expect(grid.total).toBe(6);
    expect(grid.counts[0]).toBe(1);
    expect(grid.counts[3 * 2]).toBe(3);
    expect([...grid.errors]).toEqual([0, 0, 0, 0, 0, 0, 1, 0]);
    expect([2, 3, 5, 6].map((most) => slowestEdge(grid, most))).toEqual([null, 0.128e9, 0.128e9, 0.064e9]);
  });

  it('reads slots over buckets of equal width, and keeps every count', () => {
    const grid = gridOfSlots([{ timestamp: 100, yMin: [0, 20, 40], counts: [5, 0, 1] }, { timestamp: 200, yMin: [20], counts: [3] }], 0, 200, 2)!;
    expect([...grid.edges]).toEqual([0, 20, 40, 60]);
    expect([...grid.counts]).toEqual([5, 0, 0, 3, 1, 0]);
    expect(grid.total).toBe(9);
    expect(gridOfSlots([], 0, 1, 2)).toBeNull();
  });
});
