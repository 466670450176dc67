// The top table: value per function. A recursive function counts once per stack, or its total would exceed the whole.
import type { FlameTree } from './tree';

export interface FunctionTable {
  name: Uint32Array;
  self: Float64Array;
  total: Float64Array;
  deltaSelf: Float64Array;
  deltaTotal: Float64Array;
  /** Raw self values of the two sides of a diff. */
  selfA: Float64Array;
  selfB: Float64Array;
}

/** One pass in preorder; `open[name]` is the end of the subtree in which the function already counts. */
export function functionTable(tree: FlameTree, weights = { a: 1, b: 1 }): FunctionTable {
  const names = tree.names.length;
  const self = new Float64Array(names);
  const total = new Float64Array(names);
  const deltaSelf = new Float64Array(names);
  const deltaTotal = new Float64Array(names);
  const selfA = new Float64Array(names);
  const selfB = new Float64Array(names);
  const open = new Int32Array(names);
  const { sides } = tree;
  for (let i = 1; i < tree.count; i++) {
    const name = tree.name[i]!;
    self[name]! += tree.self[i]!;
    if (sides) {
      selfA[name]! += sides.selfA[i]!;
      selfB[name]! += sides.selfB[i]!;
      deltaSelf[name]! += sides.selfB[i]! * weights.b - sides.selfA[i]! * weights.a;
    }
    if (i >= open[name]!) {
      open[name] = tree.subtreeEnd[i]!;
      total[name]! += tree.total[i]!;
      if (sides) deltaTotal[name]! += sides.totalB[i]! * weights.b - sides.totalA[i]! * weights.a;
    }
  }
  const present: number[] = [];
  for (let name = 0; name < names; name++) if (total[name]! > 0) present.push(name);
  const pick = (source: Float64Array) => Float64Array.from(present, (name) => source[name]!);
  return { name: Uint32Array.from(present), self: pick(self), total: pick(total), deltaSelf: pick(deltaSelf), deltaTotal: pick(deltaTotal), selfA: pick(selfA), selfB: pick(selfB) };
}

export type FunctionOrder = 'self' | 'total' | 'name' | 'deltaSelf' | 'deltaTotal' | 'selfA' | 'selfB';

/** Row numbers of the table in the wanted order; `keep` filters by name, as the search does. */
export function orderFunctions(table: FunctionTable, names: readonly string[], order: FunctionOrder, descending: boolean, keep: ((name: number) => boolean) | null): Int32Array {
  const rows: number[] = [];
  for (let row = 0; row < table.name.length; row++) if (!keep || keep(table.name[row]!)) rows.push(row);
  const direction = descending ? -1 : 1;
  rows.sort((x, y) => {
    if (order === 'name') return direction * (names[table.name[x]!]! < names[table.name[y]!]! ? -1 : 1);
    const values = table[order];
    // Deltas sort by size of change: −2 s matters as much as +2 s.
    if (order === 'deltaSelf' || order === 'deltaTotal') return direction * (Math.abs(values[x]!) - Math.abs(values[y]!)) || x - y;
    return direction * (values[x]! - values[y]!) || x - y;
  });
  return Int32Array.from(rows);
}
