import { describe, expect, it } from 'vitest';
import { decodeFlamebearer, type RawAnswer } from './flamebearer';
import { cutLevels } from './levelCells';
import { assemble } from './tree';

const bytes = (text: string) => new TextEncoder().encode(text);
const bearer = (levels: unknown, names: string[] = ['total', 'a', 'b']) => ({ flamebearer: { names, levels, numTicks: 10 }, metadata: { units: 'bytes', format: 'single' } });
const LEVELS = [[0, 10, 0, 0], [0, 4, 1, 1, 0, 6, 6, 2], [1, 3, 3, 2]];

/** Both ways to the nodes of an answer. */
function bothWays(answer: unknown) {
  const text = JSON.stringify(answer);
  const cut = cutLevels(bytes(text))!;
  return [decodeFlamebearer(JSON.parse(cut.rest) as RawAnswer, '', cut.levels), decodeFlamebearer(JSON.parse(text) as RawAnswer, '')] as const;
}

describe('levels read from bytes', () => {
  it('are what the parser finds, as plain arrays and as Pyroscope writes them', () => {
    for (const levels of [LEVELS, LEVELS.map((values) => ({ values })), LEVELS.map((values) => ({ values: values.map(String) }))]) {
      const [cut, parsed] = bothWays(bearer(levels));
      expect(cut).toEqual(parsed);
      expect([...cut.parent]).toEqual([-1, 0, 0, 1]);
    }
    const large = [[0, 9_007_199_254_740_991, 9_007_199_254_740_991, 0]];
    expect(bothWays(bearer(large))[0].selfA[0]).toBe(9_007_199_254_740_991);
  });
  it('are those of a diff where there are two sides', () => {
    const [cut, parsed] = bothWays({ ...bearer([[0, 4, 1, 0, 6, 2, 0], [1, 3, 3, 2, 4, 4, 1]]), metadata: { format: 'double' }, leftTicks: 4, rightTicks: 6 });
    expect(cut).toEqual(parsed);
    expect([...cut.selfB!]).toEqual([2, 4]);
  });
  it('are not mistaken for a name that looks like them', () => {
    const [cut, parsed] = bothWays(bearer(LEVELS, ['total', '"levels":[[7', '{"levels":[1']));
    expect(cut).toEqual(parsed);
  });
  it('are left to the parser where they are written in another way', () => {
    for (const text of ['{"levels":[[1.5]]}', '{"levels":[[1e3]]}', '{"levels": [[1]]}', '{"levels":[[1, 2]]}', '{"levels":[[1', '{"levels":[["a"]]}', '{"levels":[{}]}', '{"names":[]}', '']) expect(cutLevels(bytes(text))).toBeNull();
    expect(cutLevels(bytes('{"levels":[]}'))!.levels.ends).toEqual([]);
  });
  it('grow as far as the numbers do', () => {
    const row = Array.from({ length: 4000 }, (_, index) => index % 10);
    expect([...cutLevels(bytes(JSON.stringify({ levels: [row] })))!.levels.cells.subarray(0, 4000)]).toEqual(row);
  });
});

describe('a tree from levels', () => {
  it('has the same levels whether they are taken over or sorted out again', () => {
    const loose = bothWays(bearer(LEVELS))[0];
    const taken = assemble(loose, 'given');
    // Nodes by depth first: the order of levels has to be found.
    const order = [0, 1, 3, 2];
    const shuffled = { ...loose, name: loose.name.map((_, at) => loose.name[order[at]!]!), selfA: loose.selfA.map((_, at) => loose.selfA[order[at]!]!), parent: Int32Array.from(order, (node) => order.indexOf(loose.parent[node]!)) };
    const sorted = assemble(shuffled, 'given');
    expect(taken).toEqual(sorted);
  });
});
