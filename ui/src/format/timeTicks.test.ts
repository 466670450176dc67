import { describe, expect, it } from 'vitest';
import { clockTicks } from './timeTicks';

describe('time ticks', () => {
  it('stand at round times inside the range, never more than wanted', () => {
    for (const minutes of [1, 7, 60, 600, 10_000]) {
      const from = 1_700_000_123_456;
      const to = from + minutes * 60_000;
      const ticks = clockTicks(from, to, 6);
      expect(ticks.length).toBeGreaterThan(0);
      expect(ticks.length).toBeLessThanOrEqual(7);
      for (const tick of ticks) {
        expect(tick.at).toBeGreaterThanOrEqual(from);
        expect(tick.at).toBeLessThanOrEqual(to);
        expect(tick.at % 1000).toBe(0);
      }
    }
  });
});
