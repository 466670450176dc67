// Which rows the waterfall shows: folded subtrees, repeated siblings as one row, filtered spans with their ancestors.
import { childrenOf, type TraceModel } from './traceModel';

/** Fewer than this are easier to read one by one. */
const GROUP_FROM = 5;

export interface SiblingGroup {
  parent: number;
  members: number[];
  totalNs: number;
  from: number;
  to: number;
  failed: number;
}

export interface Grouping {
  groups: readonly SiblingGroup[];
  /** Group of each span, −1 for none. */
  groupOf: Int32Array;
}

export function groupSiblings(trace: TraceModel): Grouping {
  const groups: SiblingGroup[] = [];
  const groupOf = new Int32Array(trace.count).fill(-1);
  for (let parent = 0; parent < trace.count; parent++) {
    if (trace.subtreeEnd[parent]! - parent <= GROUP_FROM) continue;
    const byName = new Map<string, number[]>();
    for (const child of childrenOf(trace, parent)) {
      const key = likeness(trace, child);
      const list = byName.get(key);
      if (list) list.push(child);
      else byName.set(key, [child]);
    }
    for (const members of byName.values()) {
      if (members.length < GROUP_FROM) continue;
      const group: SiblingGroup = { parent, members, totalNs: 0, from: Infinity, to: 0, failed: 0 };
      for (const member of members) {
        groupOf[member] = groups.length;
        group.totalNs += trace.duration[member]!;
        group.from = Math.min(group.from, trace.start[member]!);
        group.to = Math.max(group.to, trace.start[member]! + trace.duration[member]!);
        group.failed += trace.failed[member]!;
      }
      groups.push(group);
    }
  }
  return { groups, groupOf };
}

/** Calls named alike (`POST`) that lead to different places are not repetitions of each other. */
function likeness(trace: TraceModel, span: number): string {
  const below = trace.subtreeEnd[span]! > span + 1 ? span + 1 : -1;
  return [trace.service[span], trace.name[span], below < 0 ? '' : `${trace.service[below]} ${trace.name[below]}`].join('\0');
}

export interface RowOptions {
  collapsed: ReadonlySet<number>;
  openGroups: ReadonlySet<number>;
  /** Deeper spans are folded; Infinity shows all. */
  maxDepth: number;
  /** 1 for spans to keep; null keeps all. */
  keep: Uint8Array | null;
  grouped: boolean;
}

/** A row is a span's index, or −1 − group for a group's head. */
export function visibleRows(trace: TraceModel, grouping: Grouping, options: RowOptions): Int32Array {
  const kept = options.keep && withAncestors(trace, options.keep);
  const rows = new Int32Array(trace.count + grouping.groups.length);
  let filled = 0;
  for (let span = 0; span < trace.count; ) {
    if (kept && !kept[span]) {
      span = trace.subtreeEnd[span]!;
      continue;
    }
    const group = options.grouped && !kept ? grouping.groupOf[span]! : -1;
    if (group >= 0) {
      if (grouping.groups[group]!.members[0] === span) rows[filled++] = -1 - group;
      if (!options.openGroups.has(group)) {
        span = trace.subtreeEnd[span]!;
        continue;
      }
    }
    rows[filled++] = span;
    const folded = !kept && (options.collapsed.has(span) || trace.depth[span]! >= options.maxDepth);
    span = folded ? trace.subtreeEnd[span]! : span + 1;
  }
  return rows.slice(0, filled);
}

export function withAncestors(trace: TraceModel, keep: Uint8Array): Uint8Array {
  const kept = keep.slice();
  for (let span = trace.count - 1; span > 0; span--) if (kept[span] && trace.parent[span]! >= 0) kept[trace.parent[span]!] = 1;
  return kept;
}

/** Indents take at most this share of the names' column: what is left belongs to the names. */
const MOST_INDENT = 0.4;
/** Pixels per level where there is room, and the least that can still be told apart. */
const INDENT = 12;
const LEAST_INDENT = 3;

/** How far a row of this depth is indented, in pixels. Deep traces get smaller steps; very deep ones stop before names are gone. */
export function indentOf(depth: number, deepest: number, columnPx: number): number {
  const room = Math.max(1, columnPx) * MOST_INDENT;
  const step = Math.min(INDENT, Math.max(LEAST_INDENT, room / Math.max(1, deepest)));
  return Math.min(room, depth * step);
}
