import type { RefObject } from 'react';
import { formatCount, formatShare, formatValue } from '../format/units';
import { type ColourBy, cssOfPixel, diffColour, KIND_LABELS, kindColour } from './colours';
import type { FrameKind } from './frameNames';
import { parseSearch, type SearchResult } from './search';
import type { Theme } from '../theme/theme';
import type { FlameTree } from './tree';
import { type ChangeFlame, FLAME_VIEWS, type FlameState, type FlameViewName } from './useFlameState';

const VIEW_LABELS: Record<FlameViewName, string> = { flame: 'Flame', icicle: 'Icicle', 'left-heavy': 'Left-heavy', timeline: 'Timeline', sandwich: 'Sandwich', tree: 'Tree', table: 'Table' };

interface Props {
  state: FlameState;
  change: ChangeFlame;
  tree: FlameTree;
  search: SearchResult | null;
  hit: number;
  stepHit: (direction: 1 | -1) => void;
  searchField: RefObject<HTMLInputElement | null>;
  hasTimeline: boolean;
  openMore: (x: number, y: number) => void;
}

export function FlameToolbar({ state, change, tree, search, hit, stepHit, searchField, hasTimeline, openMore }: Props) {
  const problem = state.find ? parseSearch(state.find).problem : null;
  return (
    <div className="flame-bar" role="toolbar" aria-label="Flame graph">
      <span className="buttons">
        {FLAME_VIEWS.map((view, index) => (
          <button
            key={view}
            aria-pressed={state.view === view}
            disabled={view === 'timeline' && !hasTimeline}
            title={`${VIEW_LABELS[view]}  ${index + 1}${view === 'timeline' && !hasTimeline ? ' (needs samples with times: open one trace or span)' : ''}`}
            onClick={() => change({ view })}
          >
            {VIEW_LABELS[view]}
          </button>
        ))}
      </span>
      <input
        ref={searchField}
        type="search"
        aria-label="Search in the graph"
        placeholder="word /re/ -not"
        title="Words, /regular expressions/, and -what is not wanted"
        value={state.find}
        onChange={(event) => change({ find: event.target.value }, 'replace')}
        onKeyDown={(event) => {
          if (event.key === 'Enter') stepHit(event.shiftKey ? -1 : 1);
          if (event.key === 'Escape') {
            change({ find: '' }, 'replace');
            event.currentTarget.blur();
          }
        }}
      />
      {problem && <span className="error-text">{problem}</span>}
      {search && (
        <span role="status">
          <b>{formatShare(search.share)}</b> of all · {formatValue(search.value, tree.unit)} in {formatCount(search.frames)} frames
          {search.hits.length > 0 && <span title="n and N walk through them"> · place {hit + 1} of {search.hits.length}</span>}
        </span>
      )}
      <span className="grow" />
      {!tree.sides && (
        <select aria-label="Colour by" value={state.colourBy} onChange={(event) => change({ colourBy: event.target.value as FlameState['colourBy'] }, 'replace')}>
          <option value="package">by package</option>
          <option value="kind">by kind</option>
          <option value="thread" disabled={!hasTimeline}>
            by thread
          </option>
        </select>
      )}
      <button
        aria-haspopup="menu"
        onClick={(event) => {
          const bounds = event.currentTarget.getBoundingClientRect();
          openMore(bounds.left, bounds.bottom);
        }}
      >
        More ▾
      </button>
    </div>
  );
}

export function FlameLegend({ isDiff, colourBy, theme }: { isDiff: boolean; colourBy: ColourBy; theme: Theme }) {
  if (isDiff) {
    return (
      <span className="flame-legend">
        {([[-1, '− less, or gone (hatched)'], [0, 'same'], [1, '+ more, or new (hatched)']] as const).map(([change, label]) => (
          <span key={label}>
            <i style={{ background: cssOfPixel(diffColour(change, theme)) }} />
            {label}
          </span>
        ))}
      </span>
    );
  }
  if (colourBy === 'package') return <span className="flame-legend">own code strong, libraries pale, runtime and kernel grey</span>;
  if (colourBy === 'thread') return <span className="flame-legend">one colour per thread</span>;
  return (
    <span className="flame-legend">
      {(Object.keys(KIND_LABELS) as FrameKind[]).map((kind) => (
        <span key={kind}>
          <i style={{ background: cssOfPixel(kindColour(kind, theme)) }} />
          {KIND_LABELS[kind]}
        </span>
      ))}
    </span>
  );
}
