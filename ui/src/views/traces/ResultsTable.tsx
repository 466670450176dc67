import { useEffect, useMemo, useRef, useState } from 'react';
import { plainValue, type SpanRow } from '../../api/traces';
import { dateAndTime, utc } from '../../format/clock';
import { formatDuration, formatShare } from '../../format/units';
import { useKeys } from '../../keys/keyLayer';
import { hrefOf, openView } from '../../location/urlState';

type Column = 'startMs' | 'durationNs' | 'cpu';

interface Props {
  rows: readonly SpanRow[];
  selected: string;
  onSelect: (row: SpanRow) => void;
}

const cpuOf = (row: SpanRow): number | null => {
  const text = plainValue(row.attributes.find((pair) => pair.key === 'profile.cpu' || pair.key === 'cpu')?.value);
  const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : NaN;
  return Number.isFinite(value) ? value : null;
};
const samplesOf = (row: SpanRow): string => plainValue(row.attributes.find((pair) => pair.key === 'profile.samples' || pair.key === 'samples')?.value);

export const keyOf = (row: SpanRow): string => `${row.traceId}.${row.spanId}`;

export function ResultsTable({ rows, selected, onSelect }: Props) {
  const [column, setColumn] = useState<Column>('durationNs');
  const [descending, setDescending] = useState(true);
  const body = useRef<HTMLTableSectionElement>(null);
  const sorted = useMemo(() => {
    const value = (row: SpanRow) => (column === 'cpu' ? (cpuOf(row) ?? -1) / row.durationNs : row[column]);
    return [...rows].sort((a, b) => (descending ? value(b) - value(a) : value(a) - value(b)));
  }, [rows, column, descending]);
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
  const hasCpu = useMemo(() => rows.some((row) => cpuOf(row) !== null), [rows]);
  const head = (name: Column, label: string) => (
    <th className="number" aria-sort={column === name ? (descending ? 'descending' : 'ascending') : 'none'}>
      <button
        onClick={() => {
          setDescending(column === name ? !descending : true);
          setColumn(name);
        }}
      >
        {label} {column === name ? (descending ? '↓' : '↑') : ''}
      </button>
    </th>
  );
  return (
    <table>
      <thead>
        <tr>
          {head('startMs', 'Time')}
          <th>Service</th>
          <th>Span</th>
          {head('durationNs', 'Duration')}
          {hasCpu && head('cpu', 'On CPU')}
          <th>Status</th>
          <th>Trace</th>
        </tr>
      </thead>
      <tbody ref={body}>
        {sorted.slice(0, 500).map((row) => {
          const cpu = cpuOf(row);
          const samples = samplesOf(row);
          return (
            <tr key={keyOf(row)} aria-selected={keyOf(row) === selected} onClick={() => onSelect(row)} onDoubleClick={() => openView(['trace', row.traceId], { span: row.spanId })}>
              <td className="number" title={utc(row.startMs)}>
                {dateAndTime(row.startMs)}
              </td>
              <td>{row.service}</td>
              <td className="ellipsis" style={{ maxWidth: 220 }}>
                {row.name}
              </td>
              <td className="number">{formatDuration(row.durationNs)}</td>
              {hasCpu && (
                <td className="number" title={cpu === null ? 'no samples' : `${formatDuration(cpu)} on CPU${samples ? `, ${samples} samples` : ''}`}>
                  {cpu !== null && (
                    <>
                      <span className="cpu-share" aria-hidden="true">
                        <i style={{ width: `${Math.min(100, (cpu / row.durationNs) * 100)}%` }} />
                      </span>
                      {formatShare(cpu / row.durationNs)}
                    </>
                  )}
                </td>
              )}
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
    </table>
  );
}
