import { describe, expect, it } from 'vitest';
import { windowText } from './geometry';
import { MergingBuilder } from './mergingBuilder';
import { assemble } from './tree';

describe('window in the URL', () => {
  const builder = new MergingBuilder(0, false);
  builder.addSelf(builder.child(0, 1), 1e12, 0);
  const tree = assemble(builder.finish(['total', 'a'], null, 'nanoseconds'), 'given');

  it('is empty for the whole, and never in exponents', () => {
    expect(windowText(tree, { from: 0, to: 1e12 })).toBe('');
    expect(windowText(tree, { from: 0.25e12, to: 0.5e12 })).toBe('0.25-0.5');
    expect(windowText(tree, { from: 1, to: 20 })).toBe('0.000000000001-0.00000000002');
  });
});
