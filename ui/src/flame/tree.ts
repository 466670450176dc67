// The flame tree: a call tree in typed arrays, nodes in preorder, so that a subtree is one contiguous range of indices.
// A million nodes take about 45 MB and move between worker and page without copying.

export interface FrameFacts {
  file?: string;
  line?: number;
  /** As in OTLP's `profile.frame.type`: native, kernel, jvm, cpython, go, v8js …; or `wait`, `span` for merged trees. */
  kind?: string;
  /** Binary or library the frame came from. */
  module?: string;
}

/** The two raw sides of a diff, before normalisation. */
export interface DiffSides {
  totalA: Float64Array;
  totalB: Float64Array;
  selfA: Float64Array;
  selfB: Float64Array;
  ticksA: number;
  ticksB: number;
}

export interface FlameTree {
  count: number;
  names: readonly string[];
  /** Parallel to `names`; null where the source has names only. */
  facts: readonly FrameFacts[] | null;
  name: Uint32Array;
  /** Index of the parent; −1 for the root, which is node 0. */
  parent: Int32Array;
  depth: Uint16Array;
  total: Float64Array;
  self: Float64Array;
  /** Left edge, in the same unit as `total`. */
  start: Float64Array;
  /** One past the last descendant. */
  subtreeEnd: Int32Array;
  /** Nodes by depth, each level from left to right: `levelNodes[levelOffset[d] .. levelOffset[d + 1]]`. */
  levelNodes: Int32Array;
  levelOffset: Int32Array;
  /** Depends on the names from the root only: finds the same node again after a reload, a transform or a change of view. */
  pathHash: Uint32Array;
  sides: DiffSides | null;
  unit: string;
}

export type ChildOrder = 'name' | 'weight' | 'given';

/** Nodes in any order that puts parents before children; what every producer hands to `assemble`. */
export interface LooseNodes {
  count: number;
  names: readonly string[];
  facts: readonly FrameFacts[] | null;
  name: Uint32Array;
  parent: Int32Array;
  selfA: Float64Array;
  /** Present for a diff. */
  selfB: Float64Array | null;
  ticksA?: number;
  ticksB?: number;
  unit: string;
}

/** How each side counts: `total = A·a + B·b`, `delta = B·b − A·a`. Every way of comparing is a pair of weights. */
export interface SideWeights {
  a: number;
  b: number;
}

function sumUpwards(self: Float64Array, parent: Int32Array): Float64Array {
  const total = self.slice();
  for (let i = total.length - 1; i > 0; i--) total[parent[i]!]! += total[i]!;
  return total;
}

function nameRanks(names: readonly string[]): Uint32Array {
  const order = names.map((_, index) => index).sort((x, y) => (names[x]! < names[y]! ? -1 : names[x]! > names[y]! ? 1 : 0));
  const rank = new Uint32Array(names.length);
  order.forEach((index, position) => {
    rank[index] = position;
  });
  return rank;
}

function hashText(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}

/** Sums, orders and lays out loose nodes. */
export function assemble(loose: LooseNodes, order: ChildOrder, weights: SideWeights = { a: 1, b: 1 }): FlameTree {
  const { count, parent: looseParent, name: looseName } = loose;
  const looseTotalA = sumUpwards(loose.selfA, looseParent);
  const looseTotalB = loose.selfB ? sumUpwards(loose.selfB, looseParent) : null;
  const weightOf = (node: number) => looseTotalA[node]! * weights.a + (looseTotalB ? looseTotalB[node]! * weights.b : 0);

  // Children of each node as ranges of one array (counting sort by parent keeps the given order).
  const childOffset = new Int32Array(count + 1);
  for (let i = 1; i < count; i++) childOffset[looseParent[i]! + 1]!++;
  for (let i = 0; i < count; i++) childOffset[i + 1]! += childOffset[i]!;
  const fill = childOffset.slice(0, count);
  const children = new Int32Array(Math.max(0, count - 1));
  for (let i = 1; i < count; i++) children[fill[looseParent[i]!]!++] = i;
  if (order !== 'given') {
    const rank = order === 'name' ? nameRanks(loose.names) : null;
    const compare = rank
      ? (x: number, y: number) => rank[looseName[x]!]! - rank[looseName[y]!]!
      : (x: number, y: number) => weightOf(y) - weightOf(x) || x - y;
    for (let i = 0; i < count; i++) {
      const from = childOffset[i]!;
      const to = childOffset[i + 1]!;
      if (to - from > 1) children.subarray(from, to).sort(compare);
    }
  }

  const size = new Int32Array(count).fill(1);
  for (let i = count - 1; i > 0; i--) size[looseParent[i]!]! += size[i]!;
  const position = new Int32Array(count);
  const name = new Uint32Array(count);
  const parent = new Int32Array(count);
  const depth = new Uint16Array(count);
  const total = new Float64Array(count);
  const self = new Float64Array(count);
  const start = new Float64Array(count);
  const subtreeEnd = new Int32Array(count);
  const pathHash = new Uint32Array(count);
  const sides: DiffSides | null = loose.selfB
    ? {
        totalA: new Float64Array(count),
        totalB: new Float64Array(count),
        selfA: new Float64Array(count),
        selfB: new Float64Array(count),
        ticksA: loose.ticksA ?? looseTotalA[0] ?? 0,
        ticksB: loose.ticksB ?? looseTotalB![0] ?? 0,
      }
    : null;
  const nameHash = Uint32Array.from(loose.names, hashText);
  parent[0] = -1;
  // Parents come first in the loose order, so a parent's place is known when its children are placed.
  for (let node = 0; node < count; node++) {
    const at = position[node]!;
    name[at] = looseName[node]!;
    self[at] = loose.selfA[node]! * weights.a + (loose.selfB ? loose.selfB[node]! * weights.b : 0);
    total[at] = weightOf(node);
    subtreeEnd[at] = at + size[node]!;
    pathHash[at] = Math.imul((at === 0 ? 0x9e3779b9 : pathHash[parent[at]!]!) ^ nameHash[looseName[node]!]!, 0x85ebca6b) ^ (nameHash[looseName[node]!]! >>> 13);
    if (sides) {
      sides.totalA[at] = looseTotalA[node]!;
      sides.totalB[at] = looseTotalB![node]!;
      sides.selfA[at] = loose.selfA[node]!;
      sides.selfB[at] = loose.selfB![node]!;
    }
    let next = at + 1;
    let edge = start[at]!;
    for (let c = childOffset[node]!; c < childOffset[node + 1]!; c++) {
      const child = children[c]!;
      position[child] = next;
      parent[next] = at;
      depth[next] = depth[at]! + 1;
      start[next] = edge;
      edge += weightOf(child);
      next += size[child]!;
    }
  }
  const { levelNodes, levelOffset } = levelsOf(depth);
  return { count, names: loose.names, facts: loose.facts, name, parent, depth, total, self, start, subtreeEnd, levelNodes, levelOffset, pathHash, sides, unit: loose.unit };
}

/** Preorder visits each level from left to right, so a stable counting sort by depth is all it takes. */
export function levelsOf(depth: Uint16Array): { levelNodes: Int32Array; levelOffset: Int32Array } {
  let deepest = 0;
  for (let i = 0; i < depth.length; i++) if (depth[i]! > deepest) deepest = depth[i]!;
  const levelOffset = new Int32Array(deepest + 2);
  for (let i = 0; i < depth.length; i++) levelOffset[depth[i]! + 1]!++;
  for (let d = 0; d <= deepest; d++) levelOffset[d + 1]! += levelOffset[d]!;
  const fill = levelOffset.slice();
  const levelNodes = new Int32Array(depth.length);
  for (let i = 0; i < depth.length; i++) levelNodes[fill[depth[i]!]!++] = i;
  return { levelNodes, levelOffset };
}

/** A tree back to loose nodes: preorder already puts parents first. Raw sides are kept, so other weights can follow. */
export function loosen(tree: FlameTree): LooseNodes {
  return {
    count: tree.count,
    names: tree.names,
    facts: tree.facts,
    name: tree.name,
    parent: tree.parent,
    selfA: tree.sides ? tree.sides.selfA : tree.self,
    selfB: tree.sides ? tree.sides.selfB : null,
    ticksA: tree.sides?.ticksA,
    ticksB: tree.sides?.ticksB,
    unit: tree.unit,
  };
}

export function levelCount(tree: FlameTree): number {
  return tree.levelOffset.length - 1;
}

export function findByPath(tree: FlameTree, pathHash: number): number {
  return tree.pathHash.indexOf(pathHash >>> 0);
}

/** Names from the root to the node. */
export function stackOf(tree: FlameTree, node: number): number[] {
  const stack: number[] = [];
  for (let i = node; i >= 0; i = tree.parent[i]!) stack.push(i);
  return stack.reverse();
}
