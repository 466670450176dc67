// The spans that a question found, slowest first, with what their whole traces cost.
import { useEffect, useMemo, useRef, useState } from 'react';
import type { TraceCost } from '../../api/cohort';
import type { SpanRow } from '../../api/traces';
import { SortHead, type SortOrder } from '../../app/SortHead';
import { dateAndTime, utc } from '../../format/clock';
import { formatCount, formatDuration, formatShare } from '../../format/units';
import { useKeys } from '../../keys/keyLayer';
import { hrefOf, openView } from '../../location/urlState';

type Column = 'startMs' | 'durationNs' | 'cpu' | 'samples';

interface Props {
  rows: readonly SpanRow[];
  /** Null until known. */
  costs: Readonly<Record<string, TraceCost>> | null;
  selected: string;
  onSelect: (row: SpanRow) => void;
}

/** More rows than this nobody scrolls through; sorting and the box choose which. */
const MOST_ROWS = 500;

export const keyOf = (row: SpanRow): string => `${row.traceId}.${row.spanId}`;

export function ResultsTable({ rows, costs, selected, onSelect }: Props) {
  const [order, setOrder] = useState<SortOrder<Column>>({ column: 'durationNs', descending: true });
  const body = useRef<HTMLTableSectionElement>(null);
  const sorted = useMemo(() => {
    const { column, descending } = order;
    const value = (row: SpanRow) => {
      const cost = costs?.[row.traceId];
      if (column === 'cpu') return cost ? cost.cpu_ns / row.traceDurationNs : -1;
      return column === 'samples' ? (cost?.samples ?? -1) : row[column];
    };
    return [...rows].sort((a, b) => (descending ? value(b) - value(a) : value(a) - value(b)));
  }, [rows, costs, order]);
  const at = sorted.findIndex((row) => keyOf(row) === selected);
  const step = (by: number) => sorted.length > 0 && onSelect(sorted[Math.min(sorted.length - 1, Math.max(0, at + by))]!);
  useEffect(() => {
    body.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: 'nearest' });
  }, [selected]);
  useKeys('Results', [
    { key: 'j', does: 'next row', run: () => step(1) },
    { key: 'k', does: 'previous row', run: () => step(-1) },
    { key: 'Enter', does: 'open the trace', run: () => sorted[at] && openView(['trace', sorted[at].traceId], { span: sorted[at].spanId }) },
  ]);
  // One service for all is said by the question already.
  const hasServices = useMemo(() => new Set(rows.map((row) => row.service)).size > 1, [rows]);
  // Their columns stand before they are known: what comes later must not push the others aside.
  const hasCosts = costs === null || Object.keys(costs).length > 0;
  const head = (column: Column, label: string, title?: string) => <SortHead column={column} label={label} title={title} order={order} setOrder={setOrder} />;
  return (
    <table>
      <thead>
        <tr>
          {head('startMs', 'Time')}
          {hasServices && <th>Service</th>}
          <th>Span</th>
          {head('durationNs', 'Duration')}
          {hasCosts && head('cpu', 'On CPU', 'CPU time of the whole trace, of its duration')}
          {hasCosts && head('samples', 'Samples', 'Of the whole trace')}
          <th>Status</th>
          <th>Trace</th>
        </tr>
      </thead>
      <tbody ref={body}>
        {sorted.slice(0, MOST_ROWS).map((row) => {
          const cost = costs?.[row.traceId];
          const share = cost ? cost.cpu_ns / row.traceDurationNs : 0;
          return (
            <tr key={keyOf(row)} aria-selected={keyOf(row) === selected} onClick={() => onSelect(row)} onDoubleClick={() => openView(['trace', row.traceId], { span: row.spanId })}>
              <td className="number" title={utc(row.startMs)}>
                {dateAndTime(row.startMs)}
              </td>
              {hasServices && <td>{row.service}</td>}
              <td className="ellipsis" style={{ maxWidth: 220 }}>
                {row.name}
              </td>
              <td className="number">{formatDuration(row.durationNs)}</td>
              {hasCosts && (
                <td className="number cost" title={cost ? `${formatDuration(cost.cpu_ns)} on CPU and ${formatDuration(cost.wait_ns)} waiting in a trace of ${formatDuration(row.traceDurationNs)}` : costs ? 'no samples' : undefined}>
                  {cost && (
                    <>
                      <span className="cpu-share" aria-hidden="true">
                        <i style={{ width: `${Math.min(100, share * 100)}%` }} />
                      </span>
                      <span className="share">{formatShare(share)}</span>
                    </>
                  )}
                </td>
              )}
              {hasCosts && <td className="number">{cost && formatCount(cost.samples)}</td>}
              <td>{row.failed ? <span className="error-text">✕ error</span> : ''}</td>
              <td className="mono">
                <a href={hrefOf(['trace', row.traceId], { span: row.spanId })} onClick={(event) => event.stopPropagation()}>
                  {row.traceId.slice(0, 8)}
                </a>
              </td>
            </tr>
          );
        })}
      </tbody>
      {sorted.length > MOST_ROWS && (
        <tfoot>
          <tr>
            <td colSpan={8} className="muted">
              {formatCount(sorted.length - MOST_ROWS)} more are listed by another order or a smaller box.
            </td>
          </tr>
        </tfoot>
      )}
    </table>
  );
}
