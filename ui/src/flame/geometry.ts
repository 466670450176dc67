// Where nodes are on the screen, and which node is at a place.
import { type FlameTree, levelCount } from './tree';

/** Visible part of the value axis. */
export interface ValueWindow {
  from: number;
  to: number;
}

export function wholeWindow(tree: FlameTree): ValueWindow {
  return { from: tree.start[0] ?? 0, to: (tree.start[0] ?? 0) + (tree.total[0] || 1) };
}

export function windowOf(tree: FlameTree, node: number): ValueWindow {
  return { from: tree.start[node]!, to: tree.start[node]! + (tree.total[node]! || 1e-9) };
}

/** First slot of a level whose bar ends after `value`; levels are sorted, so it is a binary search. */
export function firstEndingAfter(tree: FlameTree, level: number, value: number): number {
  let low = tree.levelOffset[level]!;
  let high = tree.levelOffset[level + 1]!;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const node = tree.levelNodes[middle]!;
    if (tree.start[node]! + tree.total[node]! > value) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** First slot from `low` on whose bar starts at or after `value`: doubling steps, since the next pixel is usually near. */
export function firstStartingFrom(tree: FlameTree, low: number, end: number, value: number): number {
  let step = 1;
  let high = low;
  while (high < end && tree.start[tree.levelNodes[high]!]! < value) {
    low = high + 1;
    high += step;
    step *= 2;
  }
  if (high > end) high = end;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (tree.start[tree.levelNodes[middle]!]! >= value) high = middle;
    else low = middle + 1;
  }
  return low;
}

export function nodeAt(tree: FlameTree, level: number, value: number): number {
  if (level < 0 || level >= levelCount(tree)) return -1;
  const slot = firstEndingAfter(tree, level, value);
  if (slot >= tree.levelOffset[level + 1]!) return -1;
  const node = tree.levelNodes[slot]!;
  return tree.start[node]! <= value ? node : -1;
}

/** Keeps a window inside the whole and above the narrowest useful width. */
export function clampWindow(tree: FlameTree, window: ValueWindow): ValueWindow {
  const whole = wholeWindow(tree);
  const least = (whole.to - whole.from) * 1e-9;
  const width = Math.min(whole.to - whole.from, Math.max(least, window.to - window.from));
  const from = Math.min(Math.max(whole.from, window.from), whole.to - width);
  return { from, to: from + width };
}

export function zoomAt(tree: FlameTree, window: ValueWindow, value: number, factor: number): ValueWindow {
  return clampWindow(tree, { from: value - (value - window.from) * factor, to: value + (window.to - value) * factor });
}

/** Shares of the whole, `0.1-0.25`; empty for the whole itself. */
export function windowText(tree: FlameTree, window: ValueWindow): string {
  const whole = wholeWindow(tree);
  const width = whole.to - whole.from;
  if (window.to - window.from >= width * 0.999999) return '';
  // Fixed notation: an exponent would bring a second minus sign.
  const share = (value: number) => ((value - whole.from) / width).toFixed(12).replace(/\.?0+$/, '');
  return `${share(window.from)}-${share(window.to)}`;
}
