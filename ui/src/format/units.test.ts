import { describe, expect, it } from 'vitest';
import { formatBytes, formatCount, formatDuration, formatRate, formatShare, formatSigned, formatValue, rateUnitFor } from './units';

describe('units', () => {
  it('says numbers as people say them', () => {
    expect([1.9e9, 214e6, 12e3, 999.96e6, 0, 3600e9, 1].map(formatDuration)).toEqual(['1.9 s', '214 ms', '12 µs', '1 s', '0 s', '1 h', '1 ns']);
    expect([1.2e9, 76e6, 45].map(formatBytes)).toEqual(['1.2 GB', '76 MB', '45 B']);
    expect([18402, 2_500_000].map(formatCount)).toEqual(['18,402', '2.5 M']);
    expect([0.956, 0.00001, 0, 1].map(formatShare)).toEqual(['95.6 %', '< 0.01 %', '0 %', '100 %']);
    expect([12.14, 0.01, 1200].map((rate) => formatRate(rate))).toEqual(['12.1/s', '0.6/min', '1.2 k/s']);
    expect(formatRate(0.2, rateUnitFor([0.2, 7]))).toBe('0.2/s');
    expect(formatRate(0.2, rateUnitFor([0.2, 0.01]))).toBe('12/min');
    expect(formatSigned(-2e6, formatDuration)).toBe('−2 ms');
    expect(formatValue(7, 'objects')).toBe('7 objects');
  });
});
