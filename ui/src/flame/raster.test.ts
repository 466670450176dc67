import { describe, expect, it } from 'vitest';
import { flamePalette, nameColours } from './colours';
import { wholeWindow } from './geometry';
import { MergingBuilder } from './mergingBuilder';
import { fitLabel, paintFlame } from './raster';
import { search } from './search';
import { assemble, type FlameTree, levelCount } from './tree';

/** Functions beside each other under one root, each with its own value. */
function besides(values: Readonly<Record<string, number>>): FlameTree {
  const names = ['total', ...Object.keys(values)];
  const builder = new MergingBuilder(0, false);
  Object.values(values).forEach((value, index) => builder.addSelf(builder.child(0, index + 1), value, 0));
  return assemble(builder.finish(names, null, 'samples'), 'given');
}

const ROW = 4;
const palette = flamePalette('light');

/** Pixels of one level. */
function painted(tree: FlameTree, width: number, level: number, find = ''): Uint32Array {
  const height = levelCount(tree) * ROW;
  const pixels = new Uint32Array(width * height);
  const scene = { tree, window: wholeWindow(tree), rowHeight: ROW, scrollTop: 0, growsUp: false, nameColour: nameColours(tree, 'package', 'light'), nodeColour: null, weights: { a: 1, b: 1 }, search: find ? search(tree, find) : null, selectedName: -1, selectedNode: -1, palette };
  paintFlame(scene, { pixels, width, height, glyphs: null, ratio: 1 });
  return pixels.slice(level * ROW * width, level * ROW * width + width);
}

describe('painting', () => {
  // Scenario: a box that begins in the same pixel as one too small to be seen.
  // Guarantee: it is drawn over its whole width.
  it('loses no wide box to a sliver before it', () => {
    const row = painted(besides({ sliver: 2, 'pkg.wide': 998 }), 100, 1);
    expect(row.filter((pixel) => pixel === palette.background).length).toBeLessThanOrEqual(1);
  });

  // Scenario: boxes of random widths, most of them far under a pixel.
  // Guarantee: the middle of every box of two pixels or more is painted.
  it('paints every box that can be seen', () => {
    let state = 3;
    const random = () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32;
    const tree = besides(Object.fromEntries(Array.from({ length: 800 }, (_, index) => [`f${index}`, 1 + Math.floor(10_000 * random() ** 12)])));
    const width = 300;
    const row = painted(tree, width, 1);
    for (let node = 1; node < tree.count; node++) {
      const scale = width / tree.total[0]!;
      if (tree.total[node]! * scale >= 2) expect(row[Math.floor((tree.start[node]! + tree.total[node]! / 2) * scale)]).not.toBe(palette.background);
    }
  });

  // Scenario: a search hits a sliver beside a wide box that it does not hit.
  // Guarantee: the hit is seen.
  it('shows a hit that is too small to be drawn', () => {
    expect([...painted(besides({ needle: 1, hay: 999 }), 100, 1, 'needle')]).toContain(palette.hit);
  });
});

describe('labels', () => {
  it('fit whole, by their last part, cut, or not at all', () => {
    expect(fitLabel('', 'encoding/json.Unmarshal', 30)).toBe('encoding/json.Unmarshal');
    expect(fitLabel('', 'encoding/json.Unmarshal', 14)).toBe('json.Unmarshal');
    expect(fitLabel('', 'encoding/json.Unmarshal', 6)).toBe('json.…');
    expect(fitLabel('', 'encoding/json.Unmarshal', 3)).toBe('');
    expect(fitLabel('+ ', 'encoding/json.Unmarshal', 3)).toBe('+');
  });
});
