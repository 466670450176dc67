// The call tree as rows that unfold: preorder makes "the next visible row" either the next node or the end of the subtree.
import { useEffect, useMemo, useState } from 'react';
import { VirtualRows } from '../app/VirtualRows';
import { formatShare, formatValue } from '../format/units';
import type { SearchResult } from './search';
import { type FlameTree, stackOf } from './tree';

interface Props {
  tree: FlameTree;
  search: SearchResult | null;
  selected: number;
  onSelect: (node: number) => void;
  onMenu: (node: number, x: number, y: number) => void;
}

/** The hottest path down to where the time is no longer in one child. */
function hotPath(tree: FlameTree): number[] {
  const path: number[] = [];
  for (let node = 0; node < tree.count; ) {
    path.push(node);
    let best = -1;
    for (let child = node + 1; child < tree.subtreeEnd[node]!; child = tree.subtreeEnd[child]!) if (best < 0 || tree.total[child]! > tree.total[best]!) best = child;
    if (best < 0 || tree.total[best]! < tree.total[0]! * 0.05) break;
    node = best;
  }
  return path;
}

export function CallTree({ tree, search, selected, onSelect, onMenu }: Props) {
  const [open, setOpen] = useState<ReadonlySet<number>>(() => new Set(hotPath(tree)));
  useEffect(() => setOpen(new Set(hotPath(tree))), [tree]);
  useEffect(() => {
    if (selected >= 0) setOpen((before) => new Set([...before, ...stackOf(tree, selected).slice(0, -1)]));
  }, [tree, selected]);
  const rows = useMemo(() => {
    const visible: number[] = [];
    for (let node = 0; node < tree.count; ) {
      visible.push(node);
      node = open.has(node) ? node + 1 : tree.subtreeEnd[node]!;
    }
    return visible;
  }, [tree, open]);
  const toggle = (node: number, deep = false) => {
    const next = new Set(open);
    if (next.has(node)) next.delete(node);
    else if (deep) for (let i = node; i < Math.min(tree.subtreeEnd[node]!, node + 2000); i++) next.add(i);
    else next.add(node);
    setOpen(next);
  };
  const whole = tree.total[0] || 1;
  const at = rows.indexOf(selected);
  return (
    <VirtualRows
      count={rows.length}
      rowHeight={22}
      label="Call tree"
      className="tree-columns"
      role="treegrid"
      follow={at}
      onKeyDown={(event) => {
        const node = rows[at] ?? 0;
        if (event.key === 'ArrowDown') onSelect(rows[Math.min(rows.length - 1, at + 1)]!);
        else if (event.key === 'ArrowUp') onSelect(rows[Math.max(0, at - 1)]!);
        else if (event.key === 'ArrowRight' && open.has(node)) onSelect(rows[Math.min(rows.length - 1, at + 1)]!);
        else if (event.key === 'ArrowRight' || (event.key === 'ArrowLeft' && open.has(node))) toggle(node);
        else if (event.key === 'ArrowLeft') onSelect(Math.max(0, tree.parent[node]!));
        else if (event.key === '*') toggle(node, true);
        else return;
        event.preventDefault();
        event.stopPropagation();
      }}
      header={
        <div className="fn-head" role="row">
          <span role="columnheader">Call</span>
          <span className="number" role="columnheader">
            Self
          </span>
          <span className="number" role="columnheader">
            Total
          </span>
        </div>
      }
    >
      {(position) => {
        const node = rows[position]!;
        const leaf = tree.subtreeEnd[node]! === node + 1;
        const hit = search?.matched[tree.name[node]!] === 1;
        return (
          <div
            key={node}
            className="fn-row"
            role="row"
            aria-level={tree.depth[node]! + 1}
            aria-expanded={leaf ? undefined : open.has(node)}
            aria-selected={node === selected}
            onClick={() => onSelect(node)}
            onDoubleClick={() => toggle(node)}
            onContextMenu={(event) => {
              event.preventDefault();
              onSelect(node);
              onMenu(node, event.clientX, event.clientY);
            }}
          >
            <span className="mono" role="gridcell" style={{ paddingLeft: Math.min(tree.depth[node]!, 40) * 10, display: 'flex' }}>
              {leaf ? (
                <span className="twist" />
              ) : (
                <button className="twist" tabIndex={-1} aria-label={open.has(node) ? 'Fold' : 'Unfold'} onClick={() => toggle(node)}>
                  {open.has(node) ? '▾' : '▸'}
                </button>
              )}
              <span className="ellipsis" style={hit ? { color: 'var(--hit)', fontWeight: 600 } : undefined}>
                {tree.names[tree.name[node]!]}
              </span>
            </span>
            {[tree.self[node]!, tree.total[node]!].map((value, column) => (
              <span key={column} className="fn-cell" role="gridcell" style={{ '--share': `${(value / whole) * 100}%` } as React.CSSProperties}>
                <span title={formatValue(value, tree.unit)}>
                  {formatValue(value, tree.unit)} <span className="muted">{formatShare(value / whole)}</span>
                </span>
              </span>
            ))}
          </div>
        );
      }}
    </VirtualRows>
  );
}
