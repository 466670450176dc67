// The page's state lives in the URL's fragment: `#/trace/ID?span=…&view=icicle`. A fragment needs nothing from the server,
// works behind any path prefix, and keeps queries out of access logs.
import { useCallback, useSyncExternalStore } from 'react';

export interface PageLocation {
  path: readonly string[];
  params: Readonly<Record<string, string>>;
}

export type ParamChanges = Readonly<Record<string, string | null | undefined>>;

export function parseFragment(fragment: string): PageLocation {
  const text = fragment.replace(/^#/, '');
  const cut = text.indexOf('?');
  const pathText = cut < 0 ? text : text.slice(0, cut);
  const params: Record<string, string> = {};
  if (cut >= 0) for (const [key, value] of new URLSearchParams(text.slice(cut + 1))) params[key] = value;
  return { path: pathText.split('/').filter(Boolean).map(decodeURIComponent), params };
}

export function formatFragment(path: readonly string[], params: ParamChanges): string {
  const query = new URLSearchParams();
  // Sorted, so that equal states are equal strings.
  for (const key of Object.keys(params).sort()) {
    const value = params[key];
    if (value !== null && value !== undefined && value !== '') query.set(key, value);
  }
  const text = query.toString();
  return `#/${path.map(encodeURIComponent).join('/')}${text ? `?${text}` : ''}`;
}

/** Time range and service travel along from view to view; everything else belongs to one view. */
const TRAVELLING = ['from', 'to', 'service'] as const;

export function travellingParams(params: Readonly<Record<string, string>>): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const key of TRAVELLING) if (params[key]) kept[key] = params[key];
  return kept;
}

let cachedFragment = '';
let cachedLocation: PageLocation = parseFragment('');
const listeners = new Set<() => void>();

export function currentLocation(): PageLocation {
  if (location.hash !== cachedFragment) {
    cachedFragment = location.hash;
    cachedLocation = parseFragment(cachedFragment);
  }
  return cachedLocation;
}

function subscribe(notify: () => void): () => void {
  if (listeners.size === 0) {
    addEventListener('hashchange', announce);
    addEventListener('popstate', announce);
  }
  listeners.add(notify);
  return () => {
    listeners.delete(notify);
  };
}

function announce(): void {
  listeners.forEach((notify) => notify());
}

export function go(fragment: string, how: 'push' | 'replace' = 'push'): void {
  if (fragment === location.hash) return;
  if (how === 'push') history.pushState(null, '', fragment);
  else history.replaceState(null, '', fragment);
  announce();
}

/** Opens another view; `params` join those that travel. */
export function openView(path: readonly string[], params: ParamChanges = {}): void {
  go(hrefOf(path, params));
}

export function hrefOf(path: readonly string[], params: ParamChanges = {}): string {
  return formatFragment(path, { ...travellingParams(currentLocation().params), ...params });
}

export function changeParams(changes: ParamChanges, how: 'push' | 'replace' = 'push'): void {
  const { path, params } = currentLocation();
  go(formatFragment(path, { ...params, ...changes }), how);
}

export function usePageLocation(): PageLocation {
  return useSyncExternalStore(subscribe, currentLocation);
}

/** One parameter as state. Small changes (a zoom, a hover) should replace; steps worth going back to should push. */
export function useParam(key: string, fallback = ''): [string, (value: string | null, how?: 'push' | 'replace') => void] {
  const { params } = usePageLocation();
  const set = useCallback(
    (value: string | null, how: 'push' | 'replace' = 'push') => changeParams({ [key]: value === fallback ? null : value }, how),
    [key, fallback],
  );
  return [params[key] ?? fallback, set];
}
