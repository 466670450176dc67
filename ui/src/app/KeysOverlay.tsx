import { useEffect, useRef } from 'react';
import { useKeyLayers } from '../keys/keyLayer';

const SHOWN: Record<string, string> = { ' ': 'Space', ArrowUp: '↑', ArrowDown: '↓', ArrowLeft: '←', ArrowRight: '→', Escape: 'Esc' };

/** Lists what the keys do on this view, at this moment: it reads the registered layers, so it cannot go stale. */
export function KeysOverlay({ close }: { close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const layers = useKeyLayers();
  useEffect(() => {
    dialog.current?.showModal();
  }, []);
  return (
    <dialog ref={dialog} aria-label="Keys" onClose={close}>
      <div className="row">
        <h1 className="grow">Keys</h1>
        <button onClick={close}>Close</button>
      </div>
      <div className="keys">
        {layers
          .map((layer) => layer.current)
          .filter((layer) => layer.bindings.length > 0)
          .map((layer) => (
            <section key={layer.title}>
              <h2>{layer.title}</h2>
              <dl>
                {layer.bindings.map((binding) => (
                  <div key={binding.key} style={{ display: 'contents' }}>
                    <dt>
                      <kbd>{SHOWN[binding.key] ?? binding.key}</kbd>
                    </dt>
                    <dd>{binding.does}</dd>
                  </div>
                ))}
              </dl>
            </section>
          ))}
      </div>
    </dialog>
  );
}
