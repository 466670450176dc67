// Sandwich: everything that calls a function above it, everything it calls below, merged over all its places.
import { MergingBuilder } from './mergingBuilder';
import { type FlameTree, type LooseNodes, loosen } from './tree';

export interface Sandwich {
  callers: LooseNodes;
  callees: LooseNodes;
}

export function sandwich(tree: FlameTree, functionName: string): Sandwich {
  const target = tree.names.indexOf(functionName);
  const source = loosen(tree);
  const isDiff = tree.sides !== null;
  const callers = new MergingBuilder(Math.max(0, target), isDiff);
  const callees = new MergingBuilder(Math.max(0, target), isDiff);
  const newOf = new Int32Array(tree.count);
  for (let i = 1; i < tree.count && target >= 0; ) {
    if (tree.name[i] !== target) {
      i++;
      continue;
    }
    // Outermost occurrence: its whole value comes from its callers; inner ones are part of the callees.
    let node = 0;
    for (let up = tree.parent[i]!; up > 0; up = tree.parent[up]!) node = callers.child(node, tree.name[up]!);
    callers.addSelf(node, tree.sides ? tree.sides.totalA[i]! : tree.total[i]!, tree.sides ? tree.sides.totalB[i]! : 0);
    const end = tree.subtreeEnd[i]!;
    callees.addSelf(0, source.selfA[i]!, source.selfB?.[i] ?? 0);
    for (let j = i + 1; j < end; j++) {
      const parent = tree.parent[j]!;
      newOf[j] = callees.child(parent === i ? 0 : newOf[parent]!, tree.name[j]!);
      callees.addSelf(newOf[j]!, source.selfA[j]!, source.selfB?.[j] ?? 0);
    }
    i = end;
  }
  const ticks = tree.sides ? { a: tree.sides.ticksA, b: tree.sides.ticksB } : undefined;
  return { callers: callers.finish(tree.names, tree.facts, tree.unit, ticks), callees: callees.finish(tree.names, tree.facts, tree.unit, ticks) };
}
