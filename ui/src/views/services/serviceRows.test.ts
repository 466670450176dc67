import { describe, expect, it } from 'vitest';
import { activeTime, type ServiceFacts } from '../../api/services';
import { serviceRows, unfolded } from './serviceRows';

const facts = { rate: 1, errors: 0, p50_ns: 1, p95_ns: 2, p99_ns: 3 };
const service = (name: string, p99_ns: number, operations: string[], rate_series: number[] = []): ServiceFacts => ({
  ...facts, service: name, p99_ns, rate_series, operations: operations.map((operation, index) => ({ ...facts, operation, p99_ns: index })),
});
const shop = [service('cart', 5, ['GET /cart', 'POST /cart']), service('tax', 9, ['POST /tax'])];
const names = (rows: ReturnType<typeof serviceRows>) => rows.map((row) => row.operation?.operation ?? row.service.service);
const slowestFirst = { column: 'p99_ns', descending: true } as const;

describe('rows of services', () => {
  it('put what hurts first, with operations under their service', () => {
    expect(names(serviceRows(shop, unfolded(shop, ''), '', slowestFirst))).toEqual(['tax', 'POST /tax', 'cart', 'POST /cart', 'GET /cart']);
    expect(names(serviceRows(shop, unfolded(shop, 'tax'), '', { column: 'name', descending: false }))).toEqual(['cart', 'tax', 'POST /tax']);
  });
  it('fold by themselves when there are many', () => {
    const many = Array.from({ length: 30 }, (_, index) => service(`s${index}`, index, ['op']));
    expect(unfolded(many, '').size).toBe(0);
  });
  it('find services and operations by a part of their name', () => {
    expect(names(serviceRows(shop, new Set(), 'get', slowestFirst))).toEqual(['cart', 'GET /cart']);
    expect(names(serviceRows(shop, new Set(), 'TAX', slowestFirst))).toEqual(['tax', 'POST /tax']);
  });
});

describe('active time', () => {
  it('spans the steps in which anything was asked', () => {
    const range = { fromMs: 0, toMs: 400 };
    expect(activeTime([service('a', 1, [], [0, 0, 2, 0]), service('b', 1, [], [0, 1, 0, 0])], range)).toEqual({ fromMs: 100, toMs: 300 });
    expect(activeTime([service('a', 1, [], [0, 0])], range)).toBeNull();
  });
});
