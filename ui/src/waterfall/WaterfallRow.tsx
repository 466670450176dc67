import { memo } from 'react';
import type { SpanProfileFacts } from '../api/profiles';
import type { RawSpan } from '../api/traces';
import { formatDuration } from '../format/units';
import { barParts } from './barParts';
import type { SiblingGroup } from './rows';
import type { TimeWindow } from './TimeWindow';
import type { TraceModel } from './traceModel';

interface Common {
  trace: TraceModel;
  window: TimeWindow;
  top: number;
  colour: string;
  selected: boolean;
  onSelect: (row: number) => void;
  onToggle: (row: number) => void;
  row: number;
  rowIndex: number;
  /** In pixels. */
  indent: number;
}

/** More marks than this on a bar can't be told apart. */
const MOST_EVENTS = 20;

const percent = (value: number, window: TimeWindow) => `${((value - window.from) / (window.to - window.from)) * 100}%`;
const extent = (from: number, to: number, window: TimeWindow) => ({ left: percent(from, window), width: `${((to - from) / (window.to - window.from)) * 100}%` });

/** Duration beside the bar: right of it where there is room, else left, else inside. */
function timePlace(from: number, to: number, window: TimeWindow): React.CSSProperties {
  const begin = (from - window.from) / (window.to - window.from);
  const end = (to - window.from) / (window.to - window.from);
  if (end < 0.86) return { left: `max(0%, ${end * 100}%)` };
  if (begin > 0.16) return { right: `max(0%, ${(1 - begin) * 100}%)` };
  return { left: `calc(max(0%, ${begin * 100}%) + 4px)`, background: 'color-mix(in srgb, var(--panel) 85%, transparent)', color: 'var(--text)' };
}

export const SpanRow = memo(function SpanRow({
  trace, window, top, colour, selected, onSelect, onToggle, row: span, rowIndex, facts, traceHasProfiles, critical, events, faded, folded, indent,
}: Common & { events: RawSpan['events']; facts: SpanProfileFacts | undefined; traceHasProfiles: boolean; critical: readonly [number, number][] | undefined; faded: boolean; folded: boolean }) {
  const from = trace.start[span]!;
  const to = from + trace.duration[span]!;
  const hasChildren = trace.subtreeEnd[span]! > span + 1;
  const visible = to >= window.from && from <= window.to;
  const samples = facts?.samples ?? 0;
  return (
    <div
      className={`wf-row${faded ? ' faded' : ''}`}
      id={`span-${span}`}
      role="row"
      aria-rowindex={rowIndex + 1}
      aria-level={trace.depth[span]! + 1}
      aria-expanded={hasChildren ? !folded : undefined}
      aria-selected={selected}
      style={{ top, '--c': colour } as React.CSSProperties}
      onClick={() => onSelect(span)}
    >
      <div className="wf-label" role="gridcell" style={{ paddingLeft: 2 + indent }}>
        <span className="wf-edge" style={{ background: colour }} />
        {hasChildren ? (
          <button
            className="wf-twist"
            tabIndex={-1}
            aria-label={folded ? 'Unfold' : 'Fold'}
            onClick={(event) => {
              event.stopPropagation();
              onToggle(span);
            }}
          >
            {folded ? '▸' : '▾'}
          </button>
        ) : (
          <span className="wf-twist" />
        )}
        <span className="wf-name" title={`${trace.service[span]} ${trace.name[span]}`}>
          {trace.services.length > 1 && <span className="wf-service">{trace.service[span]}</span>} <span>{trace.name[span]}</span>
        </span>
        {trace.failed[span] === 1 && <span className="wf-error">✕ error</span>}
        {folded && hasChildren && <span className="muted">+{trace.subtreeEnd[span]! - span - 1}</span>}
      </div>
      <div className="wf-track" role="gridcell">
        {visible &&
          barParts(trace, span, facts, traceHasProfiles).map((part, index) => <span key={index} className={`wf-part ${part.kind}`} style={extent(part.from, part.to, window)} />)}
        {visible && critical?.map(([pieceFrom, pieceTo], index) => <span key={index} className="wf-critical" style={extent(pieceFrom, pieceTo, window)} />)}
        {visible &&
          events?.slice(0, MOST_EVENTS).map((event, index) => (
            <span key={index} className="wf-event" title={event.name} style={{ left: percent(Number(BigInt(event.timeUnixNano ?? '0') - trace.originNanos), window) }} />
          ))}
        <span className="wf-time" style={timePlace(from, to, window)}>
          {formatDuration(trace.duration[span]!)}
          {facts?.cpu_ns ? <span className="sr-only">, {formatDuration(facts.cpu_ns)} on CPU</span> : null}
          {samples > 0 && <span title={`${samples} samples`}> · {samples}∿</span>}
        </span>
      </div>
    </div>
  );
});

export const GroupRow = memo(function GroupRow({ trace, window, top, colour, selected, onSelect, onToggle, row, rowIndex, group, open, indent }: Common & { group: SiblingGroup; open: boolean }) {
  const first = group.members[0]!;
  return (
    <div className="wf-row" role="row" aria-rowindex={rowIndex + 1} aria-level={trace.depth[first]! + 1} aria-expanded={open} aria-selected={selected} style={{ top, '--c': colour } as React.CSSProperties} onClick={() => onSelect(row)} onDoubleClick={() => onToggle(row)}>
      <div className="wf-label" role="gridcell" style={{ paddingLeft: 2 + indent }}>
        <span className="wf-edge" style={{ background: colour }} />
        <button
          className="wf-twist"
          tabIndex={-1}
          aria-label={open ? 'Fold the group' : 'Unfold the group'}
          onClick={(event) => {
            event.stopPropagation();
            onToggle(row);
          }}
        >
          {open ? '▾' : '▸'}
        </button>
        <span className="wf-name" title={`${trace.service[first]} ${trace.name[first]}`}>
          {trace.services.length > 1 && <span className="wf-service">{trace.service[first]}</span>} <span>{trace.name[first]}</span>
        </span>
        <span className="wf-count">
          <b>× {group.members.length}</b> · {formatDuration(group.totalNs)}
        </span>
        {group.failed > 0 && <span className="wf-error">✕ {group.failed} {group.failed === 1 ? 'error' : 'errors'}</span>}
      </div>
      <div className="wf-track" role="gridcell">
        <span className="wf-part group" style={extent(group.from, group.to, window)} />
        <span className="wf-time" style={timePlace(group.from, group.to, window)}>
          {group.members.length} × {formatDuration(group.totalNs / group.members.length)}
        </span>
      </div>
    </div>
  );
});
