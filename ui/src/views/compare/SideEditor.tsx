// One side of a comparison: which samples or spans, and of which time.
import { useState } from 'react';
import { dateAndTime, utc } from '../../format/clock';
import { RELATIVE_RANGES, type ResolvedRange } from '../../location/timeRange';
import { changeParams } from '../../location/urlState';
import type { Side } from './sides';

interface Props {
  name: 'a' | 'b';
  title: string;
  side: Side;
  /** The time that is compared, whether chosen here or not. */
  shown: ResolvedRange;
  isSpans: boolean;
}

export function SideEditor({ name, title, side, shown, isSpans }: Props) {
  const [draft, setDraft] = useState<string | null>(null);
  const chosen = RELATIVE_RANGES.find((known) => known.range.from === side.from)?.label ?? (side.from ? 'fixed' : 'half');
  return (
    <span className="row grow">
      <b>{title}</b>
      <input
        type="search"
        className="mono grow"
        aria-label={`${title}: ${isSpans ? 'TraceQL' : 'labels'}`}
        placeholder={isSpans ? '{ name = "checkout" && duration < 200ms }' : 'version="1.4.1"'}
        value={draft ?? side.selector}
        onChange={(event) => setDraft(event.target.value)}
        onBlur={() => setDraft(null)}
        onKeyDown={(event) => {
          if (event.key === 'Enter' && draft !== null) changeParams({ [`${name}.q`]: draft.trim() });
        }}
      />
      <select
        aria-label={`${title}: time`}
        title={`${utc(shown.fromMs)} to ${utc(shown.toMs)}`}
        value={chosen}
        onChange={(event) => {
          const known = RELATIVE_RANGES.find((candidate) => candidate.label === event.target.value);
          changeParams({ [`${name}.from`]: known?.range.from ?? null, [`${name}.to`]: known?.range.to ?? null });
        }}
      >
        <option value="half">{name === 'a' ? 'first half of the range' : 'second half of the range'}</option>
        {RELATIVE_RANGES.map((known) => (
          <option key={known.label}>{known.label}</option>
        ))}
        {chosen === 'fixed' && (
          <option value="fixed">
            {dateAndTime(shown.fromMs)} – {dateAndTime(shown.toMs)}
          </option>
        )}
      </select>
    </span>
  );
}
