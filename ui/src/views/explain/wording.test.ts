import { describe, expect, it } from 'vitest';
import type { Cause, Explanation, SideSummary } from '../../api/explain';
import { detailsOf, operationOf, placeOf, sideNames, sidesOf } from './wording';

const cause: Cause = {
  kind: 'cpu', service: 'tax', operation: 'calculateTax', function: 'lookupTaxRate', file: 'shop/tax.go', line: 112, slow_ms: 1950, fast_ms: 48, delta_ms: 1902,
  interval_ms: [1804, 2000], share: 0.95, spans: 9, samples: 17, traces: [], link: '', sentence: '',
};
const side = (spans: number, mean_ms: number): SideSummary => ({ spans, with_samples: spans, samples: 10, mean_ms, p50_ms: mean_ms, p95_ms: mean_ms, p99_ms: mean_ms });

describe('wording of explanations', () => {
  it('names the file without its folder, and the line where there is one', () => {
    expect(placeOf(cause)).toBe('tax.go:112');
    expect(placeOf({ ...cause, line: null })).toBe('tax.go');
    expect(placeOf({ ...cause, file: null })).toBe('');
  });
  it('says which requests have it, and how often it is called', () => {
    const details = detailsOf({
      ...cause,
      calls: { slow: 40, fast: 2, more_calls_ms: 380, slower_calls_ms: 20, failed_share: 0 },
      where: [{ attribute: 'customer', value: 'acme', slow: 0.9, fast: 0.1 }, { attribute: 'cart.items', slow: 44, fast: 3 }, { attribute: 'cents', slow: 225051.7, fast: 83.3 }],
    });
    expect(details).toEqual([
      '40.0 calls a request instead of 2.0: 380 ms by more calls, 20 ms by slower ones.',
      'customer = acme in 90 % of slow and 10 % of fast requests.',
      'cart.items is 44.0 on average instead of 3.0.',
      'cents is 225,052 on average instead of 83.3.',
    ]);
  });
  it('says what a function waited for a CPU, where that is worth a word', () => {
    expect(detailsOf({ ...cause, waiting_for_cpu_ms: 1000 })).toEqual(['1 s of it without a CPU: others kept the machine busy.']);
    expect(detailsOf({ ...cause, waiting_for_cpu_ms: 3 })).toEqual([]);
  });
  it('names the callee of a call', () => {
    expect(operationOf({ service: 'checkout', operation: 'POST', callee: 'tax' })).toBe('checkout POST → tax');
    expect(operationOf(cause)).toBe('tax calculateTax');
  });
  it('says who is compared with whom', () => {
    const explanation = { slow: side(1, 1900), fast: side(214, 150) } as Explanation;
    expect(sidesOf(explanation, '')).toBe('1 request at 1.9 s against 214 at 150 ms on average, of the same operation around its median.');
    const comparison = { change: 'faster' as const, before: side(40, 900), after: side(30, 100), delta_ms: -800, interval_ms: [-850, -750] as [number, number], functions: [] };
    expect(sidesOf({ ...explanation, fast: side(0, 0) }, '')).toBe('1 request at 1.9 s; there are none of the same operation to compare with.');
    expect(sidesOf({ ...explanation, comparison }, '')).toBe('40 requests before the change, 30 requests after it.');
    expect(sideNames({})).toEqual(['slow', 'fast']);
    expect(sideNames({ comparison })).toEqual(['before', 'after']);
    expect(sideNames({ comparison: { ...comparison, change: 'slower' } })).toEqual(['after', 'before']);
    const where = [{ attribute: 'customer', value: 'acme', slow: 0.9, fast: 0.1 }];
    expect(detailsOf({ ...cause, where }, sideNames({ comparison }))).toEqual(['customer = acme in 90 % of requests before it and 10 % of those after it.']);
  });
});
