// Transforms change what is counted as a frame, never what was measured: each one keeps the sum, except `drop` and `focus`,
// which keep the sum of the stacks that stay. They are plain data, so the URL can carry the list.
import { type FrameKind, kindOf, packageOf } from './frameNames';
import { MergingBuilder } from './mergingBuilder';
import { assemble, type ChildOrder, type FlameTree, type LooseNodes, loosen, type SideWeights } from './tree';

export type Transform =
  | { do: 'focus'; name: string }
  | { do: 'merge'; name: string }
  | { do: 'drop'; name: string }
  | { do: 'collapse-recursion'; name: string }
  | { do: 'collapse-all-recursion' }
  | { do: 'collapse-package'; name: string }
  | { do: 'hide-runtime' }
  | { do: 'own-code' }
  | { do: 'invert' };

const WITHOUT_NAME: readonly Transform['do'][] = ['collapse-all-recursion', 'hide-runtime', 'own-code', 'invert'];

export function describeTransform(transform: Transform): string {
  switch (transform.do) {
    case 'focus':
      return `only ${transform.name}`;
    case 'merge':
      return `${transform.name} merged into callers`;
    case 'drop':
      return `without ${transform.name}`;
    case 'collapse-recursion':
      return `recursion of ${transform.name} collapsed`;
    case 'collapse-all-recursion':
      return 'recursion collapsed';
    case 'collapse-package':
      return `${transform.name} collapsed`;
    case 'hide-runtime':
      return 'runtime hidden';
    case 'own-code':
      return 'own code only';
    case 'invert':
      return 'inverted';
  }
}

/** `focus:name~hide-runtime`: short enough for a URL, readable enough to edit by hand. */
export function formatTransforms(transforms: readonly Transform[]): string {
  return transforms.map((transform) => ('name' in transform ? `${transform.do}:${transform.name.replaceAll('%', '%25').replaceAll('~', '%7E')}` : transform.do)).join('~');
}

export function parseTransforms(text: string): Transform[] {
  const parsed: Transform[] = [];
  for (const part of text.split('~').filter(Boolean)) {
    const colon = part.indexOf(':');
    const what = (colon < 0 ? part : part.slice(0, colon)) as Transform['do'];
    if (colon < 0 && WITHOUT_NAME.includes(what)) parsed.push({ do: what } as Transform);
    else if (colon > 0 && /^(focus|merge|drop|collapse-recursion|collapse-package)$/.test(what)) {
      parsed.push({ do: what, name: part.slice(colon + 1).replaceAll('%7E', '~').replaceAll('%25', '%') } as Transform);
    }
  }
  return parsed;
}

/** What happens to one node: skip it (its own value goes to the parent's new node), drop its subtree, or stand as a frame. */
const SKIP = -1;
const DROP = -2;

interface Walk {
  tree: FlameTree;
  names: string[];
  /** New name of node `i` under its new parent, or SKIP or DROP. `builder` tells what the new parent is called. */
  decide: (i: number, newParent: number, builder: MergingBuilder) => number;
}

function rebuild({ tree, names, decide }: Walk): LooseNodes {
  const source = loosen(tree);
  const builder = new MergingBuilder(tree.name[0] ?? 0, tree.sides !== null, tree.count);
  const newOf = new Int32Array(tree.count);
  builder.addSelf(0, source.selfA[0] ?? 0, source.selfB?.[0] ?? 0);
  for (let i = 1; i < tree.count; ) {
    const under = newOf[tree.parent[i]!]!;
    const decision = decide(i, under, builder);
    if (decision === DROP) {
      i = tree.subtreeEnd[i]!;
      continue;
    }
    const node = decision === SKIP ? under : builder.child(under, decision);
    newOf[i] = node;
    builder.addSelf(node, source.selfA[i]!, source.selfB?.[i] ?? 0);
    i++;
  }
  return builder.finish(names, tree.facts, tree.unit, tree.sides ? { a: tree.sides.ticksA, b: tree.sides.ticksB } : undefined);
}

function kindsOf(tree: FlameTree): FrameKind[] {
  return tree.names.map((name, index) => kindOf(name, tree.facts?.[index]));
}

/** Every stack through `name`, cut so that it begins there. */
function focus(tree: FlameTree, target: number): LooseNodes {
  const source = loosen(tree);
  const builder = new MergingBuilder(tree.name[0] ?? 0, tree.sides !== null, 1024);
  const newOf = new Int32Array(tree.count);
  for (let i = 1; i < tree.count; ) {
    if (tree.name[i] !== target) {
      i++;
      continue;
    }
    const end = tree.subtreeEnd[i]!;
    for (let j = i; j < end; j++) {
      newOf[j] = builder.child(j === i ? 0 : newOf[tree.parent[j]!]!, tree.name[j]!);
      builder.addSelf(newOf[j]!, source.selfA[j]!, source.selfB?.[j] ?? 0);
    }
    i = end;
  }
  return builder.finish(tree.names, tree.facts, tree.unit, tree.sides ? { a: tree.sides.ticksA, b: tree.sides.ticksB } : undefined);
}

/** Leaves first: every self value walks its stack from the leaf to the root. */
export function invert(tree: FlameTree): LooseNodes {
  const source = loosen(tree);
  const builder = new MergingBuilder(tree.name[0] ?? 0, tree.sides !== null, tree.count);
  for (let i = 1; i < tree.count; i++) {
    const a = source.selfA[i]!;
    const b = source.selfB?.[i] ?? 0;
    if (a === 0 && b === 0) continue;
    let node = 0;
    for (let up = i; up > 0; up = tree.parent[up]!) node = builder.child(node, tree.name[up]!);
    builder.addSelf(node, a, b);
  }
  return builder.finish(tree.names, tree.facts, tree.unit, tree.sides ? { a: tree.sides.ticksA, b: tree.sides.ticksB } : undefined);
}

/** From the outermost `target` of a stack straight to the innermost: what lies between folds away, unless a stack ends there. */
function collapseRecursion(tree: FlameTree, target: number): LooseNodes {
  const source = loosen(tree);
  // holdsTarget[i]: a frame of `target` lies in the subtree of i (itself included).
  const holdsTarget = new Uint8Array(tree.count);
  for (let i = tree.count - 1; i > 0; i--) {
    if (tree.name[i] === target) holdsTarget[i] = 1;
    if (holdsTarget[i]) holdsTarget[tree.parent[i]!] = 1;
  }
  const builder = new MergingBuilder(tree.name[0] ?? 0, tree.sides !== null, tree.count);
  builder.addSelf(0, source.selfA[0] ?? 0, source.selfB?.[0] ?? 0);
  const newOf = new Int32Array(tree.count);
  // The collapsed `target` a node lies in; zero (the root) outside of any.
  const outerTarget = new Int32Array(tree.count);
  for (let i = 1; i < tree.count; i++) {
    const parent = tree.parent[i]!;
    const outer = outerTarget[parent]!;
    if (tree.name[i] === target) {
      newOf[i] = outer || builder.child(newOf[parent]!, target);
      outerTarget[i] = newOf[i]!;
    } else {
      newOf[i] = newOf[parent]!;
      outerTarget[i] = outer;
      // Between two targets a frame stands only for what ends in it.
      if (!(outer && holdsTarget[i]) || source.selfA[i]! !== 0 || (source.selfB?.[i] ?? 0) !== 0 || hasBranchWithout(tree, i, holdsTarget)) {
        newOf[i] = builder.child(newOf[parent]!, tree.name[i]!);
      }
    }
    builder.addSelf(newOf[i]!, source.selfA[i]!, source.selfB?.[i] ?? 0);
  }
  return builder.finish(tree.names, tree.facts, tree.unit, tree.sides ? { a: tree.sides.ticksA, b: tree.sides.ticksB } : undefined);
}

function hasBranchWithout(tree: FlameTree, node: number, holdsTarget: Uint8Array): boolean {
  for (let child = node + 1; child < tree.subtreeEnd[node]!; child = tree.subtreeEnd[child]!) if (!holdsTarget[child]) return true;
  return false;
}

export function applyTransform(tree: FlameTree, transform: Transform): LooseNodes {
  const names = tree.names as string[];
  const target = 'name' in transform ? names.indexOf(transform.name) : -1;
  switch (transform.do) {
    case 'focus':
      return focus(tree, target);
    case 'merge':
      return rebuild({ tree, names, decide: (i) => (tree.name[i] === target ? SKIP : tree.name[i]!) });
    case 'drop':
      return rebuild({ tree, names, decide: (i) => (tree.name[i] === target ? DROP : tree.name[i]!) });
    case 'collapse-recursion':
      return collapseRecursion(tree, target);
    case 'collapse-all-recursion':
      return rebuild({ tree, names, decide: (i, under, builder) => (under > 0 && builder.nameOf(under) === tree.name[i] ? SKIP : tree.name[i]!) });
    case 'collapse-package': {
      const label = `[${transform.name}]`;
      const known = names.indexOf(label);
      const extended = known >= 0 ? names : [...names, label];
      const folded = known >= 0 ? known : names.length;
      const inPackage = Uint8Array.from(names, (name, index) => (packageOf(name, tree.facts?.[index]) === transform.name ? 1 : 0));
      return rebuild({
        tree,
        names: extended,
        decide: (i, under, builder) => {
          if (!inPackage[tree.name[i]!]) return tree.name[i]!;
          return under > 0 && builder.nameOf(under) === folded ? SKIP : folded;
        },
      });
    }
    case 'hide-runtime':
    case 'own-code': {
      const kinds = kindsOf(tree);
      const hidden = Uint8Array.from(kinds, (kind) => (kind === 'runtime' || kind === 'kernel' || (transform.do === 'own-code' && kind === 'library') ? 1 : 0));
      return rebuild({ tree, names, decide: (i) => (hidden[tree.name[i]!] ? SKIP : tree.name[i]!) });
    }
    case 'invert':
      return invert(tree);
  }
}

export function applyTransforms(base: FlameTree, transforms: readonly Transform[], order: ChildOrder, weights: SideWeights): FlameTree {
  let loose = loosen(base);
  for (const transform of transforms) loose = applyTransform(assemble(loose, 'given'), transform);
  if (loose.facts && loose.names.length > loose.facts.length) {
    loose = { ...loose, facts: loose.names.map((_, index) => loose.facts![index] ?? {}) };
  }
  return assemble(loose, order, weights);
}
