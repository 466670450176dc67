import { describe, expect, it } from 'vitest';
import { clockTime, nanosTextToMillis, utc } from '../format/clock';
import { resolveRange, shiftRange } from './timeRange';
import { formatFragment, parseFragment, travellingParams } from './urlState';

describe('URL state', () => {
  it('survives the round trip, whatever stands in it', () => {
    const params = { q: '{ name = "a&b" && .x =~ `c?d#e` }', fn: 'std::vec<T, A>::push', from: 'now-1h', tf: 'focus:a/b.(*C).d~hide-runtime' };
    const fragment = formatFragment(['trace', 'ab/cd'], params);
    expect(parseFragment(fragment)).toEqual({ path: ['trace', 'ab/cd'], params });
    expect(formatFragment(['traces'], { b: '2', a: '1', empty: '', gone: null })).toBe('#/traces?a=1&b=2');
    expect(parseFragment('')).toEqual({ path: [], params: {} });
    expect(parseFragment('#/trace/%E0%A4%A').path).toEqual(['trace', '%E0%A4%A']);
  });

  it('carries time and service to the next view, and nothing else', () => {
    expect(travellingParams({ from: '1', to: '2', service: 'shop', zoom: 'ff' })).toEqual({ from: '1', to: '2', service: 'shop' });
  });
});

describe('time ranges', () => {
  const now = 1_700_000_000_000;
  it('resolves relative and absolute ends, and shifts by half a window', () => {
    expect(resolveRange({ from: 'now-15m', to: 'now' }, now)).toEqual({ fromMs: now - 900_000, toMs: now });
    expect(resolveRange({ from: '5', to: '3' }, now).toMs).toBe(now);
    expect(shiftRange({ from: 'now-1h', to: 'now' }, -1, now)).toEqual({ from: String(now - 5_400_000), to: String(now - 1_800_000) });
  });
  it('keeps milliseconds of nanosecond texts', () => {
    expect(nanosTextToMillis('1700000000123456789')).toBeCloseTo(1_700_000_000_123.457, 2);
    expect(utc(0)).toBe('1970-01-01 00:00:00.000 UTC');
    expect(clockTime(0)).toMatch(/\d\d:\d\d:\d\d/);
  });
});
