// The whole trace in a strip: every span a line, errors on top; dragging selects time.
import { useEffect, useRef, useState } from 'react';
import { useElementSize } from '../app/useElementSize';
import { serviceColours } from '../theme/evenPalette';
import { useTheme } from '../theme/theme';
import { clampTime, type TimeWindow } from './TimeWindow';
import type { TraceModel } from './traceModel';

const HEIGHT = 44;

export function WaterfallMinimap({ trace, window, onWindow }: { trace: TraceModel; window: TimeWindow; onWindow: (window: TimeWindow) => void }) {
  const theme = useTheme();
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const { width } = useElementSize(box);
  const [drag, setDrag] = useState<TimeWindow | null>(null);
  useEffect(() => {
    const element = canvas.current;
    if (!element || width === 0) return;
    element.width = width;
    element.height = HEIGHT;
    const context = element.getContext('2d')!;
    const colours = serviceColours(trace.services, theme);
    const rowHeight = Math.max(1, Math.min(4, HEIGHT / trace.count));
    // More spans than lines: draw what differs by a pixel, skip what would repaint the same one.
    const painted = new Set<number>();
    for (let span = 0; span < trace.count; span++) {
      const x = Math.floor((trace.start[span]! / trace.totalNs) * width);
      const y = Math.floor((span / trace.count) * HEIGHT);
      const w = Math.max(1, Math.round((trace.duration[span]! / trace.totalNs) * width));
      const key = (y * 4096 + x) * 2 + (w > 2 ? 1 : 0);
      if (painted.has(key) && !trace.failed[span]) continue;
      painted.add(key);
      context.fillStyle = trace.failed[span] ? (theme === 'light' ? '#b3261e' : '#ff9088') : colours.get(trace.service[span]!)!;
      context.fillRect(x, y, w, rowHeight);
    }
  }, [trace, width, theme]);
  const timeAt = (clientX: number) => {
    const bounds = box.current!.getBoundingClientRect();
    return ((clientX - bounds.left) / bounds.width) * trace.totalNs;
  };
  const shown = drag ? { from: Math.min(drag.from, drag.to), to: Math.max(drag.from, drag.to) } : window;
  return (
    <div
      ref={box}
      className="wf-map"
      title="Drag to choose a time; double-click for the whole trace"
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        setDrag({ from: timeAt(event.clientX), to: timeAt(event.clientX) });
      }}
      onPointerMove={(event) => drag && setDrag({ ...drag, to: timeAt(event.clientX) })}
      onPointerUp={() => {
        if (drag && shown.to - shown.from > trace.totalNs / 500) onWindow(clampTime(shown, trace.totalNs));
        setDrag(null);
      }}
      onDoubleClick={() => onWindow({ from: 0, to: trace.totalNs })}
    >
      <canvas ref={canvas} aria-hidden="true" />
      <div className="shade" style={{ left: 0, width: `${(shown.from / trace.totalNs) * 100}%` }} />
      <div className="shade" style={{ left: `${(shown.to / trace.totalNs) * 100}%`, right: 0 }} />
    </div>
  );
}
