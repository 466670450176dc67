import { type ReactNode, useRef, useState } from 'react';

const STORAGE_KEY = 'hotspan.split';

function storedShare(): number {
  try {
    const value = Number(localStorage.getItem(STORAGE_KEY));
    return value > 0.1 && value < 0.9 ? value : 0.5;
  } catch {
    return 0.5;
  }
}

/** Requests left, code right. The divider moves by mouse and by arrow keys. */
export function SplitPanes({ left, right }: { left: ReactNode; right: ReactNode }) {
  const [share, setShare] = useState(storedShare);
  const box = useRef<HTMLDivElement>(null);
  const move = (next: number) => {
    const clamped = Math.min(0.85, Math.max(0.15, next));
    setShare(clamped);
    try {
      localStorage.setItem(STORAGE_KEY, clamped.toFixed(3));
    } catch {
      // Only a convenience.
    }
  };
  return (
    <div className="split" ref={box} style={{ gridTemplateColumns: `minmax(0, ${share}fr) 5px minmax(0, ${1 - share}fr)` }}>
      <div className="pane">{left}</div>
      <div
        className="divider"
        role="separator"
        aria-label="Width of the left half"
        aria-orientation="vertical"
        aria-valuenow={Math.round(share * 100)}
        aria-valuemin={15}
        aria-valuemax={85}
        tabIndex={0}
        onKeyDown={(event) => {
          if (event.key === 'ArrowLeft') move(share - 0.05);
          if (event.key === 'ArrowRight') move(share + 0.05);
        }}
        onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
        onPointerMove={(event) => {
          if (!event.currentTarget.hasPointerCapture(event.pointerId)) return;
          const bounds = box.current!.getBoundingClientRect();
          move((event.clientX - bounds.left) / bounds.width);
        }}
        onDoubleClick={() => move(0.5)}
      />
      <div className="pane">{right}</div>
    </div>
  );
}
