// Coverage is a share of two different things, and must not be mistaken.
import { describe, expect, it } from 'vitest';
import { evidenceFacts } from './evidenceFacts';

describe('evidenceFacts', () => {
  const coverage = (evidence: Parameters<typeof evidenceFacts>[0]) => evidenceFacts(evidence).find((fact) => fact.id === 'coverage');

  it('tells the profiled part of a time range, and warns where most of it is missing', () => {
    expect(coverage({ coverage: 0.25, coverage_of: 'range' })).toMatchObject({ text: '25 %', label: 'of this time profiled', warned: true });
    expect(coverage({ coverage: 0.9, coverage_of: 'range' })).toMatchObject({ warned: false });
  });

  it('tells the sampled part of the time of spans', () => {
    expect(coverage({ coverage: 0.25, coverage_of: 'spans' })).toMatchObject({ text: '25 %', label: 'of their time sampled' });
    expect(coverage({ coverage: 0.25, coverage_of: 'spans' })?.warned).toBeUndefined();
  });

  it('says nothing where nobody knows', () => {
    expect(coverage({ samples: 9 })).toBeUndefined();
  });
});
