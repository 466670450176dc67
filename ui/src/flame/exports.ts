// What is on the screen, as files: collapsed stacks, speedscope, SVG. (PNG comes from the canvas, pprof from the server.)
import { cssOfPixel } from './colours';
import type { SceneLook } from './FlameCanvas';
import type { ValueWindow } from './geometry';
import { fitLabel } from './raster';
import { type FlameTree, levelCount, stackOf } from './tree';

export function toCollapsed(tree: FlameTree): string {
  const lines: string[] = [];
  for (let i = 1; i < tree.count; i++) {
    const value = Math.round(tree.self[i]!);
    if (value <= 0) continue;
    // A semicolon inside a name would split the frame on the way back in.
    lines.push(`${stackOf(tree, i).slice(1).map((node) => tree.names[tree.name[node]!]!.replaceAll(';', ':')).join(';')} ${value}`);
  }
  return `${lines.join('\n')}\n`;
}

/** https://www.speedscope.app/file-format-schema.json, type "sampled". */
export function toSpeedscope(tree: FlameTree, title: string): string {
  const samples: number[][] = [];
  const weights: number[] = [];
  for (let i = 1; i < tree.count; i++) {
    if (tree.self[i]! <= 0) continue;
    samples.push(stackOf(tree, i).slice(1).map((node) => tree.name[node]!));
    weights.push(tree.self[i]!);
  }
  const unit = ['nanoseconds', 'microseconds', 'milliseconds', 'seconds', 'bytes'].includes(tree.unit) ? tree.unit : 'none';
  return JSON.stringify({
    $schema: 'https://www.speedscope.app/file-format-schema.json',
    exporter: 'hotspan',
    name: title,
    shared: { frames: tree.names.map((name, index) => ({ name, ...(tree.facts?.[index]?.file ? { file: tree.facts[index]!.file, line: tree.facts[index]!.line } : {}) })) },
    profiles: [{ type: 'sampled', name: title, unit, startValue: 0, endValue: tree.total[0] ?? 0, samples, weights }],
  });
}

const escape = (text: string) => text.replace(/[&<>"]/g, (character) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[character]!);

export function toSvg(look: SceneLook, window: ValueWindow, describe: (node: number) => string): string {
  const { tree } = look;
  const width = 1600;
  const row = 18;
  const scale = width / (window.to - window.from);
  const height = levelCount(tree) * row;
  const boxes: string[] = [];
  for (let i = 0; i < tree.count; i++) {
    const left = Math.max(0, (tree.start[i]! - window.from) * scale);
    const right = Math.min(width, (tree.start[i]! + tree.total[i]! - window.from) * scale);
    if (right - left < 0.5) {
      // Nothing under a sliver can be wider: skip the whole subtree.
      i = tree.subtreeEnd[i]! - 1;
      continue;
    }
    const top = look.growsUp ? height - (tree.depth[i]! + 1) * row : tree.depth[i]! * row;
    const fill = cssOfPixel(look.nodeColour ? look.nodeColour[i]! : look.nameColour[tree.name[i]!]!);
    const label = fitLabel('', tree.names[tree.name[i]!]!, Math.floor((right - left - 6) / 7));
    boxes.push(
      `<g><title>${escape(describe(i))}</title><rect x="${left.toFixed(1)}" y="${top}" width="${Math.max(0.5, right - left - 0.5).toFixed(1)}" height="${row - 1}" fill="${fill}"/>${label ? `<text x="${(left + 3).toFixed(1)}" y="${top + 13}">${escape(label)}</text>` : ''}</g>`,
    );
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="monospace" font-size="11.6" fill="${cssOfPixel(look.palette.text)}"><rect width="${width}" height="${height}" fill="${cssOfPixel(look.palette.background)}"/>${boxes.join('')}</svg>`;
}

export function download(name: string, content: string | Blob, type = 'text/plain'): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(typeof content === 'string' ? new Blob([content], { type }) : content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
