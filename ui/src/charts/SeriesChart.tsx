// Lines over time in SVG: few series, a few hundred points, brushing for a time range.
import { useMemo, useRef, useState } from 'react';
import { useElementSize } from '../app/useElementSize';
import { timeWithUtc } from '../format/clock';
import { clockTicks, labelAnchor } from '../format/timeTicks';
import { serviceColours } from '../theme/evenPalette';
import { useTheme } from '../theme/theme';
import { valueScale } from './valueScale';

export interface Line {
  label: string;
  points: { at: number; value: number }[];
}

interface Props {
  lines: readonly Line[];
  fromMs: number;
  toMs: number;
  height?: number;
  format: (value: number) => string;
  label: string;
  /** One line alone needs no name, unless it is one of several that could be. */
  named?: boolean;
  onRange?: (fromMs: number, toMs: number) => void;
}

/** Least distance of two ticks. */
const TICK_PX = 40;

export function SeriesChart({ lines, fromMs, toMs, height = 110, format, label, named = lines.length > 1, onRange }: Props) {
  const theme = useTheme();
  const box = useRef<HTMLDivElement>(null);
  const { width } = useElementSize(box);
  const [drag, setDrag] = useState<{ from: number; to: number } | null>(null);
  const [hover, setHover] = useState<number | null>(null);
  const colours = useMemo(() => serviceColours(lines.map((line) => line.label), theme), [lines, theme]);
  const colourOf = (label: string) => (lines.length === 1 ? 'var(--accent)' : colours.get(label)!);
  const highest = useMemo(() => lines.reduce((most, line) => line.points.reduce((high, point) => Math.max(high, point.value), most), 0), [lines]);
  const plot = { left: 84, right: Math.max(85, width - 12), top: 8, bottom: height - 20 };
  const { top, ticks } = valueScale(highest, Math.max(2, (plot.bottom - plot.top) / TICK_PX));
  // The last step may end after the range does.
  const x = (at: number) => plot.left + Math.min(1, Math.max(0, (at - fromMs) / (toMs - fromMs))) * (plot.right - plot.left);
  const y = (value: number) => plot.bottom - (value / top) * (plot.bottom - plot.top);
  const timeAt = (clientX: number) => {
    const local = clientX - box.current!.getBoundingClientRect().left;
    return fromMs + (Math.min(1, Math.max(0, (local - plot.left) / (plot.right - plot.left))) * (toMs - fromMs));
  };
  return (
    <div
      ref={box}
      style={{ position: 'relative', cursor: onRange ? 'crosshair' : undefined, touchAction: 'none' }}
      onPointerDown={(event) => {
        if (!onRange) return;
        event.currentTarget.setPointerCapture(event.pointerId);
        setDrag({ from: timeAt(event.clientX), to: timeAt(event.clientX) });
      }}
      onPointerMove={(event) => {
        setHover(timeAt(event.clientX));
        if (drag) setDrag({ ...drag, to: timeAt(event.clientX) });
      }}
      onPointerLeave={() => setHover(null)}
      onPointerUp={() => {
        if (drag && onRange && Math.abs(drag.to - drag.from) > (toMs - fromMs) / 200) onRange(Math.min(drag.from, drag.to), Math.max(drag.from, drag.to));
        setDrag(null);
      }}
    >
      <svg width={width} height={height} role="img" aria-label={`${label}: highest ${format(highest)}`} style={{ display: 'block', fontSize: 11 }}>
        {ticks.map((tick) => (
          <g key={tick}>
            <line x1={plot.left} x2={plot.right} y1={y(tick)} y2={y(tick)} stroke="var(--line)" />
            <text x={plot.left - 6} y={y(tick) + 4} textAnchor="end" fill="var(--muted)">
              {format(tick)}
            </text>
          </g>
        ))}
        {clockTicks(fromMs, toMs, (plot.right - plot.left) / 90).map((tick) => (
          <text key={tick.at} x={x(tick.at)} y={height - 4} textAnchor={labelAnchor(x(tick.at), width)} fill="var(--muted)">
            {tick.label}
          </text>
        ))}
        {lines.map((line, index) =>
          // A line needs two points; one alone would not be seen.
          line.points.length === 1 ? (
            <circle key={line.label + index} cx={x(line.points[0]!.at)} cy={y(line.points[0]!.value)} r={2.5} fill={colourOf(line.label)} />
          ) : (
            <path key={line.label + index} d={pathOf(line, x, y)} fill="none" stroke={colourOf(line.label)} strokeWidth={1.5} />
          ),
        )}
        {lines.every((line) => line.points.length === 0) && (
          <text x={(plot.left + plot.right) / 2} y={(plot.top + plot.bottom) / 2} textAnchor="middle" fill="var(--muted)" style={{ fontSize: 12 }}>
            nothing in this time range
          </text>
        )}
        {drag && <rect x={x(Math.min(drag.from, drag.to))} width={Math.abs(x(drag.to) - x(drag.from))} y={plot.top} height={plot.bottom - plot.top} fill="var(--accent)" opacity={0.2} />}
        {hover !== null && !drag && <line x1={x(hover)} x2={x(hover)} y1={plot.top} y2={plot.bottom} stroke="var(--line-strong)" />}
      </svg>
      {hover !== null && !drag && (
        <div className="tip" style={{ position: 'absolute', left: Math.min(x(hover) + 8, width - 180), top: 4 }}>
          {timeWithUtc(hover)}
          {lines.slice(0, 8).map((line) => (
            <div key={line.label}>
              {lines.length > 1 && <i className="line-mark" style={{ background: colourOf(line.label) }} />}
              {line.label} <b>{format(valueAt(line, hover))}</b>
            </div>
          ))}
        </div>
      )}
      {named && (
        <ul className="chart-legend">
          {lines.map((line, index) => (
            <li key={line.label + index}>
              <i className="line-mark" style={{ background: colourOf(line.label) }} />
              {line.label}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

function pathOf(line: Line, x: (at: number) => number, y: (value: number) => number): string {
  return line.points.map((point, index) => `${index === 0 ? 'M' : 'L'}${x(point.at).toFixed(1)} ${y(point.value).toFixed(1)}`).join('');
}

function valueAt(line: Line, at: number): number {
  let best = 0;
  let distance = Infinity;
  for (const point of line.points) {
    if (Math.abs(point.at - at) < distance) {
      distance = Math.abs(point.at - at);
      best = point.value;
    }
  }
  return best;
}
