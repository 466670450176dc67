import { describe, expect, it } from 'vitest';
import { packFlame } from '../../bench/packFlame.mjs';
import { decodeFlamebearer } from './flamebearer';
import { decodePacked, isPacked } from './packedFlame';
import { assemble } from './tree';

const told = { names: ['total', 'main', 'a', 'b'], frames: [{}, { file: 'main.go', line: 3 }, {}, {}], metadata: { units: 'bytes' }, exactness: { samples: 4 } };
const columns = { self: [0, 1, 7, 2, 300], name: [0, 1, 2, 2, 3], children: [2, 2, 0, 0, 0] };

describe('packed flame graphs', () => {
  it('have the nodes that the same graph has as JSON', () => {
    const bytes = packFlame(told, columns);
    expect(isPacked(bytes)).toBe(true);
    const { answer, nodes } = decodePacked(bytes, '');
    const levels = [[0, 310, 0, 0], [0, 303, 1, 1, 0, 7, 7, 2], [1, 2, 2, 2, 0, 300, 300, 3]];
    const json = decodeFlamebearer({ flamebearer: { names: told.names, frames: told.frames, levels }, metadata: { units: 'bytes', format: 'single' } }, '');
    expect(nodes).toEqual({ ...json, ticksA: undefined, ticksB: undefined });
    expect(answer.exactness?.samples).toBe(4);
  });
  it('hold values of any size, and none at all', () => {
    const large = decodePacked(packFlame(told, { self: [0, 2 ** 40], name: [0, 1], children: [1, 0] }), '').nodes;
    expect([...large.selfA]).toEqual([0, 2 ** 40]);
    expect(decodePacked(packFlame(told, { self: [], name: [], children: [] }), '').nodes.count).toBe(0);
  });
  it('are told from JSON, and refused where they are broken', () => {
    expect(isPacked(new TextEncoder().encode('{"flamebearer":{}}').buffer)).toBe(false);
    for (const children of [[2, 2, 1, 0, 0], [2, 1, 0, 0, 0], [0, 4, 0, 0, 0]]) expect(() => decodePacked(packFlame(told, { ...columns, children }), '')).toThrow('no tree');
    expect(() => decodePacked(packFlame(told, columns).slice(0, -16), '')).toThrow();
  });
});

describe('a tree of nodes that come level by level', () => {
  it('takes their order over, as it would be found', () => {
    const loose = decodePacked(packFlame(told, { self: [0, 1, 7, 2, 300], name: [0, 1, 2, 2, 3], children: [2, 2, 0, 0, 0] }), '').nodes;
    // Nodes by depth first: the order of levels has to be found.
    const order = [0, 1, 3, 4, 2];
    const shuffled = { ...loose, name: loose.name.map((_, at) => loose.name[order[at]!]!), selfA: loose.selfA.map((_, at) => loose.selfA[order[at]!]!), parent: Int32Array.from(order, (node) => order.indexOf(loose.parent[node]!)) };
    expect(assemble(loose, 'given')).toEqual(assemble(shuffled, 'given'));
    expect([...assemble(loose, 'given').levelNodes]).toEqual([0, 1, 4, 2, 3]);
  });
});
