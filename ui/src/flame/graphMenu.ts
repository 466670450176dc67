// What can be done with a graph as a whole: transforms without a function, and every file it can be saved as.
import type { MenuItem } from '../app/Menu';
import { download, toCollapsed, toSpeedscope, toSvg } from './exports';
import type { SceneLook } from './FlameCanvas';
import type { ValueWindow } from './geometry';
import { describeNode } from './TreeMirror';
import type { Transform } from './transforms';
import type { FlameTree } from './tree';

export interface Saved {
  title: string;
  tree: FlameTree;
  /** What is drawn, and which part of it; null where a table stands instead. */
  look: SceneLook | null;
  window: ValueWindow | null;
  canvas: () => HTMLCanvasElement | null | undefined;
  savePprof?: () => void;
}

export function graphMenu({ title, tree, look, window, canvas, savePprof }: Saved, add: (transform: Transform) => void): MenuItem[] {
  const items: MenuItem[] = [
    { label: 'Collapse all recursion', hint: 'r', run: () => add({ do: 'collapse-all-recursion' }) },
    { label: 'Hide runtime and kernel', run: () => add({ do: 'hide-runtime' }) },
    { label: 'Own code only', run: () => add({ do: 'own-code' }) },
    { label: 'Invert: leaves first', hint: 'i', run: () => add({ do: 'invert' }) },
    'line',
  ];
  if (look && window) {
    items.push(
      { label: 'Export SVG', run: () => download(`${title}.svg`, toSvg(look, window, (node) => describeNode(tree, node)), 'image/svg+xml') },
      { label: 'Export PNG', run: () => canvas()?.toBlob((blob) => blob && download(`${title}.png`, blob)) },
    );
  }
  items.push(
    { label: 'Export collapsed stacks', run: () => download(`${title}.collapsed`, toCollapsed(tree)) },
    { label: 'Export for speedscope', run: () => download(`${title}.speedscope.json`, toSpeedscope(tree, title), 'application/json') },
  );
  if (savePprof) items.push({ label: 'Export pprof', run: savePprof });
  return items;
}
