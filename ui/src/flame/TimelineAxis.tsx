// Under the timeline: time since the first sample, and the clock time of the left edge.
import { dateAndTime, utc } from '../format/clock';
import { formatDuration } from '../format/units';
import { timeTicks } from '../waterfall/TimeWindow';
import type { ValueWindow } from './geometry';

export function TimelineAxis({ originMs, window }: { originMs: number; window: ValueWindow }) {
  const leftMs = originMs + window.from / 1e6;
  return (
    <div className="flame-axis" title={utc(leftMs)}>
      <span className="sr-only">from {dateAndTime(leftMs)}</span>
      {timeTicks(window, 7).map((tick) => (
        <span key={tick} aria-hidden="true" style={{ left: `${((tick - window.from) / (window.to - window.from)) * 100}%` }}>
          {tick === 0 ? dateAndTime(originMs) : `+${formatDuration(tick)}`}
        </span>
      ))}
    </div>
  );
}
