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
  return { path: pathText.split('/').filter(Boolean).map(decoded), params };
}

/** A mangled link must not take the page down. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
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
    if (stepOf(history.state) === null) history.replaceState({ step: 0 }, '');
    else depth = stepOf(history.state)!;
    addEventListener('hashchange', announce);
    addEventListener('popstate', announce);
  }
  listeners.add(notify);
  return () => {
    listeners.delete(notify);
  };
}

/** How many of the page's own steps lie behind: Esc must never lead out of the page. */
let depth = 0;

function stepOf(state: unknown): number | null {
  const step = (state as { step?: unknown } | null)?.step;
  return typeof step === 'number' ? step : null;
}

function announce(): void {
  const step = stepOf(history.state);
  // An entry without a number comes from a plain link: it is one step further.
  if (step === null) history.replaceState({ step: ++depth }, '');
  else depth = step;
  listeners.forEach((notify) => notify());
}

export function goBack(): void {
  if (depth > 0) history.back();
}

export function go(fragment: string, how: 'push' | 'replace' = 'push'): void {
  if (fragment === location.hash) return;
  if (how === 'push') history.pushState({ step: depth + 1 }, '', fragment);
  else history.replaceState({ step: depth }, '', fragment);
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
