import { describe, expect, it } from 'vitest';
import { seriesNames } from './seriesNames';

const line = (service: string, p: number) => ({ labels: [{ key: 'resource.service.name', value: { stringValue: service } }, { key: 'p', value: { doubleValue: p } }] });

describe('names of lines', () => {
  it('leave out what all of them share', () => {
    expect(seriesNames([line('tax', 0.99), line('web', 0.99)])).toEqual(['tax', 'web']);
    expect(seriesNames([line('tax', 0.999), line('tax', 0.5)])).toEqual(['P99.9', 'P50']);
  });
  it('are whole for one line, and never empty', () => {
    expect(seriesNames([line('tax', 0.99)])).toEqual(['tax P99']);
    expect(seriesNames([{ labels: [] }])).toEqual(['all']);
  });
});
