// The whole graph in a strip: shows where the window is; dragging selects another.
import { useEffect, useRef, useState } from 'react';
import { useElementSize } from '../app/useElementSize';
import type { SceneLook } from './FlameCanvas';
import { clampWindow, type ValueWindow, wholeWindow } from './geometry';
import { paintFlame } from './raster';
import { levelCount } from './tree';

const HEIGHT = 32;

export function FlameMinimap({ look, window, onWindow }: { look: SceneLook; window: ValueWindow; onWindow: (window: ValueWindow) => void }) {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const { width } = useElementSize(box);
  const [drag, setDrag] = useState<{ from: number; to: number } | null>(null);
  const whole = wholeWindow(look.tree);
  useEffect(() => {
    const element = canvas.current;
    if (!element || width === 0) return;
    element.width = width;
    element.height = HEIGHT;
    const context = element.getContext('2d', { alpha: false })!;
    const image = context.createImageData(width, HEIGHT);
    // Deep graphs shrink to a pixel a level; what lies deeper than the strip is left out.
    const rowHeight = Math.max(1, Math.min(4, Math.floor(HEIGHT / Math.max(1, levelCount(look.tree)))));
    paintFlame(
      { ...look, growsUp: look.growsUp, window: wholeWindow(look.tree), rowHeight, scrollTop: look.growsUp ? Math.max(0, levelCount(look.tree) * rowHeight - HEIGHT) : 0 },
      { pixels: new Uint32Array(image.data.buffer), width, height: HEIGHT, glyphs: null, ratio: 1 },
    );
    context.putImageData(image, 0, 0);
  }, [look, width]);
  const share = (value: number) => (value - whole.from) / (whole.to - whole.from);
  const valueAt = (clientX: number) => {
    const bounds = box.current!.getBoundingClientRect();
    return whole.from + ((clientX - bounds.left) / bounds.width) * (whole.to - whole.from);
  };
  const shownFrom = drag ? Math.min(drag.from, drag.to) : window.from;
  const shownTo = drag ? Math.max(drag.from, drag.to) : window.to;
  return (
    <div
      ref={box}
      className="flame-minimap"
      title="Drag to choose a part; double-click for the whole"
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        setDrag({ from: valueAt(event.clientX), to: valueAt(event.clientX) });
      }}
      onPointerMove={(event) => drag && setDrag({ ...drag, to: valueAt(event.clientX) })}
      onPointerUp={() => {
        if (!drag) return;
        const from = Math.min(drag.from, drag.to);
        const to = Math.max(drag.from, drag.to);
        setDrag(null);
        // A click without a drag moves the window there.
        if (share(to) - share(from) > 0.002) onWindow(clampWindow(look.tree, { from, to }));
        else onWindow(clampWindow(look.tree, { from: from - (window.to - window.from) / 2, to: from + (window.to - window.from) / 2 }));
      }}
      onDoubleClick={() => onWindow(whole)}
    >
      <canvas ref={canvas} aria-hidden="true" />
      <div className="shade" style={{ left: 0, width: `${share(shownFrom) * 100}%` }} />
      <div className="shade" style={{ left: `${share(shownTo) * 100}%`, right: 0 }} />
    </div>
  );
}
