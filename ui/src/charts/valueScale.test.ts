import { describe, expect, it } from 'vitest';
import { valueScale } from './valueScale';

describe('scale of values', () => {
  it('ends at a round number that holds the highest value', () => {
    expect(valueScale(8.59, 4)).toEqual({ top: 10, ticks: [0, 2.5, 5, 7.5, 10] });
    expect(valueScale(0.27e9, 2)).toEqual({ top: 0.4e9, ticks: [0, 0.2e9, 0.4e9] });
    expect(valueScale(100, 2)).toEqual({ top: 100, ticks: [0, 50, 100] });
  });
  it('takes no more steps than asked for, whatever the size', () => {
    for (let exponent = -9; exponent < 15; exponent++) {
      for (const digits of [1, 1.01, 3.3, 4.99, 9.99]) {
        const highest = digits * 10 ** exponent;
        const { top, ticks } = valueScale(highest, 3);
        expect(top).toBeGreaterThanOrEqual(highest * (1 - 1e-6));
        expect(ticks.length).toBeLessThanOrEqual(4);
      }
    }
  });
  it('has only a zero where there is nothing', () => {
    expect(valueScale(0, 3).ticks).toEqual([0]);
    expect(valueScale(-Infinity, 3).ticks).toEqual([0]);
  });
});
