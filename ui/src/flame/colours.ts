// Colours as 32-bit pixels (little-endian ABGR, as ImageData wants them), for both themes.
import { hueDegrees, hueOf, HUES, oklchToRgb, type Rgb } from '../theme/evenPalette';
import type { Theme } from '../theme/theme';
import { nodeChange } from './diff';
import { FRAME_KINDS, type FrameKind } from './frameNames';
import type { FlameTree, SideWeights } from './tree';

export type ColourBy = 'package' | 'kind' | 'thread';

export interface FlamePalette {
  background: number;
  text: number;
  faded: number;
  fadedText: number;
  hit: number;
  hitText: number;
  accent: number;
  hatch: number;
}

export function pixel([r, g, b]: Rgb): number {
  return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
}

export function cssOfPixel(value: number): string {
  return `#${[value & 255, (value >> 8) & 255, (value >> 16) & 255].map((channel) => channel.toString(16).padStart(2, '0')).join('')}`;
}

export function flamePalette(theme: Theme): FlamePalette {
  return theme === 'light'
    ? {
        background: pixel([255, 255, 255]),
        text: pixel([22, 24, 26]),
        faded: pixel([234, 235, 233]),
        fadedText: pixel([94, 98, 102]),
        hit: pixel([194, 0, 95]),
        hitText: pixel([255, 255, 255]),
        accent: pixel([58, 70, 184]),
        hatch: pixel([60, 62, 64]),
      }
    : {
        background: pixel([24, 27, 30]),
        text: pixel([242, 243, 244]),
        faded: pixel([42, 46, 50]),
        fadedText: pixel([160, 166, 172]),
        hit: pixel([208, 30, 114]),
        hitText: pixel([255, 255, 255]),
        accent: pixel([160, 171, 255]),
        hatch: pixel([220, 222, 224]),
      };
}

/** One lightness for all boxes of a theme, so that text is readable in each of them. */
const box = (theme: Theme, chroma: number, hue: number): number =>
  pixel(theme === 'light' ? oklchToRgb(0.84, chroma, hue) : oklchToRgb(0.41, chroma * 0.95, hue));

const KIND_HUES: Record<FrameKind, [chroma: number, hue: number]> = {
  code: [0.1, 60],
  library: [0.08, 150],
  runtime: [0.01, 250],
  kernel: [0.02, 280],
  wait: [0.09, 290],
  span: [0.08, 230],
  thread: [0.03, 200],
  other: [0.0, 0],
};

export const KIND_LABELS: Record<FrameKind, string> = {
  code: 'own code',
  library: 'library',
  runtime: 'runtime',
  kernel: 'kernel',
  wait: 'waiting',
  span: 'span',
  thread: 'thread',
  other: 'other (pruned)',
};

export function kindColour(kind: FrameKind, theme: Theme): number {
  return box(theme, ...KIND_HUES[kind]);
}

export function nameColours(tree: FlameTree, by: ColourBy, theme: Theme): Uint32Array {
  const kinds = Uint32Array.from(FRAME_KINDS, (kind) => kindColour(kind, theme));
  // Own code in colour, libraries paler, runtime and kernel grey: the eye goes first to what one can fix. Waits look like waits.
  const hues = Uint32Array.from({ length: HUES }, (_, step) => box(theme, 0.082, hueDegrees(step)));
  const paleHues = Uint32Array.from({ length: HUES }, (_, step) => box(theme, 0.03, hueDegrees(step)));
  const colours = new Uint32Array(tree.names.length);
  for (let name = 0; name < colours.length; name++) {
    const kind = FRAME_KINDS[tree.kindOfName[name]!]!;
    const hasOwn = kind === 'runtime' || kind === 'kernel' || kind === 'other' || kind === 'wait';
    colours[name] = by === 'kind' || hasOwn ? kinds[tree.kindOfName[name]!]! : (kind === 'library' ? paleHues : hues)[tree.hueOfName[name]!]!;
  }
  return colours;
}

/** Each frame in the colour of the thread that ran it; frames under no thread (a sandwich's) keep the colour of their name. */
export function threadColours(tree: FlameTree, nameColour: Uint32Array, theme: Theme): Uint32Array {
  const isThread = FRAME_KINDS.indexOf('thread');
  const colours = new Uint32Array(tree.count);
  const threadColour = new Map<number, [strong: number, pale: number]>();
  const thread = new Int32Array(tree.count).fill(-1);
  for (let node = 0; node < tree.count; node++) {
    const name = tree.name[node]!;
    const parent = tree.parent[node]!;
    thread[node] = tree.kindOfName[name] === isThread ? name : parent >= 0 ? thread[parent]! : -1;
    if (thread[node]! < 0) {
      colours[node] = nameColour[name]!;
      continue;
    }
    let pair = threadColour.get(thread[node]!);
    if (!pair) {
      const hue = hueOf(tree.names[thread[node]!]!);
      threadColour.set(thread[node]!, (pair = [box(theme, 0.082, hue), box(theme, 0.035, hue)]));
    }
    const kind = FRAME_KINDS[tree.kindOfName[name]!]!;
    colours[node] = kind === 'code' || kind === 'thread' ? pair[0] : pair[1];
  }
  return colours;
}

/** Blue (less) over grey to orange (more); lightness stays even, chroma grows with the change. */
export function diffColour(change: number, theme: Theme): number {
  const size = Math.min(1, Math.abs(change));
  if (size < 0.02) return box(theme, 0.004, 250);
  return box(theme, 0.03 + 0.11 * Math.sqrt(size), change > 0 ? 55 : 250);
}

export function diffColours(tree: FlameTree, weights: SideWeights, theme: Theme): Uint32Array {
  // 65 steps are more than the eye tells apart, and a table is cheaper than a million OKLCH conversions.
  const steps = 32;
  const ramp = Uint32Array.from({ length: 2 * steps + 1 }, (_, step) => diffColour((step - steps) / steps, theme));
  const colours = new Uint32Array(tree.count);
  for (let i = 0; i < tree.count; i++) colours[i] = ramp[Math.round(nodeChange(tree, i, weights) * steps) + steps]!;
  return colours;
}
