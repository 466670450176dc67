// The top table, linked with the graph: a click selects the function everywhere, Enter opens its sandwich.
import { useMemo, useState } from 'react';
import { SortHead, type SortOrder } from '../app/SortHead';
import { VirtualRows } from '../app/VirtualRows';
import { formatShare, formatValue } from '../format/units';
import { beyondNoise, type DiffMode, formatCompared, formatDelta, type SideSizes } from './diff';
import { type FunctionOrder, functionTable, orderFunctions } from './functions';
import type { SearchResult } from './search';
import type { FlameTree, SideWeights } from './tree';

interface Props {
  tree: FlameTree;
  weights: SideWeights;
  search: SearchResult | null;
  /** What one sample stands for on each side; zero where the answer does not say. */
  perSample: SideWeights;
  selected: string;
  mode: DiffMode;
  sizes: SideSizes;
  onSelect: (functionName: string) => void;
  onOpen: (functionName: string) => void;
  onMenu: (functionName: string, x: number, y: number) => void;
}

export function FunctionTable({ tree, weights, search, perSample, selected, mode, sizes, onSelect, onOpen, onMenu }: Props) {
  const isDiff = tree.sides !== null;
  const [order, setOrder] = useState<SortOrder<FunctionOrder>>({ column: isDiff ? 'deltaSelf' : 'self', descending: true });
  const table = useMemo(() => functionTable(tree, weights), [tree, weights]);
  const [onlyClear, setOnlyClear] = useState(false);
  const canTell = isDiff && perSample.a > 0 && perSample.b > 0;
  const rows = useMemo(() => {
    const ordered = orderFunctions(table, tree.names, order.column, order.descending, search ? (name) => search.matched[name] === 1 : null);
    return onlyClear && canTell ? ordered.filter((row) => beyondNoise(table.selfA[row]!, table.selfB[row]!, weights, perSample)) : ordered;
  }, [table, tree.names, order, search, onlyClear, canTell, perSample, weights]);
  const listed = rows.reduce((sum, row) => sum + table.deltaSelf[row]!, 0);
  const rootChange = tree.sides ? (tree.sides.totalB[0] ?? 0) * weights.b - (tree.sides.totalA[0] ?? 0) * weights.a : 0;
  const whole = tree.total[0] || 1;
  const at = rows.findIndex((row) => tree.names[table.name[row]!] === selected);
  const head = (column: FunctionOrder, label: string, isNumber = true) => (
    <SortHead as="span" column={column} label={label} isText={!isNumber} order={order} setOrder={setOrder} />
  );
  const cell = (value: number) => (
    <span className="fn-cell" role="cell" style={{ '--share': `${Math.min(100, (value / whole) * 100)}%` } as React.CSSProperties}>
      <span title={`${formatShare(value / whole)} of all`}>{formatValue(value, tree.unit)}</span>
    </span>
  );
  const side = (value: number) => (
    <span className="number" role="cell">
      {value === 0 ? <span className="muted">–</span> : formatCompared(value, mode, tree.unit, sizes)}
    </span>
  );
  const delta = (value: number) => (
    <span className={`number ${value > 0 ? 'more' : value < 0 ? 'less' : 'muted'}`} role="cell">
      {formatDelta(value, mode, tree.unit, sizes)}
    </span>
  );
  return (
    <>
    {isDiff && (
      <div className="fn-sum">
        <span>
          All: <b>{formatDelta(rootChange, mode, tree.unit, sizes)}</b>; the self changes of the {rows.length.toLocaleString('en-US')} listed functions sum to <b>{formatDelta(listed, mode, tree.unit, sizes)}</b>
        </span>
        <label title={canTell ? 'Hides changes under three standard deviations of counting noise' : 'This answer does not say what one sample stands for'}>
          <input type="checkbox" disabled={!canTell} checked={onlyClear && canTell} onChange={(event) => setOnlyClear(event.target.checked)} /> only changes beyond sampling noise
        </label>
      </div>
    )}
    <VirtualRows
      count={rows.length}
      rowHeight={22}
      label="Functions"
      role="table"
      follow={at}
      onKeyDown={(event) => {
        const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
        if (step !== 0 && rows.length > 0) {
          event.preventDefault();
          onSelect(tree.names[table.name[rows[Math.min(rows.length - 1, Math.max(0, at + step))]!]!]!);
        } else if (event.key === 'Enter' && at >= 0) {
          event.preventDefault();
          onOpen(selected);
        }
      }}
      header={
        <div className={`fn-head${isDiff ? ' diff' : ''}`} role="row">
          {head('name', 'Function', false)}
          {isDiff ? head('selfA', 'Self A') : head('self', 'Self')}
          {isDiff ? head('selfB', 'Self B') : head('total', 'Total')}
          {isDiff && head('deltaSelf', 'Change self')}
          {isDiff && head('deltaTotal', 'Change total')}
        </div>
      }
    >
      {(position) => {
        const row = rows[position]!;
        const name = tree.names[table.name[row]!]!;
        const facts = tree.facts?.[table.name[row]!];
        return (
          <div
            key={row}
            className={`fn-row${isDiff ? ' diff' : ''}`}
            role="row"
            aria-selected={name === selected}
            onClick={() => onSelect(name)}
            onDoubleClick={() => onOpen(name)}
            onContextMenu={(event) => {
              event.preventDefault();
              onSelect(name);
              onMenu(name, event.clientX, event.clientY);
            }}
          >
            <span className="mono" role="cell" title={`${name}${facts?.file ? `\n${facts.file}:${facts.line ?? ''}` : ''}`}>
              {name} {facts?.file && <span className="muted">{`${facts.file.split('/').pop()}${facts.line ? `:${facts.line}` : ''}`}</span>}
            </span>
            {isDiff ? side(table.selfA[row]! * weights.a) : cell(table.self[row]!)}
            {isDiff ? side(table.selfB[row]! * weights.b) : cell(table.total[row]!)}
            {isDiff && delta(table.deltaSelf[row]!)}
            {isDiff && delta(table.deltaTotal[row]!)}
          </div>
        );
      }}
    </VirtualRows>
    </>
  );
}
