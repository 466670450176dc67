// Latency over time. Drag a box: that is click one of three. With the keyboard: arrows move the box, Shift-arrows size it.
import { type ReactNode, useEffect, useMemo, useRef, useState } from 'react';
import { useElementSize } from '../app/useElementSize';
import { timeWithUtc } from '../format/clock';
import { clockTicks, labelAnchor } from '../format/timeTicks';
import { formatCount, formatDuration } from '../format/units';
import { css, oklchToRgb } from '../theme/evenPalette';
import { type Theme, useTheme } from '../theme/theme';
import { timeTicks } from '../waterfall/TimeWindow';
import type { HeatBox, HeatGrid } from './grid';

const PLOT = { left: 56, right: 8, top: 6, bottom: 20 };

/** One scale, lightness only growing with the count: order is readable without colour. */
function heatColour(share: number, theme: Theme): string {
  const strength = Math.sqrt(share);
  return css(theme === 'light' ? oklchToRgb(0.92 - 0.52 * strength, 0.04 + 0.1 * strength, 255) : oklchToRgb(0.3 + 0.55 * strength, 0.04 + 0.1 * strength, 255));
}

interface Props {
  grid: HeatGrid;
  box: HeatBox | null;
  onBox: (box: HeatBox | null) => void;
  /** What is counted, in the plural. */
  what?: string;
  label?: string;
  height?: number;
  format?: (value: number) => string;
  children?: ReactNode;
}

export function Heatmap({ grid, box, onBox, what = 'spans', label = 'Latency heatmap', height = 190, format = formatDuration, children }: Props) {
  const theme = useTheme();
  const frame = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const { width } = useElementSize(frame);
  const [drag, setDrag] = useState<{ x0: number; y0: number; x1: number; y1: number } | null>(null);
  const [hover, setHover] = useState<{ x: number; y: number } | null>(null);
  const rows = grid.edges.length - 1;
  const plotWidth = Math.max(1, width - PLOT.left - PLOT.right);
  const plotHeight = height - PLOT.top - PLOT.bottom;
  // Latencies span decades; values of one profile do not.
  const scaled = grid.isLinear ? (value: number) => value : Math.log;
  const unscaled = grid.isLinear ? (place: number) => place : Math.exp;
  const low = scaled(grid.edges[0]!);
  const high = scaled(grid.edges[rows]!);
  const xOf = (ms: number) => PLOT.left + ((ms - grid.fromMs) / (grid.toMs - grid.fromMs)) * plotWidth;
  const yOf = (ns: number) => PLOT.top + (1 - (scaled(ns) - low) / (high - low)) * plotHeight;
  const msAt = (x: number) => grid.fromMs + (Math.min(1, Math.max(0, (x - PLOT.left) / plotWidth)) * (grid.toMs - grid.fromMs));
  const nsAt = (y: number) => unscaled(low + (1 - Math.min(1, Math.max(0, (y - PLOT.top) / plotHeight))) * (high - low));

  useEffect(() => {
    const element = canvas.current;
    if (!element || width === 0) return;
    const ratio = devicePixelRatio || 1;
    element.width = width * ratio;
    element.height = height * ratio;
    const context = element.getContext('2d')!;
    context.scale(ratio, ratio);
    const cellWidth = plotWidth / grid.columns;
    const cellHeight = plotHeight / rows;
    for (let row = 0; row < rows; row++) {
      for (let column = 0; column < grid.columns; column++) {
        const count = grid.counts[row * grid.columns + column]!;
        if (count === 0) continue;
        const x = PLOT.left + column * cellWidth;
        const y = PLOT.top + plotHeight - (row + 1) * cellHeight;
        context.fillStyle = heatColour(count / grid.most, theme);
        context.fillRect(x, y, Math.max(1, cellWidth - 0.5), Math.max(1, cellHeight - 0.5));
        if (grid.errors[row * grid.columns + column]! > 0) {
          // Errors as a corner mark, so they do not change the scale.
          context.fillStyle = theme === 'light' ? '#b3261e' : '#ff9088';
          context.beginPath();
          context.moveTo(x, y);
          context.lineTo(x + Math.min(6, cellWidth), y);
          context.lineTo(x, y + Math.min(6, cellHeight));
          context.fill();
        }
      }
    }
  }, [grid, width, theme, plotWidth, plotHeight, rows, height]);

  const ticks = useMemo(() => {
    if (grid.isLinear) return timeTicks({ from: low, to: high }, height / 32);
    const powers = [1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11];
    const inside = (ns: number) => Math.log(ns) > low && Math.log(ns) < high;
    const coarse = powers.filter(inside);
    return coarse.length > 4 ? coarse : powers.flatMap((power) => [power, power * 3]).filter(inside);
  }, [low, high, grid.isLinear, height]);
  const local = (event: React.PointerEvent) => {
    const bounds = frame.current!.getBoundingClientRect();
    return { x: event.clientX - bounds.left, y: event.clientY - bounds.top };
  };
  const drawn = drag
    ? { x: Math.min(drag.x0, drag.x1), y: Math.min(drag.y0, drag.y1), width: Math.abs(drag.x1 - drag.x0), height: Math.abs(drag.y1 - drag.y0) }
    : box && { x: xOf(box.fromMs), y: yOf(box.highNs), width: xOf(box.toMs) - xOf(box.fromMs), height: yOf(box.lowNs) - yOf(box.highNs) };
  const hoverColumn = hover ? Math.floor(((hover.x - PLOT.left) / plotWidth) * grid.columns) : -1;
  const hoverRow = hover ? Math.floor((1 - (hover.y - PLOT.top) / plotHeight) * rows) : -1;
  const hoverCount = hoverColumn >= 0 && hoverColumn < grid.columns && hoverRow >= 0 && hoverRow < rows ? grid.counts[hoverRow * grid.columns + hoverColumn]! : 0;
  return (
    <div className="heatmap">
      {children}
      <div
        ref={frame}
        role="application"
        tabIndex={0}
        aria-label={`${label}, ${formatCount(grid.total)} ${what}. Enter selects the slowest third of the scale; arrows move the selection, Shift with arrows changes its size.`}
        style={{ position: 'relative', cursor: 'crosshair', touchAction: 'none', flex: 'none', outlineOffset: -2 }}
        onKeyDown={(event) => {
          const wholeTime = grid.toMs - grid.fromMs;
          if (event.key === 'Enter' || event.key === ' ') onBox({ fromMs: grid.fromMs, toMs: grid.toMs, lowNs: unscaled(low + (high - low) * 0.7), highNs: unscaled(high) });
          else if (event.key === 'Escape') onBox(null);
          else if (box && event.key.startsWith('Arrow')) {
            const step = (high - low) / 20;
            const time = event.key === 'ArrowLeft' ? -wholeTime / 20 : event.key === 'ArrowRight' ? wholeTime / 20 : 0;
            const rise = event.key === 'ArrowUp' ? step : event.key === 'ArrowDown' ? -step : 0;
            const moved = (value: number) => unscaled(scaled(value) + rise);
            if (event.shiftKey) onBox({ ...box, toMs: Math.min(grid.toMs, Math.max(box.fromMs + wholeTime / 40, box.toMs + time)), lowNs: Math.min(box.highNs * 0.95, moved(box.lowNs)) });
            else onBox({ fromMs: box.fromMs + time, toMs: box.toMs + time, lowNs: moved(box.lowNs), highNs: moved(box.highNs) });
          } else return;
          event.preventDefault();
          event.stopPropagation();
        }}
        onPointerDown={(event) => {
          if (event.button !== 0) return;
          event.currentTarget.setPointerCapture(event.pointerId);
          const { x, y } = local(event);
          setDrag({ x0: x, y0: y, x1: x, y1: y });
        }}
        onPointerMove={(event) => {
          const { x, y } = local(event);
          setHover({ x, y });
          if (drag) setDrag({ ...drag, x1: x, y1: y });
        }}
        onPointerLeave={() => setHover(null)}
        onPointerUp={() => {
          if (!drag) return;
          setDrag(null);
          if (Math.abs(drag.x1 - drag.x0) < 4 && Math.abs(drag.y1 - drag.y0) < 4) onBox(null);
          else
            onBox({
              fromMs: msAt(Math.min(drag.x0, drag.x1)),
              toMs: msAt(Math.max(drag.x0, drag.x1)),
              lowNs: nsAt(Math.max(drag.y0, drag.y1)),
              highNs: nsAt(Math.min(drag.y0, drag.y1)),
            });
        }}
      >
        <canvas ref={canvas} style={{ width: '100%', height: height, display: 'block' }} aria-hidden="true" />
        <svg width={width} height={height} style={{ position: 'absolute', inset: 0, pointerEvents: 'none', fontSize: 11 }} aria-hidden="true">
          {ticks.map((ns) => (
            <g key={ns}>
              <text x={PLOT.left - 6} y={yOf(ns) + 4} textAnchor="end" fill="var(--muted)">
                {format(ns)}
              </text>
              <line x1={PLOT.left} x2={PLOT.left + plotWidth} y1={yOf(ns)} y2={yOf(ns)} stroke="var(--line)" strokeDasharray="2 4" />
            </g>
          ))}
          {clockTicks(grid.fromMs, grid.toMs, plotWidth / 90).map((tick) => (
            <text key={tick.at} x={xOf(tick.at)} y={height - 5} textAnchor={labelAnchor(xOf(tick.at), width)} fill="var(--muted)">
              {tick.label}
            </text>
          ))}
          {drawn && <rect {...drawn} fill="var(--accent)" fillOpacity={0.14} stroke="var(--accent)" strokeWidth={1.5} />}
        </svg>
        {hover && hoverCount > 0 && !drag && (
          <div className="tip" style={{ position: 'absolute', left: Math.min(hover.x + 12, width - 220), top: Math.max(0, hover.y - 40) }}>
            <b>{formatCount(hoverCount)}</b> {what}, {format(grid.edges[hoverRow]!)} to {format(grid.edges[hoverRow + 1]!)}, {timeWithUtc(msAt(hover.x))}
          </div>
        )}
      </div>
    </div>
  );
}
