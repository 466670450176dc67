// A menu at a point: arrow keys walk, Enter chooses, Esc or a click elsewhere closes.
import { useEffect, useLayoutEffect, useRef, useState } from 'react';

export type MenuItem = { label: string; hint?: string; run: () => void } | 'line';

export function Menu({ x, y, title, items, close }: { x: number; y: number; title: string; items: readonly MenuItem[]; close: () => void }) {
  const box = useRef<HTMLDivElement>(null);
  const [place, setPlace] = useState({ left: x, top: y });
  useLayoutEffect(() => {
    const bounds = box.current!.getBoundingClientRect();
    setPlace({ left: Math.max(4, Math.min(x, innerWidth - bounds.width - 4)), top: Math.max(4, Math.min(y, innerHeight - bounds.height - 4)) });
    box.current!.querySelector('button')?.focus();
  }, [x, y]);
  useEffect(() => {
    const leave = (event: PointerEvent) => {
      if (!box.current?.contains(event.target as Node)) close();
    };
    addEventListener('pointerdown', leave);
    return () => removeEventListener('pointerdown', leave);
  }, [close]);
  return (
    <div
      ref={box}
      className="menu"
      role="menu"
      aria-label={title}
      style={place}
      onKeyDown={(event) => {
        event.stopPropagation();
        const buttons = [...box.current!.querySelectorAll('button')];
        const at = buttons.indexOf(document.activeElement as HTMLButtonElement);
        if (event.key === 'ArrowDown' || event.key === 'j') buttons[(at + 1) % buttons.length]?.focus();
        else if (event.key === 'ArrowUp' || event.key === 'k') buttons[(at - 1 + buttons.length) % buttons.length]?.focus();
        else if (event.key === 'Escape' || event.key === 'Tab') close();
        else return;
        event.preventDefault();
      }}
    >
      <div className="title mono">{title}</div>
      {items.map((item, index) =>
        item === 'line' ? (
          <hr key={index} />
        ) : (
          <button
            key={item.label}
            role="menuitem"
            onClick={() => {
              close();
              item.run();
            }}
          >
            <span>{item.label}</span>
            {item.hint && <span className="muted">{item.hint}</span>}
          </button>
        ),
      )}
    </div>
  );
}
