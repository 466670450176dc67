// What the waterfall leaves out: by words, by level, by the critical path, by time.
import type { RefObject } from 'react';
import { hasWords } from './spanFilter';

interface Props {
  filter: string;
  onFilter: (text: string) => void;
  filterField: RefObject<HTMLInputElement | null>;
  /** How many spans the filter keeps; null without one. */
  matches: number | null;
  /** Reads the attributes of all spans; null where they are here. */
  readAttributes: (() => void) | null;
  onlyMatches: boolean;
  setOnlyMatches: (only: boolean) => void;
  onlyCritical: boolean;
  setOnlyCritical: (only: boolean) => void;
  levels: { shown: number; all: number; set: (levels: number) => void; unfold: () => void };
  /** Null while all of the time is shown. */
  showWhole: (() => void) | null;
}

export function WaterfallBar({ filter, onFilter, filterField, matches, readAttributes, onlyMatches, setOnlyMatches, onlyCritical, setOnlyCritical, levels, showWhole }: Props) {
  const shown = Math.min(levels.shown, levels.all);
  return (
    <div className="bar" style={{ padding: '2px 8px' }}>
      <input ref={filterField} type="search" className="mono" aria-label="Filter spans" placeholder="word key=value error >100ms -not" style={{ width: 280 }} value={filter} onChange={(event) => onFilter(event.target.value)} />
      {matches !== null && (
        <>
          <span>{matches.toLocaleString('en-US')} match</span>
          {readAttributes && hasWords(filter) && (
            <span className="warn-text">
              by name, service and id; <button onClick={readAttributes}>Look at attributes too</button>
            </span>
          )}
          <label>
            <input type="checkbox" checked={onlyMatches} onChange={(event) => setOnlyMatches(event.target.checked)} /> only these
          </label>
        </>
      )}
      <button aria-pressed={onlyCritical} title="b" onClick={() => setOnlyCritical(!onlyCritical)}>
        Critical path
      </button>
      <span className="buttons" role="group" aria-label="Levels">
        <button title="One level less  -" onClick={() => levels.set(shown - 1)}>
          −
        </button>
        <button
          title="Unfold everything"
          onClick={() => {
            levels.set(levels.all);
            levels.unfold();
          }}
        >
          {shown < levels.all ? `${shown} of ${levels.all} levels` : 'all levels'}
        </button>
        <button title="One level more  +" onClick={() => levels.set(shown + 1)}>
          +
        </button>
      </span>
      {showWhole && <button onClick={showWhole}>Whole time</button>}
    </div>
  );
}
