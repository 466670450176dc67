import { useState } from 'react';
import { dateAndTime, utc } from '../format/clock';
import { rangeLabel, RELATIVE_RANGES, shiftRange } from '../location/timeRange';
import { refreshNow, useTimeRange } from '../location/useTimeRange';

/** `datetime-local` speaks the viewer's zone without saying so. */
export function localInput(milliseconds: number): string {
  const date = new Date(milliseconds);
  return new Date(milliseconds - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

export function TimeRangePicker() {
  const { range, resolved, setRange } = useTimeRange();
  const [editing, setEditing] = useState(false);
  const label = rangeLabel(range);
  const hover = `${utc(resolved.fromMs)} to ${utc(resolved.toMs)}`;
  const [from, setFrom] = useState('');
  const [to, setTo] = useState('');
  return (
    <span className="range-picker">
      <span className="buttons">
        <button title="Earlier  [" aria-label="Earlier" onClick={() => setRange(shiftRange(range, -1, Date.now()))}>
          ‹
        </button>
        <select
          aria-label="Time range"
          title={hover}
          value={label ?? 'custom'}
          onChange={(event) => {
            const known = RELATIVE_RANGES.find((candidate) => candidate.label === event.target.value);
            if (known) {
              setEditing(false);
              setRange(known.range);
            } else {
              setFrom(localInput(resolved.fromMs));
              setTo(localInput(resolved.toMs));
              setEditing(true);
            }
          }}
        >
          {RELATIVE_RANGES.map((known) => (
            <option key={known.label}>{known.label}</option>
          ))}
          <option value="custom">{label ? 'from … to …' : `${dateAndTime(resolved.fromMs)} – ${dateAndTime(resolved.toMs)}`}</option>
          {!label && <option value="edit">change …</option>}
        </select>
        <button title="Later  ]" aria-label="Later" onClick={() => setRange(shiftRange(range, 1, Date.now()))}>
          ›
        </button>
        <button title="Read again" aria-label="Read again" onClick={refreshNow}>
          ↻
        </button>
      </span>
      {editing && (
        <form
          className="menu row"
          onSubmit={(event) => {
            event.preventDefault();
            setEditing(false);
            setRange({ from: String(new Date(from).getTime()), to: String(new Date(to).getTime()) });
          }}
          onKeyDown={(event) => {
            if (event.key !== 'Escape') return;
            event.stopPropagation();
            setEditing(false);
          }}
        >
          <input aria-label="From" autoFocus type="datetime-local" step="1" value={from} onChange={(event) => setFrom(event.target.value)} />
          <input aria-label="To" type="datetime-local" step="1" value={to} onChange={(event) => setTo(event.target.value)} />
          <button className="primary" disabled={!(new Date(from) < new Date(to))}>
            Set
          </button>
          <button type="button" onClick={() => setEditing(false)}>
            Cancel
          </button>
        </form>
      )}
    </span>
  );
}
