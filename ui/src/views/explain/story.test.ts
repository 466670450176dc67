import { describe, expect, it } from 'vitest';
import { effectOf, toMarkdown, verdictText } from './story';

describe('explanations', () => {
  const cause = { kind: 'cpu', service: 'tax', operation: 'calculateTax', function: 'lookupTaxRate', file: 'shop/tax.go', line: 112, slow_ms: 1950, fast_ms: 48, delta_ms: 1902, interval_ms: [1804, 2000] as [number, number], share: 0.95, samples: 17 };
  it('tells the same story on the page and in the ticket', () => {
    expect(effectOf(cause)).toBe('adds 1.9 s ± 98 ms to each slow tax calculateTax, 95 % of the difference');
    const found = { verdict: 'found', causes: [cause] };
    expect(verdictText(found)).toContain('lookupTaxRate (tax.go:112) adds 1.9 s');
    expect(toMarkdown(found, '{}', 'http://x')).toContain(verdictText(found));
    expect(verdictText({ verdict: 'not_enough_data', causes: [] })).toMatch(/Too little/);
  });
});
