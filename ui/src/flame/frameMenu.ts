// What can be done with a frame: the same list for the right mouse button, for `m`, and for rows of the tables.
import { copyText } from '../app/CopyButton';
import type { MenuItem } from '../app/Menu';
import { packageOf } from './frameNames';
import type { Transform } from './transforms';
import { type FlameTree, stackOf } from './tree';

interface Actions {
  add: (transform: Transform) => void;
  sandwich: (functionName: string) => void;
  zoom: (node: number) => void;
  spansOf: (functionName: string) => void;
  sourceOf: ((file: string, line: number) => void) | null;
}

/** `node` is −1 for a function without a place, as in the table. */
export function frameMenu(tree: FlameTree, functionName: string, node: number, actions: Actions): MenuItem[] {
  const facts = tree.facts?.[tree.names.indexOf(functionName)];
  const pkg = packageOf(functionName, facts);
  const items: MenuItem[] = [];
  if (node > 0) items.push({ label: 'Zoom to this frame', hint: 'Enter', run: () => actions.zoom(node) });
  items.push(
    { label: 'Focus on function', run: () => actions.add({ do: 'focus', name: functionName }) },
    { label: 'Sandwich: callers and callees', run: () => actions.sandwich(functionName) },
    'line',
    { label: 'Merge into callers', run: () => actions.add({ do: 'merge', name: functionName }) },
    { label: 'Collapse its recursion', run: () => actions.add({ do: 'collapse-recursion', name: functionName }) },
  );
  if (pkg) items.push({ label: `Collapse package ${pkg}`, run: () => actions.add({ do: 'collapse-package', name: pkg }) });
  items.push({ label: 'Hide stacks with it', run: () => actions.add({ do: 'drop', name: functionName }) }, 'line');
  items.push({ label: 'Spans that ran this', run: () => actions.spansOf(functionName) });
  if (actions.sourceOf && facts?.file) items.push({ label: `Source ${facts.file.split('/').pop()}:${facts.line ?? ''}`, run: () => actions.sourceOf!(facts.file!, facts.line ?? 1) });
  items.push({ label: 'Copy name', run: () => void copyText(functionName) });
  if (node > 0) items.push({ label: 'Copy stack', run: () => void copyText(stackOf(tree, node).slice(1).map((frame) => describeFrame(tree, frame)).reverse().join('\n')) });
  return items;
}

function describeFrame(tree: FlameTree, node: number): string {
  const facts = tree.facts?.[tree.name[node]!];
  return `${tree.names[tree.name[node]!]}${facts?.file ? ` (${facts.file}${facts.line ? `:${facts.line}` : ''})` : ''}`;
}
