// For assistive tools: a tree of what is around the current frame. Arrows walk parent, child and siblings; Enter zooms.
// Only the path, the siblings and the children exist as elements: a million nodes would help nobody.
import { useMemo } from 'react';
import { formatShare, formatValue } from '../format/units';
import { type FlameTree, stackOf } from './tree';

const MOST_SIBLINGS = 30;

export function childrenOf(tree: FlameTree, node: number, most = MOST_SIBLINGS): number[] {
  const children: number[] = [];
  for (let child = node + 1; child < tree.subtreeEnd[node]! && children.length < 5000; child = tree.subtreeEnd[child]!) children.push(child);
  return children.length <= most ? children : children.sort((a, b) => tree.total[b]! - tree.total[a]!).slice(0, most);
}

export function describeNode(tree: FlameTree, node: number): string {
  const parent = tree.parent[node]!;
  const name = tree.names[tree.name[node]!]!;
  const total = `${formatValue(tree.total[node]!, tree.unit)}, ${formatShare(tree.total[node]! / (tree.total[0] || 1))} of all`;
  if (parent < 0) return `${name}, ${total}`;
  const heavier = childrenOf(tree, parent, 5000).filter((sibling) => tree.total[sibling]! > tree.total[node]!).length;
  return `${name}, ${total}, self ${formatValue(tree.self[node]!, tree.unit)}, rank ${heavier + 1} under its caller`;
}

/** Where an arrow leads; −1 where it leads nowhere. `growsUp` turns up and down around, as on the screen. */
export function neighbour(tree: FlameTree, node: number, key: string, growsUp: boolean): number {
  const down = growsUp ? 'ArrowUp' : 'ArrowDown';
  const up = growsUp ? 'ArrowDown' : 'ArrowUp';
  if (key === up) return tree.parent[node]!;
  if (key === down) {
    // Into the heaviest child: that is where one wants to go.
    let best = -1;
    for (let child = node + 1; child < tree.subtreeEnd[node]!; child = tree.subtreeEnd[child]!) if (best < 0 || tree.total[child]! > tree.total[best]!) best = child;
    return best;
  }
  const parent = tree.parent[node]!;
  if (parent < 0) return -1;
  if (key === 'ArrowRight') return tree.subtreeEnd[node]! < tree.subtreeEnd[parent]! ? tree.subtreeEnd[node]! : -1;
  if (key === 'ArrowLeft') {
    let before = -1;
    for (let child = parent + 1; child < node; child = tree.subtreeEnd[child]!) before = child;
    return before;
  }
  return -1;
}

export function TreeMirror({ tree, node, id }: { tree: FlameTree; node: number; id: string }) {
  const shown = useMemo(() => {
    const path = stackOf(tree, node);
    const parent = tree.parent[node]!;
    const siblings = parent < 0 ? [] : childrenOf(tree, parent);
    return [...new Set([...path, ...siblings, ...childrenOf(tree, node)])];
  }, [tree, node]);
  return (
    <>
      {shown.map((item) => (
        <div key={item} id={`${id}-${item}`} role="treeitem" className="sr-only" aria-level={tree.depth[item]! + 1} aria-selected={item === node} aria-expanded={tree.subtreeEnd[item]! > item + 1 ? item === node || tree.depth[item]! < tree.depth[node]! : undefined}>
          {describeNode(tree, item)}
        </div>
      ))}
    </>
  );
}
