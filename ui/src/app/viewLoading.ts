// Each view is its own file for the browser: the first screen does not wait for the others. Not React.lazy: once its fallback has
// shown, Suspense holds the content back for 300 ms, which was a third of the first paint.
import { type ComponentType, useEffect, useState } from 'react';
import { beginWaiting } from '../api/inFlight';

type View = ComponentType<{ traceId: string }>;

const LOADERS: Record<string, () => Promise<{ default: View }>> = {
  services: () => import('../views/services/ServicesView'),
  traces: () => import('../views/traces/TracesView'),
  trace: () => import('../views/trace/TraceView'),
  profiles: () => import('../views/profiles/ProfilesView'),
  compare: () => import('../views/compare/CompareView'),
  explain: () => import('../views/explain/ExplainView'),
  status: () => import('../views/status/StatusView'),
};

const loaded = new Map<string, View>();

async function load(name: string): Promise<void> {
  const loader = LOADERS[name];
  if (!loader || loaded.has(name)) return;
  const endWaiting = beginWaiting();
  try {
    loaded.set(name, (await loader()).default);
  } finally {
    endWaiting();
  }
}

/** Null while its file is on the way; undefined where there is no such view; `absent` where its file can't be had. */
export function useView(name: string): View | null | undefined | 'absent' {
  const [failed, setFailed] = useState('');
  const [, setArrived] = useState(0);
  useEffect(() => {
    if (loaded.has(name)) return;
    let current = true;
    void load(name).then(
      () => current && setArrived((count) => count + 1),
      () => current && setFailed(name),
    );
    return () => {
      current = false;
    };
  }, [name]);
  if (!(name in LOADERS)) return undefined;
  return loaded.get(name) ?? (failed === name ? 'absent' : null);
}

/** Starts the download before React has rendered anything. Whether it fails is told by the view that needs it. */
export function preloadView(name: string): void {
  load(name).catch(() => undefined);
}
