// The visible part of the graph: a node's extent, a free range, or the whole. Free moves stay local until they rest, then the
// URL learns them; a wheel turn must not write sixty history entries.
import { useCallback, useEffect, useMemo, useState } from 'react';
import { clampWindow, type ValueWindow, wholeWindow, windowOf, windowText } from './geometry';
import { findByPath, type FlameTree } from './tree';
import type { ChangeFlame, FlameState } from './useFlameState';

const REST_MS = 350;

interface FlameWindow {
  shown: ValueWindow | null;
  move: (window: ValueWindow) => void;
}

export function useFlameWindow(tree: FlameTree | null, state: FlameState, change: ChangeFlame, isTimeline: boolean): FlameWindow {
  const fromUrl = useMemo<ValueWindow | null>(() => {
    if (!tree || tree.count === 0) return null;
    const whole = wholeWindow(tree);
    if (state.window) {
      const [from, to] = state.window.split('-').map(Number);
      if (from! < to!) return clampWindow(tree, { from: whole.from + from! * (whole.to - whole.from), to: whole.from + to! * (whole.to - whole.from) });
    }
    // A timeline repeats frames, so a path does not name one place in it.
    const node = state.zoom && !isTimeline ? findByPath(tree, parseInt(state.zoom, 16)) : -1;
    return node > 0 ? windowOf(tree, node) : whole;
  }, [tree, state.window, state.zoom, isTimeline]);
  const [moved, setMoved] = useState<{ tree: FlameTree; window: ValueWindow } | null>(null);
  useEffect(() => setMoved(null), [fromUrl]);
  useEffect(() => {
    if (!moved || !tree) return;
    const timer = setTimeout(() => change({ window: windowText(tree, moved.window), zoom: '' }, 'replace'), REST_MS);
    return () => clearTimeout(timer);
  }, [moved, tree, change]);
  const move = useCallback((window: ValueWindow) => tree && setMoved({ tree, window }), [tree]);
  return { shown: moved && moved.tree === tree ? moved.window : fromUrl, move };
}
