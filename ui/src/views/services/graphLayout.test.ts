import { describe, expect, it } from 'vitest';
import { layoutGraph } from './graphLayout';

describe('service graph', () => {
  it('puts callees right of callers, and ends on a cycle', () => {
    const edge = (client: string, server: string) => ({ client, server, rate: 1, errors: 0 });
    const layout = layoutGraph([edge('web', 'shop'), edge('shop', 'db'), edge('web', 'db')], ['web', 'alone']);
    expect(layout.places.get('db')!.column).toBe(2);
    expect(layout.places.get('alone')!.column).toBe(0);
    expect(layoutGraph([edge('a', 'b'), edge('b', 'a')], []).places.size).toBe(2);
  });
});
