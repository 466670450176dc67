// The part of the URL that belongs to a flame graph. A prefix keeps two graphs on one page apart.
import { useCallback, useMemo } from 'react';
import { changeParams, usePageLocation } from '../location/urlState';
import type { ColourBy } from './colours';
import { formatTransforms, parseTransforms, type Transform } from './transforms';

export const FLAME_VIEWS = ['flame', 'icicle', 'left-heavy', 'timeline', 'sandwich', 'tree', 'table'] as const;
export type FlameViewName = (typeof FLAME_VIEWS)[number];

export interface FlameState {
  view: FlameViewName;
  transforms: Transform[];
  find: string;
  /** Path hash of the node zoomed to, in hex; empty for the whole. */
  zoom: string;
  /** Free window as shares of the whole, `0.1-0.25`; beats `zoom`. */
  window: string;
  /** Path hash of the selected frame. */
  selected: string;
  functionName: string;
  colourBy: ColourBy;
}

type Changes = Partial<Omit<FlameState, 'transforms'>> & { transforms?: readonly Transform[] };
export type ChangeFlame = (changes: Changes, how?: 'push' | 'replace') => void;

const SHORT: Record<keyof FlameState, string> = { view: 'view', transforms: 'tf', find: 'find', zoom: 'zoom', window: 'win', selected: 'sel', functionName: 'fn', colourBy: 'colour' };

export function useFlameState(prefix: string): [FlameState, ChangeFlame] {
  const { params } = usePageLocation();
  const read = (key: keyof FlameState) => params[prefix + SHORT[key]] ?? '';
  const view = read('view');
  const transformText = read('transforms');
  const transforms = useMemo(() => parseTransforms(transformText), [transformText]);
  const state: FlameState = {
    view: (FLAME_VIEWS as readonly string[]).includes(view) ? (view as FlameViewName) : 'icicle',
    transforms,
    find: read('find'),
    zoom: read('zoom'),
    window: read('window'),
    selected: read('selected'),
    functionName: read('functionName'),
    colourBy: read('colourBy') === 'kind' || read('colourBy') === 'thread' ? (read('colourBy') as ColourBy) : 'package',
  };
  const change = useCallback(
    (changes: Changes, how: 'push' | 'replace' = 'push') => {
      const written: Record<string, string | null> = {};
      for (const [key, value] of Object.entries(changes) as [keyof FlameState, unknown][]) {
        written[prefix + SHORT[key]] = key === 'transforms' ? formatTransforms(value as Transform[]) : String(value) || null;
      }
      if (written[`${prefix}view`] === 'icicle') written[`${prefix}view`] = null;
      changeParams(written, how);
    },
    [prefix],
  );
  return [state, change];
}
