// Keyboard first: views register what their keys do, `?` lists whatever is registered at that moment.
import { useEffect, useRef, useSyncExternalStore } from 'react';

export interface KeyBinding {
  /** As in KeyboardEvent.key, with `ctrl+` before it where needed. */
  key: string;
  does: string;
  run: (event: KeyboardEvent) => void;
}

interface Layer {
  title: string;
  bindings: readonly KeyBinding[];
}

let layers: readonly { current: Layer }[] = [];
const listeners = new Set<() => void>();

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement || (target instanceof HTMLInputElement && target.type !== 'checkbox' && target.type !== 'radio');
}

function onKeyDown(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.altKey || event.metaKey) return;
  // Keys belong to a dialog while one is open; Esc closes it by itself.
  if (document.querySelector('dialog[open]')) return;
  if (isTyping(event.target)) {
    // Esc leaves a field, so that every other key works again without a mouse; browsers would empty a search field on the way.
    if (event.key === 'Escape') {
      event.preventDefault();
      (event.target as HTMLElement).blur();
    }
    return;
  }
  const name = (event.ctrlKey ? 'ctrl+' : '') + event.key;
  // A focused button or link keeps Enter and Space for itself.
  if ((event.key === 'Enter' || event.key === ' ') && event.target instanceof HTMLElement && event.target.closest('button, a, summary, [role="menuitem"]')) return;
  // The layer mounted last is the most specific one.
  for (let i = layers.length - 1; i >= 0; i--) {
    const binding = layers[i]!.current.bindings.find((candidate) => candidate.key === name);
    if (binding) {
      event.preventDefault();
      binding.run(event);
      return;
    }
  }
}

export function useKeys(title: string, bindings: readonly KeyBinding[]): void {
  const layer = useRef<Layer>({ title, bindings });
  useEffect(() => {
    layer.current = { title, bindings };
  });
  useEffect(() => {
    if (layers.length === 0) addEventListener('keydown', onKeyDown);
    layers = [...layers, layer];
    listeners.forEach((notify) => notify());
    return () => {
      layers = layers.filter((other) => other !== layer);
      if (layers.length === 0) removeEventListener('keydown', onKeyDown);
      listeners.forEach((notify) => notify());
    };
  }, []);
}

export function useKeyLayers(): readonly { current: Layer }[] {
  return useSyncExternalStore(
    (notify) => {
      listeners.add(notify);
      return () => listeners.delete(notify);
    },
    () => layers,
  );
}
