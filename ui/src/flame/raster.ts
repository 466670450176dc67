// Paints a flame graph into a pixel buffer. Cost follows pixels, never nodes: each level is one row of pixels, found by
// searching and skipping, then copied down the row's height. A million nodes draw as fast as ten thousand.
import { changeMark, nodeChange } from './diff';
import type { FlamePalette } from './colours';
import { shortName } from './frameNames';
import { firstEndingAfter, firstStartingFrom, type ValueWindow } from './geometry';
import { blendText, type GlyphSheet } from './glyphs';
import type { SearchResult } from './search';
import { type FlameTree, levelCount, type SideWeights } from './tree';

export interface FlameScene {
  tree: FlameTree;
  window: ValueWindow;
  /** All in device pixels. */
  rowHeight: number;
  scrollTop: number;
  /** Root at the bottom, as in Brendan Gregg's flame graphs; otherwise an icicle. */
  growsUp: boolean;
  nameColour: Uint32Array;
  /** Present for a diff: colour by node. */
  nodeColour: Uint32Array | null;
  weights: SideWeights;
  search: SearchResult | null;
  selectedName: number;
  selectedNode: number;
  palette: FlamePalette;
}

export interface Surface {
  pixels: Uint32Array;
  width: number;
  height: number;
  /** Null paints boxes only, as the minimap wants it. */
  glyphs: GlyphSheet | null;
  ratio: number;
}

/** Narrower than this (CSS pixels), a box gets no text. */
const TEXT_FROM = 24;

export function paintFlame(scene: FlameScene, surface: Surface): void {
  const { pixels, width, height } = surface;
  pixels.fill(scene.palette.background);
  const levels = levelCount(scene.tree);
  if (levels === 0 || scene.tree.count === 0) return;
  const contentHeight = levels * scene.rowHeight;
  const row = new Uint32Array(width);
  for (let level = 0; level < levels; level++) {
    const top = Math.round((scene.growsUp ? Math.max(contentHeight, height) - (level + 1) * scene.rowHeight : level * scene.rowHeight) - scene.scrollTop);
    if (top >= height || top + scene.rowHeight <= 0) continue;
    paintLevel(scene, surface, level, top, row);
  }
}

function paintLevel(scene: FlameScene, surface: Surface, level: number, top: number, row: Uint32Array): void {
  const { tree, window, palette, search, rowHeight } = scene;
  const { pixels, width, height, glyphs, ratio } = surface;
  const scale = width / (window.to - window.from);
  const end = tree.levelOffset[level + 1]!;
  let slot = firstEndingAfter(tree, level, window.from);
  row.fill(palette.background);
  // Boxes wide enough for text or marks: start, end, node.
  const wide: number[] = [];
  const hitSlivers: number[] = [];
  while (slot < end) {
    const node = tree.levelNodes[slot]!;
    const left = (tree.start[node]! - window.from) * scale;
    if (left >= width) break;
    const extent = tree.total[node]! * scale;
    if (extent >= 1) {
      const from = Math.max(0, Math.round(left));
      const to = Math.min(width, Math.round(left + extent));
      const isHit = search !== null && search.matched[tree.name[node]!] === 1 && node !== 0;
      const colour = isHit ? palette.hit : search ? palette.faded : scene.nodeColour ? scene.nodeColour[node]! : scene.nameColour[tree.name[node]!]!;
      row.fill(colour, from, to - from >= 3 * ratio ? to - 1 : Math.max(to, from + 1));
      if (to - from >= 4 * ratio) wide.push(from, to, node);
      slot++;
      continue;
    }
    // A run of sub-pixel bars: one column stands for all that begin in it.
    const column = Math.max(0, Math.floor(left));
    let next = Math.max(slot + 1, firstStartingFrom(tree, slot + 1, end, window.from + (column + 1) / scale));
    // The last that begins in the column may be a wide one: it is drawn by itself, not lost in the run.
    if (next - 1 > slot && tree.total[tree.levelNodes[next - 1]!]! * scale >= 1) next--;
    if (search && search.levelMatches[next]! > search.levelMatches[slot]!) {
      hitSlivers.push(column);
    } else {
      const last = tree.levelNodes[next - 1]!;
      const covered = (tree.start[last]! + tree.total[last]! - tree.start[node]!) * scale;
      if (covered >= 0.5) {
        row[column] = search ? palette.faded : scene.nodeColour ? scene.nodeColour[node]! : scene.nameColour[tree.name[node]!]!;
      }
    }
    slot = next;
  }
  // A hit is never lost to a missing pixel, nor to a wide box that begins in the same one.
  for (const column of hitSlivers) row.fill(palette.hit, column, Math.min(width, column + 2));
  const firstLine = Math.max(0, top);
  const lastLine = Math.min(height, top + rowHeight - (rowHeight > 4 ? 1 : 0));
  for (let line = firstLine; line < lastLine; line++) pixels.set(row, line * width);
  if (!glyphs) return;
  for (let w = 0; w < wide.length; w += 3) paintDetails(scene, surface, wide[w]!, wide[w + 1]!, wide[w + 2]!, top, firstLine, lastLine);
}

function paintDetails(scene: FlameScene, surface: Surface, from: number, to: number, node: number, top: number, firstLine: number, lastLine: number): void {
  const { tree, palette, search, rowHeight } = scene;
  const { pixels, width, height, glyphs, ratio } = surface;
  const name = tree.name[node]!;
  let mark = '';
  if (tree.sides) {
    const change = nodeChange(tree, node, scene.weights);
    mark = changeMark(change);
    // New and gone frames are hatched: readable without colour, and in print.
    if (Math.abs(change) >= 1) {
      const step = 6 * ratio;
      for (let line = firstLine; line < lastLine; line++) {
        const shift = change > 0 ? line : -line;
        for (let x = from + ((((shift - from) % step) + step) % step); x < to - 1; x += step) pixels[line * width + x] = palette.hatch;
      }
    }
  }
  if (name === scene.selectedName) {
    const thickness = node === scene.selectedNode ? 3 : 2;
    for (let t = 0; t < thickness * ratio; t++) {
      const line = lastLine - 1 - t;
      if (line >= firstLine) pixels.fill(palette.accent, line * width + from, line * width + Math.max(from + 1, to - 1));
    }
  }
  if (to - from < TEXT_FROM * ratio || !glyphs) return;
  const isHit = search !== null && search.matched[name] === 1 && node !== 0;
  const room = Math.floor((to - from - 6 * ratio) / glyphs.advance);
  const label = fitLabel(mark, tree.names[name]!, room);
  if (label) {
    blendText(pixels, width, height, glyphs, label, from + Math.round(3 * ratio), top + Math.floor((rowHeight - glyphs.height) / 2), isHit ? palette.hitText : search ? palette.fadedText : palette.text);
  }
}

/** The whole name, or its last part, or as much of that as fits; two letters of a name tell nothing, so they are left out. */
export function fitLabel(mark: string, name: string, room: number): string {
  if (room < 2) return '';
  if (mark.length + name.length <= room) return mark + name;
  const label = mark + shortName(name);
  if (label.length <= room) return label;
  return room >= mark.length + 4 ? `${label.slice(0, room - 1)}…` : mark.trim().length <= room ? mark.trim() : '';
}
