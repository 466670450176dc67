// Coverage is a share of two different things, and must not be mistaken; other facts are told as the server sends them.
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

  it('tells that a time range was widened, which the server says by yes or no', () => {
    const rounded = (rounded_edges: boolean) => evidenceFacts({ rounded_edges }).find((fact) => fact.id === 'rounded');
    expect(rounded(true)).toMatchObject({ text: 'rounded', label: 'time range' });
    expect(rounded(false)).toBeUndefined();
  });

  it('tells of how many snapshots a sum is', () => {
    const summed = (evidence: Parameters<typeof evidenceFacts>[0]) => evidenceFacts(evidence).find((fact) => fact.id === 'summed');
    expect(summed({ samples: 90, snapshots_summed: 3 })).toMatchObject({ text: '3', label: 'profiles summed' });
    expect(summed({ samples: 90 })).toBeUndefined();
  });

  it('says nothing where nobody knows', () => {
    expect(coverage({ samples: 9 })).toBeUndefined();
  });
});
