import { describe, expect, it } from 'vitest';
import { highestOf, inWords, pathOf, stepAt, stepStart } from './sparkShape';

const line = (label: string, values: (number | null)[]) => ({ label, values, colour: '' });

describe('small plots', () => {
  it('put zero on the floor and the highest value of any line on top', () => {
    const lines = [line('P50', [1, 2]), line('P99', [4, 10])];
    expect(highestOf(lines)).toBe(10);
    expect(pathOf([0, 10], 10, { width: 12, height: 20 })).toBe('M1.0 18.0L11.0 2.0');
  });
  it('break where nothing is known, and show a lone step as a dash', () => {
    expect(pathOf([5, null, 5, null, 5, 5], 5, { width: 12, height: 4 })).toBe('M1.0 2.0m-1 0h2M5.0 2.0m-1 0h2M9.0 2.0L11.0 2.0');
    expect(pathOf([0, 0], 0, { width: 12, height: 4 })).toBe('M1.0 2.0L11.0 2.0');
  });
  it('know the step under the pointer and when it began', () => {
    expect([-5, 1, 30, 59, 90].map((x) => stepAt(x, 60, 60))).toEqual([0, 0, 30, 59, 59]);
    expect(stepStart({ fromMs: 1000, toMs: 61_000 }, 59, 60)).toBe(60_000);
  });
  it('say in words how high each line goes', () => {
    const words = inWords('Latency', [line('P50', [1, null]), line('P99', [3, 7])], (value) => `${value} ms`, null);
    expect(words).toBe('Latency over time: P50 at most 1 ms, P99 at most 7 ms');
    expect(inWords('Failures', [line('failed', [null])], String, null)).toBe('Failures over time: nothing');
  });
});
