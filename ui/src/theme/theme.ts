// Theme is the one piece of state kept locally and not in the URL: a shared link must not change the reader's eyes.
import { useSyncExternalStore } from 'react';

export type Theme = 'light' | 'dark';
const STORAGE_KEY = 'hotspan.theme';
const listeners = new Set<() => void>();

function storedTheme(): Theme | null {
  try {
    const value = localStorage.getItem(STORAGE_KEY);
    return value === 'light' || value === 'dark' ? value : null;
  } catch {
    return null; // Storage may be forbidden; the system's choice then decides.
  }
}

let current: Theme = storedTheme() ?? (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
document.documentElement.dataset.theme = current;

export function toggleTheme(): void {
  current = current === 'light' ? 'dark' : 'light';
  document.documentElement.dataset.theme = current;
  try {
    localStorage.setItem(STORAGE_KEY, current);
  } catch {
    // Without storage the choice lasts as long as the tab.
  }
  listeners.forEach((notify) => notify());
}

export function useTheme(): Theme {
  return useSyncExternalStore(
    (notify) => {
      listeners.add(notify);
      return () => listeners.delete(notify);
    },
    () => current,
  );
}

export function prefersReducedMotion(): boolean {
  return matchMedia('(prefers-reduced-motion: reduce)').matches;
}
