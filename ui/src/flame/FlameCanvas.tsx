// The drawn flame graph: paints the visible part, answers pointer and wheel. What to show is decided outside.
import { type ReactNode, useCallback, useEffect, useLayoutEffect, useRef, useState } from 'react';
import { useElementSize } from '../app/useElementSize';
import { prefersReducedMotion } from '../theme/theme';
import { clampWindow, nodeAt, type ValueWindow, zoomAt } from './geometry';
import { glyphSheet } from './glyphs';
import { type FlameScene, paintFlame } from './raster';
import { levelCount } from './tree';

export const ROW_HEIGHT = 18;
const TWEEN_MS = 120;

export type SceneLook = Omit<FlameScene, 'window' | 'rowHeight' | 'scrollTop'>;

interface Props {
  look: SceneLook;
  window: ValueWindow;
  onWindow: (window: ValueWindow) => void;
  onNode: (node: number) => void;
  onMenu: (node: number, x: number, y: number) => void;
  tip: (node: number) => ReactNode;
  /** Node to bring into view when it changes. */
  follow: number;
  children?: ReactNode;
}

interface Hover {
  node: number;
  x: number;
  y: number;
}

/** On the side of the pointer that has more room. */
function beside(x: number, y: number): React.CSSProperties {
  return { ...(x > innerWidth / 2 ? { right: innerWidth - x + 14 } : { left: x + 14 }), ...(y > innerHeight * 0.6 ? { bottom: innerHeight - y + 12 } : { top: y + 16 }) };
}

export function FlameCanvas({ look, window: target, onWindow, onNode, onMenu, tip, follow, children }: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const size = useElementSize(scroller);
  const shown = useRef<ValueWindow>(target);
  const image = useRef<ImageData | null>(null);
  const [hover, setHover] = useState<Hover | null>(null);
  const [brush, setBrush] = useState<{ from: number; to: number } | null>(null);
  const gesture = useRef<{ x: number; y: number; window: ValueWindow; scrollTop: number; moved: boolean; brushing: boolean } | null>(null);
  /** Wheel and drag follow the hand at once; only jumps (a click, a key) are tweened. */
  const direct = useRef(false);
  const { tree, growsUp } = look;
  const contentHeight = levelCount(tree) * ROW_HEIGHT;

  const paint = useCallback(() => {
    const element = canvas.current;
    const box = scroller.current;
    if (!element || !box || size.width === 0 || size.height === 0) return;
    const began = performance.now();
    const ratio = devicePixelRatio || 1;
    const width = Math.max(1, Math.floor(size.width * ratio));
    const height = Math.max(1, Math.floor(size.height * ratio));
    const context = element.getContext('2d', { alpha: false })!;
    if (element.width !== width || element.height !== height || !image.current) {
      element.width = width;
      element.height = height;
      image.current = context.createImageData(width, height);
    }
    const pixels = new Uint32Array(image.current.data.buffer);
    paintFlame({ ...look, window: shown.current, rowHeight: Math.round(ROW_HEIGHT * ratio), scrollTop: Math.round(box.scrollTop * ratio) }, { pixels, width, height, glyphs: glyphSheet(ratio), ratio });
    context.putImageData(image.current, 0, 0);
    performance.measure('flame:paint', { start: began, end: performance.now() });
  }, [look, size.width, size.height]);

  // A flame grows from the bottom: begin there.
  useLayoutEffect(() => {
    if (scroller.current && growsUp) scroller.current.scrollTop = scroller.current.scrollHeight;
  }, [growsUp, tree]);

  useLayoutEffect(() => {
    const from = shown.current;
    const still = direct.current || prefersReducedMotion() || (from.from === target.from && from.to === target.to);
    direct.current = false;
    if (still) {
      shown.current = target;
      paint();
      return;
    }
    let frame = 0;
    const began = performance.now();
    const step = () => {
      const t = Math.min(1, (performance.now() - began) / TWEEN_MS);
      const eased = 1 - (1 - t) ** 3;
      shown.current = { from: from.from + (target.from - from.from) * eased, to: from.to + (target.to - from.to) * eased };
      paint();
      if (t < 1) frame = requestAnimationFrame(step);
      else shown.current = target;
    };
    frame = requestAnimationFrame(step);
    return () => cancelAnimationFrame(frame);
  }, [target, paint]);

  const levelTop = useCallback((level: number) => (growsUp ? Math.max(contentHeight, size.height) - (level + 1) * ROW_HEIGHT : level * ROW_HEIGHT), [growsUp, contentHeight, size.height]);

  useEffect(() => {
    const box = scroller.current;
    if (!box || follow < 0 || follow >= tree.count) return;
    const top = levelTop(tree.depth[follow]!);
    if (top < box.scrollTop || top + ROW_HEIGHT > box.scrollTop + box.clientHeight) box.scrollTop = top - box.clientHeight / 2;
  }, [follow, tree, levelTop]);

  const valueAt = (clientX: number) => {
    const bounds = scroller.current!.getBoundingClientRect();
    return shown.current.from + ((clientX - bounds.left) / size.width) * (shown.current.to - shown.current.from);
  };
  const hit = (clientX: number, clientY: number) => {
    const box = scroller.current!;
    const y = clientY - box.getBoundingClientRect().top + box.scrollTop;
    const level = growsUp ? Math.floor((Math.max(contentHeight, size.height) - y) / ROW_HEIGHT) : Math.floor(y / ROW_HEIGHT);
    return nodeAt(tree, level, valueAt(clientX));
  };
  const moveTo = useCallback(
    (next: ValueWindow) => {
      direct.current = true;
      onWindow(clampWindow(tree, next));
    },
    [onWindow, tree],
  );

  // React's wheel listeners are passive; zooming must stop the browser's own.
  useEffect(() => {
    const box = scroller.current!;
    const onWheel = (event: WheelEvent) => {
      const span = shown.current.to - shown.current.from;
      const bounds = box.getBoundingClientRect();
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        const value = shown.current.from + ((event.clientX - bounds.left) / bounds.width) * span;
        moveTo(zoomAt(tree, shown.current, value, Math.exp(Math.max(-50, Math.min(50, event.deltaY)) * 0.01)));
      } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        event.preventDefault();
        const shift = ((event.deltaX || event.deltaY) / bounds.width) * span;
        moveTo({ from: shown.current.from + shift, to: shown.current.to + shift });
      }
    };
    box.addEventListener('wheel', onWheel, { passive: false });
    return () => box.removeEventListener('wheel', onWheel);
  }, [tree, moveTo]);

  const scale = size.width / (shown.current.to - shown.current.from);
  const hoverBox = hover && hover.node >= 0 && hover.node < tree.count ? hover.node : -1;
  return (
    <div
      ref={scroller}
      className="flame-scroll"
      onScroll={paint}
      onPointerDown={(event) => {
        if (event.button !== 0) return;
        event.currentTarget.setPointerCapture(event.pointerId);
        gesture.current = { x: event.clientX, y: event.clientY, window: shown.current, scrollTop: scroller.current!.scrollTop, moved: false, brushing: event.shiftKey };
      }}
      onPointerMove={(event) => {
        const held = gesture.current;
        if (!held) {
          const node = hit(event.clientX, event.clientY);
          setHover(node < 0 ? null : { node, x: event.clientX, y: event.clientY });
          return;
        }
        if (!held.moved && Math.hypot(event.clientX - held.x, event.clientY - held.y) < 4) return;
        held.moved = true;
        setHover(null);
        if (held.brushing) {
          setBrush({ from: held.x, to: event.clientX });
          return;
        }
        const shift = ((held.x - event.clientX) / size.width) * (held.window.to - held.window.from);
        scroller.current!.scrollTop = held.scrollTop + (held.y - event.clientY);
        moveTo({ from: held.window.from + shift, to: held.window.to + shift });
      }}
      onPointerUp={(event) => {
        const held = gesture.current;
        gesture.current = null;
        setBrush(null);
        if (!held) return;
        if (!held.moved) {
          const node = hit(event.clientX, event.clientY);
          if (node >= 0) onNode(node);
        } else if (held.brushing) {
          const ends = [valueAt(held.x), valueAt(event.clientX)].sort((a, b) => a - b);
          onWindow(clampWindow(tree, { from: ends[0]!, to: ends[1]! }));
        }
      }}
      onPointerLeave={() => setHover(null)}
      onContextMenu={(event) => {
        event.preventDefault();
        const node = hit(event.clientX, event.clientY);
        setHover(null);
        if (node >= 0) onMenu(node, event.clientX, event.clientY);
      }}
    >
      <canvas ref={canvas} className="flame-canvas" style={{ width: size.width, height: size.height }} aria-hidden="true" />
      <div style={{ height: Math.max(0, contentHeight - size.height) }} />
      {hoverBox >= 0 && (
        <div
          className="flame-hover"
          style={{
            left: Math.max(0, (tree.start[hoverBox]! - shown.current.from) * scale),
            width: Math.max(2, Math.min(size.width, (tree.start[hoverBox]! + tree.total[hoverBox]! - shown.current.from) * scale) - Math.max(0, (tree.start[hoverBox]! - shown.current.from) * scale)),
            top: levelTop(tree.depth[hoverBox]!),
          }}
        />
      )}
      {brush && <div className="flame-brush" style={{ left: Math.min(brush.from, brush.to) - scroller.current!.getBoundingClientRect().left, width: Math.abs(brush.to - brush.from), height: Math.max(contentHeight, size.height) }} />}
      {hover && hoverBox >= 0 && (
        <div className="tip" style={beside(hover.x, hover.y)}>
          {tip(hoverBox)}
        </div>
      )}
      {children}
    </div>
  );
}
