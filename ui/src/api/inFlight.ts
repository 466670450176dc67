// Whether any answer is on its way: assistive tools (and tests) are told by `aria-busy`.
import { useSyncExternalStore } from 'react';

let waiting = 0;
const listeners = new Set<() => void>();

function change(by: number): void {
  waiting += by;
  listeners.forEach((notify) => notify());
}

/** Counts one until the returned function is called. */
export function beginWaiting(): () => void {
  change(1);
  let isOver = false;
  return () => {
    if (!isOver) change(-1);
    isOver = true;
  };
}

export function useIsWaiting(): boolean {
  return useSyncExternalStore(
    (notify) => {
      listeners.add(notify);
      return () => listeners.delete(notify);
    },
    () => waiting > 0,
  );
}
