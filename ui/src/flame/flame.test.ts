import { describe, expect, it } from 'vitest';
import { beyondNoise } from './diff';
import { decodeFlamebearer } from './flamebearer';
import { functionTable, orderFunctions } from './functions';
import { MergingBuilder } from './mergingBuilder';
import { sandwich } from './sandwich';
import { parseSearch, search } from './search';
import { byThread, timeline } from './timeline';
import { applyTransforms, formatTransforms, parseTransforms, type Transform } from './transforms';
import { assemble, findByPath, type FlameTree, stackOf } from './tree';
import { changeOf, weightsFor } from './diff';
import { nodeAt, wholeWindow, zoomAt } from './geometry';
import { kindOf, packageOf, shortName } from './frameNames';
import { fitLabel } from './raster';

/** `a;b;c 5` per line, as collapsed stacks are written. */
function treeOf(collapsed: string, order: 'name' | 'weight' = 'name'): FlameTree {
  const names = ['total'];
  const id = (name: string) => {
    const known = names.indexOf(name);
    return known >= 0 ? known : names.push(name) - 1;
  };
  const builder = new MergingBuilder(0, false, 4);
  for (const line of collapsed.trim().split('\n')) {
    const [stack, value] = line.trim().split(' ');
    const node = stack!.split(';').reduce((under, frame) => builder.child(under, id(frame)), 0);
    builder.addSelf(node, Number(value), 0);
  }
  return assemble(builder.finish(names, null, 'samples'), order);
}

/** Back to collapsed text: what a tree says, free of indices. */
function collapsedOf(tree: FlameTree): string[] {
  const lines: string[] = [];
  for (let i = 0; i < tree.count; i++) {
    if (tree.self[i]! > 0) {
      lines.push(`${stackOf(tree, i).slice(1).map((node) => tree.names[tree.name[node]!]).join(';')} ${tree.self[i]}`);
    }
  }
  return lines.sort();
}

function transformed(collapsed: string, ...transforms: Transform[]): FlameTree {
  return applyTransforms(treeOf(collapsed), transforms, 'name', { a: 1, b: 1 });
}

/** Deterministic noise, so that a failure repeats. */
function randomStacks(seed: number, lines: number): string {
  let state = seed;
  const next = (limit: number) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * limit);
  };
  return Array.from({ length: lines }, () => `${Array.from({ length: 1 + next(8) }, () => `f${next(6)}`).join(';')} ${1 + next(9)}`).join('\n');
}

function expectSound(tree: FlameTree): void {
  for (let i = 0; i < tree.count; i++) {
    let children = 0;
    let edge = tree.start[i]!;
    for (let c = i + 1; c < tree.subtreeEnd[i]!; c = tree.subtreeEnd[c]!) {
      expect(tree.parent[c]).toBe(i);
      expect(tree.start[c]).toBeCloseTo(edge);
      edge += tree.total[c]!;
      children += tree.total[c]!;
    }
    expect(tree.total[i]).toBeCloseTo(children + tree.self[i]!);
  }
}

describe('layout', () => {
  it('sums up and nests: every node is its children plus itself, laid side by side', () => {
    for (let seed = 1; seed <= 20; seed++) {
      const tree = treeOf(randomStacks(seed, 60), seed % 2 ? 'name' : 'weight');
      expectSound(tree);
      expect(tree.self.reduce((sum, value) => sum + value, 0)).toBeCloseTo(tree.total[0]!);
    }
  });

  it('puts the heaviest child left when asked to', () => {
    const tree = treeOf('a 1\nb 5\nc 3', 'weight');
    expect([1, 2, 3].map((i) => tree.names[tree.name[i]!])).toEqual(['b', 'c', 'a']);
  });

  it('finds a node again by its path after reordering', () => {
    const stacks = randomStacks(7, 80);
    const byName = treeOf(stacks, 'name');
    const byWeight = treeOf(stacks, 'weight');
    for (let i = 0; i < byName.count; i++) {
      const other = findByPath(byWeight, byName.pathHash[i]!);
      expect(byWeight.total[other]).toBe(byName.total[i]);
    }
  });

  it('finds the node under a point', () => {
    const tree = treeOf('a;b 3\na;c 5');
    const at = (level: number, value: number) => tree.names[tree.name[nodeAt(tree, level, value)]!];
    expect(at(1, 7)).toBe('a');
    expect(at(2, 2.9)).toBe('b');
    expect(at(2, 3)).toBe('c');
    expect(nodeAt(tree, 3, 1)).toBe(-1);
    const zoomed = zoomAt(tree, wholeWindow(tree), 3, 0.5);
    expect(zoomed).toEqual({ from: 1.5, to: 5.5 });
  });
});

describe('flamebearer', () => {
  it("reads Pyroscope's own example", () => {
    const answer = { flamebearer: { names: ['total', 'main', 'y', 'x'], levels: [[0, 8, 0, 0], [0, 8, 0, 1], [0, 3, 3, 3, 0, 5, 5, 2]] } };
    expect(collapsedOf(assemble(decodeFlamebearer(answer, 'samples'), 'given'))).toEqual(['main;x 3', 'main;y 5']);
  });

  it('reads strings, wrapped levels and gaps left by self values', () => {
    const answer = { flamegraph: { names: ['total', 'a', 'b', 'c'], levels: [{ values: ['0', '10', '0', '0'] }, { values: ['0', '6', '2', '1', '0', '4', '4', '2'] }, { values: ['2', '4', '4', '3'] }] } };
    const tree = assemble(decodeFlamebearer(answer, 'nanoseconds'), 'given');
    expect(collapsedOf(tree)).toEqual(['a 2', 'a;c 4', 'b 4']);
    expect(tree.unit).toBe('nanoseconds');
  });

  it('gives back what was measured where a diff comes by request', () => {
    const levels = [[0, 5, 0, 0, 2, 0, 0], [0, 5, 5, 0, 2, 2, 1]];
    const tree = assemble(decodeFlamebearer({ flamebearer: { names: ['total', 'a'], levels }, metadata: { format: 'double' }, leftTicks: 5, rightTicks: 2, per_requests: 1, left: { spans: 10 }, right: { spans: 4 } }, 'nanoseconds'), 'given');
    expect([tree.sides!.totalA[1], tree.sides!.totalB[1], tree.sides!.ticksA, tree.sides!.ticksB]).toEqual([50, 8, 50, 8]);
  });

  it('reads both sides of a diff', () => {
    const answer = {
      flamegraph: { names: ['total', 'a', 'gone', 'new'], levels: [[0, 10, 0, 0, 20, 0, 0], [0, 6, 6, 0, 8, 8, 1, 0, 4, 4, 0, 0, 0, 2, 0, 0, 0, 0, 12, 12, 3]], leftTicks: 10, rightTicks: 20 },
    };
    const weights = weightsFor('share', { ticksA: 10, ticksB: 20 })!;
    const tree = assemble(decodeFlamebearer(answer, 'samples'), 'given', weights);
    expect(tree.sides!.totalA[0]).toBe(10);
    expect(tree.sides!.totalB[0]).toBe(20);
    expect(tree.total[0]).toBe(20);
    const changes = [1, 2, 3].map((i) => changeOf(tree.sides!.totalA[i]! * weights.a, tree.sides!.totalB[i]! * weights.b));
    expect(changes[0]).toBeCloseTo(-1 / 3);
    expect(changes.slice(1)).toEqual([-1, 1]);
    // The identity that makes a diff table honest: changes of self values sum to the change of the whole.
    const table = functionTable(tree, weights);
    expect(table.deltaSelf.reduce((sum, value) => sum + value, 0)).toBeCloseTo(20 * weights.b - 10 * weights.a);
  });

  it('takes an empty answer for what it is', () => {
    expect(assemble(decodeFlamebearer({ flamegraph: { names: [], levels: [] } }, ''), 'given').count).toBe(0);
  });
});

describe('transforms', () => {
  const stacks = 'main;a;json;parse 5\nmain;a 1\nmain;b;json 2\nmain;b;a 4';

  it('merge gives a frame’s own value to its caller', () => {
    expect(collapsedOf(transformed(stacks, { do: 'merge', name: 'json' }))).toEqual(['main;a 1', 'main;a;parse 5', 'main;b 2', 'main;b;a 4']);
  });

  it('focus keeps only stacks through the function, cut to begin there', () => {
    expect(collapsedOf(transformed(stacks, { do: 'focus', name: 'a' }))).toEqual(['a 5', 'a;json;parse 5']);
  });

  it('drop removes the stacks and their value', () => {
    expect(transformed(stacks, { do: 'drop', name: 'json' }).total[0]).toBe(5);
  });

  it('collapses recursion, direct and through others', () => {
    expect(collapsedOf(transformed('f;f;f;g 3\nf;h;f 2\nf;h 1', { do: 'collapse-recursion', name: 'f' }))).toEqual(['f 2', 'f;g 3', 'f;h 1']);
    expect(collapsedOf(transformed('f;f;g;g 3', { do: 'collapse-all-recursion' }))).toEqual(['f;g 3']);
  });

  it('collapses a package into one frame', () => {
    expect(collapsedOf(transformed('main.run;encoding/json.Unmarshal;encoding/json.scan;main.f 3\nmain.run;encoding/json.Valid 1', { do: 'collapse-package', name: 'encoding/json' }))).toEqual([
      'main.run;[encoding/json] 1',
      'main.run;[encoding/json];main.f 3',
    ]);
  });

  it('hides the runtime without losing its time', () => {
    const tree = transformed('runtime.main;main.run;runtime.mallocgc 3\nmain.run 1', { do: 'hide-runtime' });
    expect(collapsedOf(tree)).toEqual(['main.run 4']);
  });

  it('inverts twice to the same sums', () => {
    const tree = transformed(stacks, { do: 'invert' });
    expect(collapsedOf(tree)).toEqual(['a;b;main 4', 'a;main 1', 'json;b;main 2', 'parse;json;a;main 5']);
  });

  it('all but focus and drop keep the sum; every result is sound', () => {
    const keeping: Transform[] = [{ do: 'merge', name: 'f1' }, { do: 'collapse-recursion', name: 'f2' }, { do: 'collapse-all-recursion' }, { do: 'invert' }, { do: 'hide-runtime' }, { do: 'collapse-package', name: 'f3' }];
    for (let seed = 1; seed <= 10; seed++) {
      const plain = treeOf(randomStacks(seed, 50));
      for (const transform of keeping) {
        const tree = applyTransforms(plain, [transform], 'name', { a: 1, b: 1 });
        expectSound(tree);
        expect(tree.total[0]).toBeCloseTo(plain.total[0]!);
      }
    }
  });

  it('survives the URL, whatever a function is called', () => {
    const list: Transform[] = [{ do: 'focus', name: 'a~b%7E:c' }, { do: 'hide-runtime' }, { do: 'merge', name: '<T as U>::f' }];
    expect(parseTransforms(formatTransforms(list))).toEqual(list);
    expect(parseTransforms('nonsense~focus')).toEqual([]);
  });
});

describe('search', () => {
  const tree = treeOf('main;parse;json.scan 5\nmain;json.read 3\nmain;idle 2');

  it('counts nested matches once', () => {
    const result = search(treeOf('main;json;x;json 4\nmain;y 6'), 'json')!;
    expect(result.frames).toBe(2);
    expect(result.value).toBe(4);
    expect(result.share).toBeCloseTo(0.4);
  });

  it('understands regex, negation and several terms', () => {
    expect(search(tree, '/^json\\./')!.value).toBe(8);
    expect(search(tree, 'json -read')!.value).toBe(5);
    expect(search(tree, '-main')!.value).toBe(10);
    expect(search(tree, '')).toBeNull();
    expect(parseSearch('/(/').problem).toMatch(/group/i);
  });

  it('lists hits heaviest first, and never the root', () => {
    expect(search(tree, 'json')!.hits.map((i) => tree.total[i])).toEqual([5, 3]);
    expect(search(tree, 'total')!.frames).toBe(0);
  });
});

describe('functions and sandwich', () => {
  it('a recursive function counts once per stack', () => {
    const tree = treeOf('f;f;g 3\nf;g;f 2');
    const table = functionTable(tree);
    const rows = orderFunctions(table, tree.names, 'total', true, null);
    const totals = Object.fromEntries([...rows].map((row) => [tree.names[table.name[row]!], table.total[row]]));
    expect(totals).toEqual({ f: 5, g: 5 });
  });

  it('callers and callees both sum to the function', () => {
    for (let seed = 1; seed <= 10; seed++) {
      const tree = treeOf(randomStacks(seed, 40));
      const table = functionTable(tree);
      for (let row = 0; row < table.name.length; row++) {
        const { callers, callees } = sandwich(tree, tree.names[table.name[row]!]!);
        expect(assemble(callers, 'weight').total[0]).toBeCloseTo(table.total[row]!);
        expect(assemble(callees, 'weight').total[0]).toBeCloseTo(table.total[row]!);
      }
    }
  });
});

describe('timeline', () => {
  const frames = (...names: string[]) => names.reverse().map((name) => ({ function: name }));
  it('joins neighbours with a common prefix and leaves gaps open', () => {
    const result = timeline([
      { timestamp: '1700000000010000000', value: 1, stack_trace: frames('main', 'b') },
      { timestamp: '1700000000000000000', value: 1, stack_trace: frames('main', 'a') },
      { timestamp: '1700000000020000000', value: 1, stack_trace: frames('main', 'b') },
      { timestamp: '1700000001000000000', value: 1, stack_trace: frames('main', 'a') },
    ])!;
    const { tree } = result;
    const shape = Array.from({ length: tree.count }, (_, i) => `${tree.names[tree.name[i]!]}@${tree.start[i]! / 1e6}+${tree.total[i]! / 1e6}`);
    expect(shape.slice(1)).toEqual(['thread unknown@0+1010', 'main@0+50', 'a@0+10', 'b@10+40', 'main@1000+10', 'a@1000+10']);
    expect(result.originMs).toBe(1700000000000);
  });

  it('gives each thread a lane of its own, so that two at once do not cut each other up', () => {
    const at = (ms: number, thread: string, name: string) => ({ timestamp: String(1700000000000000000n + BigInt(ms) * 1000000n), value: 10, thread_name: thread, stack_trace: frames('main', name) });
    const samples = [at(0, 'one', 'a'), at(5, 'two', 'b'), at(10, 'one', 'a'), at(15, 'two', 'b'), at(20, 'one', 'a')];
    const { tree } = timeline(samples)!;
    const level = (name: string) => tree.depth[Array.from(tree.name).findIndex((id) => tree.names[id] === name)];
    expect(Array.from(tree.name).filter((id) => tree.names[id] === 'a')).toHaveLength(1);
    expect([level('thread one'), level('a'), level('thread two'), level('b')]).toEqual([1, 3, 5, 7]);
    const added = assemble(byThread(samples, 'samples'), 'name');
    expect(collapsedOf(added)).toEqual(['thread one;main;a 30', 'thread two;main;b 20']);
  });
});

describe('names', () => {
  it('keeps what tells when room is short', () => {
    const rust = '<serde_json::value::de::Value as serde::de::Deserialize<T>>::deserialize::<serde_json::Deserializer<R>>';
    expect(shortName(rust)).toBe('Value::deserialize');
    expect(shortName('core::ptr::drop_in_place<alloc::vec::Vec<u8>>')).toBe('ptr::drop_in_place');
    expect(shortName('encoding/json.(*decodeState).value')).toBe('json.(*decodeState).value');
    expect(shortName('com.shop.tax.TaxTable.lookup')).toBe('TaxTable.lookup');
    expect(fitLabel('+ ', 'hotspan::services::tax::lookup', 14)).toBe('+ tax::lookup');
    expect(fitLabel('', 'a::very_long_name', 8)).toBe('a::very…');
    expect(fitLabel('new ', 'abcdef', 4)).toBe('new');
  });
  it('tells standard libraries from own code by name alone', () => {
    expect(kindOf('<std::sys::thread::unix::Thread>::new::thread_start')).toBe('runtime');
    expect(kindOf('libc.so.6!0x891f4')).toBe('runtime');
    expect(kindOf('alloc::collections::btree::map::BTreeMap<K,V>::insert')).toBe('library');
    expect(kindOf('shop::tax::lookup', { file: '/root/.cargo/registry/src/x/lib.rs' })).toBe('library');
  });
  it.each([
    ['encoding/json.(*decodeState).object', 'encoding/json'],
    ['github.com/acme/shop/tax.lookupTaxRate', 'github.com/acme/shop/tax'],
    ['runtime.mallocgc', 'runtime'],
    ['com.acme.tax.TaxService.lookup', 'com.acme.tax'],
    ['com/acme/tax/TaxService.lookup', 'com/acme/tax'],
    ['hotspan_query::flame::merge', 'hotspan_query'],
    ['<alloc::vec::Vec<T> as core::ops::Drop>::drop', 'alloc'],
    ['get /usr/lib/python3/site-packages/requests/api.py:73', 'requests'],
    ['handler /srv/app/routes/cart.js:10:3', 'app/routes'],
  ])('%s belongs to %s', (name, expected) => expect(packageOf(name)).toBe(expected));

  it.each([
    ['runtime.gcBgMarkWorker', 'runtime'],
    ['entry_SYSCALL_64_after_hwframe', 'kernel'],
    ['main.checkout', 'code'],
    ['other', 'other'],
    ['__clone3', 'runtime'],
    ['__memmove_avx512_unaligned_erms', 'runtime'],
    ['_mi_page_malloc_zero', 'library'],
    ['migrate', 'code'],
    ['[unexplained]', 'other'],
    ['[allocating, GC]', 'runtime'],
  ])('%s is %s', (name, expected) => expect(kindOf(name)).toBe(expected));

  it('takes frames of the C library for the system, whatever they are called', () => {
    expect(kindOf('clock_nanosleep', { kind: 'native', module: '/usr/lib/libc.so.6' })).toBe('runtime');
    expect(kindOf('checkout', { kind: 'native', module: 'libcart.so' })).toBe('code');
    expect(kindOf('checkout', { kind: 'native', module: 'shop' })).toBe('code');
  });
});

describe('chance', () => {
  const same = { a: 1, b: 1 };
  it('lets counting noise pass as noise, on each side by the size of its samples', () => {
    expect(beyondNoise(100, 140, same, { a: 10, b: 10 })).toBe(false);
    expect(beyondNoise(1000, 1600, same, { a: 10, b: 10 })).toBe(true);
    expect(beyondNoise(1000, 1600, same, { a: 100, b: 100 })).toBe(false);
    expect(beyondNoise(0, 20, same, { a: 10, b: 10 })).toBe(false);
    expect(beyondNoise(0, 200, same, { a: 10, b: 10 })).toBe(true);
  });
});
