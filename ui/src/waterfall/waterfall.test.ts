import { describe, expect, it } from 'vitest';
import type { RawSpan } from '../api/traces';
import { barParts, spanLedger } from './barParts';
import { criticalPath } from './criticalPath';
import { groupSiblings, indentOf, visibleRows } from './rows';
import { asksForAttributes, filterSpans, hasWords } from './spanFilter';
import { traceOfOutline, traceOfWindow } from './traceOutline';
import { buildTrace, hexId, type TraceModel } from './traceModel';

const id = (n: number) => btoa(String.fromCharCode(0, 0, 0, 0, 0, 0, n >> 8, n & 255));

function traceOf(spans: { id: number; parent?: number; name?: string; from: number; to: number; error?: boolean }[]): TraceModel {
  const raw: RawSpan[] = spans.map((span) => ({
    spanId: id(span.id),
    ...(span.parent !== undefined ? { parentSpanId: id(span.parent) } : {}),
    name: span.name ?? `s${span.id}`,
    startTimeUnixNano: String(1_700_000_000_000_000_000n + BigInt(span.from)),
    endTimeUnixNano: String(1_700_000_000_000_000_000n + BigInt(span.to)),
    ...(span.error ? { status: { code: 'STATUS_CODE_ERROR' } } : {}),
  }));
  return buildTrace({ trace: { resourceSpans: [{ resource: { attributes: [{ key: 'service.name', value: { stringValue: 'shop' } }] }, scopeSpans: [{ spans: raw }] }] } })!;
}

const names = (trace: TraceModel, rows: Iterable<number>) => [...rows].map((row) => (row < 0 ? `group${-1 - row}` : trace.name[row]));
const all = { collapsed: new Set<number>(), openGroups: new Set<number>(), maxDepth: Infinity, keep: null, grouped: true };

describe('trace model', () => {
  it('orders children by start, keeps spans whose parent is missing, and reads base64 ids', () => {
    const trace = traceOf([{ id: 3, parent: 1, from: 50, to: 60 }, { id: 2, parent: 1, from: 10, to: 20 }, { id: 1, from: 0, to: 100 }, { id: 9, parent: 77, from: 5, to: 6 }]);
    expect([...trace.name]).toEqual(['s1', 's2', 's3', 's9']);
    expect(trace.orphans).toBe(1);
    expect(trace.spanId[0]).toBe('0000000000000001');
    expect(trace.totalNs).toBe(100);
    expect(hexId('00000000000000AF', 8)).toBe('00000000000000af');
  });

  it('loses no span to a cycle of parents, nor to a chain of twenty thousand', () => {
    expect(traceOf([{ id: 1, parent: 2, from: 0, to: 9 }, { id: 2, parent: 1, from: 1, to: 2 }]).count).toBe(2);
    const chain = traceOf(Array.from({ length: 20_000 }, (_, i) => ({ id: i + 1, ...(i ? { parent: i } : {}), from: i, to: 40_000 - i })));
    expect(chain.depth[19_999]).toBe(19_999);
    expect(criticalPath(chain).totalNs).toBe(40_000);
  });
});

describe('critical path', () => {
  it('follows the child that ended last and never counts time twice', () => {
    const trace = traceOf([{ id: 1, from: 0, to: 100 }, { id: 2, parent: 1, from: 10, to: 60 }, { id: 3, parent: 1, from: 20, to: 90 }, { id: 4, parent: 3, from: 80, to: 95 }]);
    const path = criticalPath(trace);
    expect(path.totalNs).toBe(100);
    const own = (name: string) => path.pieces.get(trace.name.indexOf(name));
    expect(own('s1')).toEqual([[90, 100], [0, 10]]);
    expect(own('s2')).toEqual([[10, 20]]);
    expect(own('s3')).toEqual([[20, 80]]);
    expect(own('s4')).toEqual([[80, 90]]);
  });
});

describe('ledger and bars', () => {
  const trace = traceOf([{ id: 1, from: 0, to: 100 }, { id: 2, parent: 1, from: 20, to: 60 }, { id: 3, parent: 1, from: 50, to: 70 }]);

  it('always sums to the duration, whatever the samples claim', () => {
    for (const facts of [undefined, { cpu_ns: 10 }, { cpu_ns: 30, wait_ns: 10 }, { cpu_ns: 500, wait_ns: 500 }]) {
      const ledger = spanLedger(trace, 0, facts);
      expect(ledger.cpuNs + ledger.waitNs + ledger.childNs + ledger.unexplainedNs).toBe(100);
      const parts = barParts(trace, 0, facts, true);
      expect(parts.reduce((sum, part) => sum + part.to - part.from, 0)).toBeCloseTo(100);
    }
    expect(spanLedger(trace, 0, { cpu_ns: 30 })).toMatchObject({ cpuNs: 30, childNs: 50, unexplainedNs: 20 });
  });
});

describe('outline of a long trace', () => {
  const times = { start_ns: '1700000000000000000', duration_ns: 100 };
  const depth = [0, 1, 2, 1, 0];

  it('is the same tree as the whole trace', () => {
    const outline = traceOfOutline({ ...times, total_spans: 5, services: ['shop', 'db'], names: ['a', 'b'], span_ids: ['1', '2', '3', '4', '5'].map((id) => id.repeat(16)).join(''), service: [0, 0, 1, 0, 0], name: [0, 1, 1, 0, 0], start: [0, 1, 2, 20, 50], duration: [90, 5, 2, 9, 9], depth, failed: [2] })!;
    expect([...outline.parent]).toEqual([-1, 0, 1, 0, -1]);
    expect([...outline.subtreeEnd]).toEqual([4, 3, 3, 4, 5]);
    expect([outline.spanId[2], outline.service[2], outline.name[2], outline.failed[2]]).toEqual(['3'.repeat(16), 'db', 'b', 1]);
    expect([outline.details, outline.partial, outline.services]).toEqual([null, null, ['shop', 'db']]);
  });

  it('is cut where its first window ends, and says so', () => {
    const spans = depth.slice(0, 4).map((level, index) => ({ span_id: String(index), service: 'shop', name: 'a', failed: false, start_ns: index, duration_ns: 10, depth: level }));
    const window = traceOfWindow({ ...times, total_spans: 9, spans })!;
    expect([...window.parent]).toEqual([-1, 0, 1, 0]);
    expect([...window.subtreeEnd]).toEqual([4, 3, 3, 4]);
    expect(window.partial).toContain('the first 4 of 9 spans');
    expect(traceOfWindow({ ...times, total_spans: 0, spans: [] })).toBeNull();
  });

  it('is read whole only for what it does not hold', () => {
    expect(['db.system=postgresql', 'error -http.route=/x'].map(asksForAttributes)).toEqual([true, true]);
    expect(['checkout >100ms', 'service=tax name=POST', 'error', ''].map(asksForAttributes)).toEqual([false, false, false, false]);
  });
  it('has words that may stand in any attribute, or none', () => {
    expect(['checkout', '>100ms -odd', '"two words"', 'errors'].map(hasWords)).toEqual([true, true, true, true]);
    expect(['', 'error', '-error >100ms <=2s', 'service=tax db.system=x'].map(hasWords)).toEqual([false, false, false, false]);
  });
});

describe('rows', () => {
  const many = traceOf([{ id: 1, from: 0, to: 100 }, ...Array.from({ length: 7 }, (_, i) => ({ id: 10 + i, parent: 1, name: 'SELECT', from: i * 10, to: i * 10 + 5 })), { id: 90, parent: 1, name: 'render', from: 80, to: 99 }, { id: 91, parent: 90, name: 'inner', from: 81, to: 90, error: true }]);
  const grouping = groupSiblings(many);

  it('folds repeated siblings into one row, and unfolds them', () => {
    expect(names(many, visibleRows(many, grouping, all))).toEqual(['s1', 'group0', 'render', 'inner']);
    expect(grouping.groups[0]).toMatchObject({ totalNs: 35, from: 0, to: 65 });
    expect(visibleRows(many, grouping, { ...all, openGroups: new Set([0]) }).length).toBe(11);
    expect(visibleRows(many, grouping, { ...all, grouped: false }).length).toBe(10);
  });

  it('does not fold calls that lead to different places', () => {
    const calls = traceOf([{ id: 1, from: 0, to: 100 }, ...Array.from({ length: 6 }, (_, i) => [{ id: 10 + i, parent: 1, name: 'POST', from: i * 10, to: i * 10 + 5 }, { id: 30 + i, parent: 10 + i, name: i === 2 ? 'tax' : 'cart', from: i * 10, to: i * 10 + 4 }]).flat()]);
    expect(groupSiblings(calls).groups.map((group) => group.members.length)).toEqual([5]);
  });

  it('collapses subtrees and levels', () => {
    expect(names(many, visibleRows(many, grouping, { ...all, collapsed: new Set([0]) }))).toEqual(['s1']);
    expect(names(many, visibleRows(many, grouping, { ...all, maxDepth: 1 }))).toEqual(['s1', 'group0', 'render']);
  });

  it('filters by words, duration, status and negation, and keeps ancestors', () => {
    const shown = (text: string) => names(many, visibleRows(many, grouping, { ...all, keep: filterSpans(many, text) }));
    expect(shown('error')).toEqual(['s1', 'render', 'inner']);
    expect(shown('inner')).toEqual(['s1', 'render', 'inner']);
    expect(shown('>15ns')).toEqual(['s1', 'render']);
    expect(shown('-SELECT >5ns')).toEqual(['s1', 'render', 'inner']);
    expect(shown('name=rend')).toEqual(['s1', 'render']);
    expect(filterSpans(many, '  ')).toBeNull();
  });
});

describe('indents', () => {
  it('are twelve pixels a level, less in deep traces, and never take the room of names', () => {
    expect(indentOf(3, 5, 300)).toBe(36);
    expect(indentOf(20, 20, 300)).toBe(120);
    expect(indentOf(2, 500, 300)).toBe(6);
    expect(indentOf(500, 500, 300)).toBe(120);
  });
});
