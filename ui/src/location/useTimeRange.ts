import { useMemo, useSyncExternalStore } from 'react';
import { DEFAULT_RANGE, resolveRange, type ResolvedRange, type TimeRange } from './timeRange';
import { changeParams, usePageLocation } from './urlState';

/** The range as written, and as milliseconds. "now" is pinned until the range or `asOf` changes, so answers do not refetch on every render. */
export function useTimeRange(): { range: TimeRange; resolved: ResolvedRange; setRange: (range: TimeRange) => void } {
  const { params } = usePageLocation();
  const from = params.from ?? DEFAULT_RANGE.from;
  const to = params.to ?? DEFAULT_RANGE.to;
  const refresh = useRefreshCount();
  const resolved = useMemo(() => {
    void refresh;
    return resolveRange({ from, to }, Date.now());
  }, [from, to, refresh]);
  const range = useMemo(() => ({ from, to }), [from, to]);
  return { range, resolved, setRange };
}

export function setRange(range: TimeRange): void {
  const isDefault = range.from === DEFAULT_RANGE.from && range.to === DEFAULT_RANGE.to;
  changeParams(isDefault ? { from: null, to: null } : { from: range.from, to: range.to });
}


let refreshCount = 0;
const listeners = new Set<() => void>();

/** Reads "now" again: the reload button of the time range. */
export function refreshNow(): void {
  refreshCount++;
  listeners.forEach((notify) => notify());
}

function useRefreshCount(): number {
  return useSyncExternalStore(
    (notify) => {
      listeners.add(notify);
      return () => listeners.delete(notify);
    },
    () => refreshCount,
  );
}
