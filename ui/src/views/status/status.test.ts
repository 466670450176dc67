import { describe, expect, it } from 'vitest';
import { parseMetrics } from '../../api/prometheus';
import { storedTime } from '../../api/status';
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

describe('what is stored', () => {
  const table = (name: string, rows: number, fromMs: number, toMs: number) => ({ table: name, level: 0, segments: 1, rows, bytes: 1, min_time: fromMs * 1e6, max_time: toMs * 1e6 });
  it('reaches from the first row of any level to the last', () => {
    const tables = [table('spans', 5, 2000, 3000), table('spans', 5, 1000, 2500), table('samples', 1, 10, 20), table('rollup_1h', 1, 5, 6), table('traces', 9, 1, 9000)];
    expect(storedTime(tables, 'spans')).toEqual({ fromMs: 1000, toMs: 3000 });
    expect(storedTime(tables, 'samples')).toEqual({ fromMs: 5, toMs: 20 });
  });
  it('is nothing without rows', () => {
    expect(storedTime([table('spans', 0, 1, 2)], 'spans')).toBeNull();
  });
});
