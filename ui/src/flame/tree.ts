// The flame tree: a call tree in typed arrays, nodes in preorder, so that a subtree is one contiguous range of indices.
// A million nodes take about 45 MB and move between worker and page without copying.

import { HUES, stableHash } from '../theme/evenPalette';
import { FRAME_KINDS, kindOf, packageOf } from './frameNames';

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
  /** Name of each slot of `levelNodes`: lets a search run through memory in order. */
  levelName: Uint32Array;
  /** Per name: index into FRAME_KINDS, and hue of its package. */
  kindOfName: Uint8Array;
  hueOfName: Uint8Array;
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

/** Sums, orders and lays out loose nodes. Passes run in memory order where they can: at a million nodes, cache misses are the cost. */
export function assemble(loose: LooseNodes, order: ChildOrder, weights: SideWeights = { a: 1, b: 1 }): FlameTree {
  const { count, parent: looseParent, name: looseName } = loose;
  const looseSelf = combine(loose, weights);
  const looseTotal = sumUpwards(looseSelf, looseParent);
  const size = new Int32Array(count).fill(1);
  for (let i = count - 1; i > 0; i--) size[looseParent[i]!]! += size[i]!;
  const { preorder, position, isByLevel } = preorderOf(loose, order, looseTotal, size);

  const name = new Uint32Array(count);
  const parent = new Int32Array(count);
  const depth = new Uint16Array(count);
  const total = new Float64Array(count);
  const self = new Float64Array(count);
  const start = new Float64Array(count);
  const subtreeEnd = new Int32Array(count);
  const pathHash = new Uint32Array(count);
  const nameHash = hashesOf(loose.names);
  // The open ancestors, and where the next child of each begins.
  const open = new Int32Array(count + 1);
  const edge = new Float64Array(count + 1);
  let height = 0;
  for (let at = 0; at < count; at++) {
    const node = preorder[at]!;
    while (height > 0 && subtreeEnd[open[height - 1]!]! <= at) height--;
    const above = height > 0 ? open[height - 1]! : -1;
    const id = looseName[node]!;
    name[at] = id;
    self[at] = looseSelf[node]!;
    total[at] = looseTotal[node]!;
    subtreeEnd[at] = at + size[node]!;
    parent[at] = above;
    depth[at] = height;
    if (above >= 0) {
      start[at] = edge[height - 1]!;
      edge[height - 1]! += total[at]!;
    }
    const hash = nameHash[id]!;
    pathHash[at] = Math.imul((above < 0 ? 0x9e3779b9 : pathHash[above]!) ^ hash, 0x85ebca6b) ^ (hash >>> 13);
    open[height] = at;
    edge[height] = start[at]!;
    height++;
  }
  // What came level by level, and is left in its order, is in order of levels already.
  const { levelNodes, levelOffset } = isByLevel ? { levelNodes: position, levelOffset: levelOffsets(depth) } : levelsOf(depth);
  const levelName = isByLevel ? looseName.slice() : new Uint32Array(count);
  if (!isByLevel) for (let slot = 0; slot < count; slot++) levelName[slot] = name[levelNodes[slot]!]!;
  return { count, names: loose.names, facts: loose.facts, ...looksOf(loose.names, loose.facts), name, parent, depth, total, self, start, subtreeEnd, levelNodes, levelOffset, levelName, pathHash, sides: sidesOf(loose, preorder), unit: loose.unit };
}

function combine(loose: LooseNodes, weights: SideWeights): Float64Array {
  if (!loose.selfB) return loose.selfA;
  const { selfA, selfB } = loose;
  const combined = new Float64Array(loose.count);
  for (let i = 0; i < loose.count; i++) combined[i] = selfA[i]! * weights.a + selfB[i]! * weights.b;
  return combined;
}

/** Loose index of each node in preorder, children in the wanted order; and the other way round, the place of each loose node. */
function preorderOf(loose: LooseNodes, order: ChildOrder, total: Float64Array, size: Int32Array): { preorder: Int32Array; position: Int32Array; isByLevel: boolean } {
  const { count, parent, name } = loose;
  const childOffset = new Int32Array(count + 1);
  let sortedByParent = true;
  for (let i = 1; i < count; i++) {
    childOffset[parent[i]! + 1]!++;
    if (i > 1 && parent[i]! < parent[i - 1]!) sortedByParent = false;
  }
  for (let i = 0; i < count; i++) childOffset[i + 1]! += childOffset[i]!;
  const children = new Int32Array(Math.max(0, count - 1));
  if (sortedByParent) {
    // Level by level, as flamebearer comes: the children of each node already lie together.
    for (let i = 1; i < count; i++) children[i - 1] = i;
  } else {
    const fill = childOffset.slice(0, count);
    for (let i = 1; i < count; i++) children[fill[parent[i]!]!++] = i;
  }
  if (order !== 'given') {
    const rank = order === 'name' ? nameRanks(loose.names) : null;
    const compare = rank ? (x: number, y: number) => rank[name[x]!]! - rank[name[y]!]! : (x: number, y: number) => total[y]! - total[x]! || x - y;
    for (let i = 0; i < count; i++) {
      const from = childOffset[i]!;
      const to = childOffset[i + 1]!;
      if (to - from > 1) children.subarray(from, to).sort(compare);
    }
  }
  const position = new Int32Array(count);
  const preorder = new Int32Array(count);
  for (let node = 0; node < count; node++) {
    let next = position[node]! + 1;
    preorder[next - 1] = node;
    for (let c = childOffset[node]!; c < childOffset[node + 1]!; c++) {
      const child = children[c]!;
      position[child] = next;
      next += size[child]!;
    }
  }
  return { preorder, position, isByLevel: sortedByParent && order === 'given' };
}

function sidesOf(loose: LooseNodes, preorder: Int32Array): DiffSides | null {
  if (!loose.selfB) return null;
  const gather = (values: Float64Array) => {
    const gathered = new Float64Array(values.length);
    for (let at = 0; at < values.length; at++) gathered[at] = values[preorder[at]!]!;
    return gathered;
  };
  const totalA = sumUpwards(loose.selfA, loose.parent);
  const totalB = sumUpwards(loose.selfB, loose.parent);
  return {
    totalA: gather(totalA),
    totalB: gather(totalB),
    selfA: gather(loose.selfA),
    selfB: gather(loose.selfB),
    ticksA: loose.ticksA ?? totalA[0] ?? 0,
    ticksB: loose.ticksB ?? totalB[0] ?? 0,
  };
}

const knownHashes = new WeakMap<readonly string[], Uint32Array>();

function hashesOf(names: readonly string[]): Uint32Array {
  let hashes = knownHashes.get(names);
  if (!hashes) {
    hashes = new Uint32Array(names.length);
    for (let i = 0; i < names.length; i++) hashes[i] = hashText(names[i]!);
    knownHashes.set(names, hashes);
  }
  return hashes;
}

const knownLooks = new WeakMap<readonly string[], { kindOfName: Uint8Array; hueOfName: Uint8Array }>();

/** Kind and colour of each name, found once: twenty thousand names cost more than painting does. Copies, since trees travel. */
export function looksOf(names: readonly string[], facts: readonly FrameFacts[] | null): { kindOfName: Uint8Array; hueOfName: Uint8Array } {
  let looks = knownLooks.get(names);
  if (!looks) {
    looks = { kindOfName: new Uint8Array(names.length), hueOfName: new Uint8Array(names.length) };
    for (let i = 0; i < names.length; i++) {
      looks.kindOfName[i] = FRAME_KINDS.indexOf(kindOf(names[i]!, facts?.[i]));
      looks.hueOfName[i] = stableHash(packageOf(names[i]!, facts?.[i]) || names[i]!) % HUES;
    }
    knownLooks.set(names, looks);
  }
  return { kindOfName: looks.kindOfName.slice(), hueOfName: looks.hueOfName.slice() };
}

/** Where each level begins among all nodes in order of levels. */
function levelOffsets(depth: Uint16Array): Int32Array {
  let deepest = 0;
  for (let i = 0; i < depth.length; i++) if (depth[i]! > deepest) deepest = depth[i]!;
  const levelOffset = new Int32Array(deepest + 2);
  for (let i = 0; i < depth.length; i++) levelOffset[depth[i]! + 1]!++;
  for (let d = 0; d <= deepest; d++) levelOffset[d + 1]! += levelOffset[d]!;
  return levelOffset;
}

/** Preorder visits each level from left to right, so a stable counting sort by depth is all it takes. */
export function levelsOf(depth: Uint16Array): { levelNodes: Int32Array; levelOffset: Int32Array } {
  const levelOffset = levelOffsets(depth);
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

/** Where most of a function's time is; −1 where it is not at all. */
export function heaviestNamed(tree: FlameTree, name: number): number {
  let best = -1;
  for (let node = name < 0 ? tree.count : 0; node < tree.count; node++) {
    if (tree.name[node] === name && (best < 0 || tree.total[node]! > tree.total[best]!)) best = node;
  }
  return best;
}

/** Names from the root to the node. */
export function stackOf(tree: FlameTree, node: number): number[] {
  const stack: number[] = [];
  for (let i = node; i >= 0; i = tree.parent[i]!) stack.push(i);
  return stack.reverse();
}
