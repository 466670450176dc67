import { describe, expect, it } from 'vitest';
import { parseMetrics } from '../../api/prometheus';
import { clockSkews } from '../../waterfall/clockSkew';
import { buildTrace } from '../../waterfall/traceModel';
import { isUnnamed, symbolisedShare } from './coverage';

describe('status', () => {
  it('reads counters with and without labels', () => {
    const text = '# HELP hotspan_refused_requests x\nhotspan_refused_requests_total{signal="traces",reason="too large"} 3\nhotspan_ingest_spans_total 12\n# EOF\n';
    expect(parseMetrics(text)).toEqual([
      { name: 'hotspan_refused_requests_total', labels: { signal: 'traces', reason: 'too large' }, value: 3 },
      { name: 'hotspan_ingest_spans_total', labels: {}, value: 12 },
    ]);
  });

  it('tells names from addresses', () => {
    expect(['libc.so.6!0x891f4', '0x7ffe', '[unknown]'].every(isUnnamed)).toBe(true);
    expect(['main', 'parse0x', 'std::fmt::LowerHex'].some(isUnnamed)).toBe(false);
    expect(symbolisedShare({ flamebearer: { names: ['total', 'main', '0x1f'], levels: [[0, 8, 0, 0], [0, 6, 6, 1, 0, 2, 2, 2]] } })).toBe(0.75);
  });

  it('sees a callee that begins before its caller, and nothing where all is well', () => {
    const traceAt = (calleeFrom: number) => {
      const span = (id: string, parentSpanId: string | undefined, from: number, to: number) => ({ spanId: id, ...(parentSpanId ? { parentSpanId } : {}), name: id, startTimeUnixNano: String(1_700_000_000_000_000_000n + BigInt(from)), endTimeUnixNano: String(1_700_000_000_000_000_000n + BigInt(to)) });
      const of = (service: string, spans: object[]) => ({ resource: { attributes: [{ key: 'service.name', value: { stringValue: service } }] }, scopeSpans: [{ spans }] });
      return buildTrace({ trace: { resourceSpans: [of('web', [span('AAAAAAAAAAE=', undefined, 10e6, 60e6)]), of('tax', [span('AAAAAAAAAAI=', 'AAAAAAAAAAE=', calleeFrom, calleeFrom + 20e6)])] } })!;
    };
    expect(clockSkews(traceAt(20e6))).toEqual([]);
    expect(clockSkews(traceAt(2e6))).toEqual([{ caller: 'web', callee: 'tax', ns: -8e6 }]);
  });
});
