// Rows of one height, of which only the visible ones exist: the list may be a million long.
import { type ReactNode, useEffect, useRef, useState } from 'react';
import { useElementSize } from './useElementSize';

interface Props {
  count: number;
  rowHeight: number;
  label: string;
  role?: string;
  className?: string;
  header?: ReactNode;
  /** Scrolled into view when it changes. */
  follow?: number;
  children: (row: number) => ReactNode;
  onKeyDown?: (event: React.KeyboardEvent) => void;
}

const SPARE = 6;

export function VirtualRows({ count, rowHeight, label, role = 'list', className = '', header, follow, children, onKeyDown }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const { height } = useElementSize(box);
  const [top, setTop] = useState(0);
  useEffect(() => {
    const element = box.current;
    if (follow === undefined || follow < 0 || !element) return;
    const y = follow * rowHeight;
    if (y < element.scrollTop || y + rowHeight * 2 > element.scrollTop + element.clientHeight) element.scrollTop = y - element.clientHeight / 2;
  }, [follow, rowHeight]);
  const first = Math.max(0, Math.floor(top / rowHeight) - SPARE);
  const last = Math.min(count, Math.ceil((top + height) / rowHeight) + SPARE);
  const rows: ReactNode[] = [];
  for (let row = first; row < last; row++) rows.push(children(row));
  return (
    <div ref={box} className={`virtual ${className}`} role={role} aria-label={label} aria-rowcount={role === 'list' ? undefined : count} tabIndex={0} onScroll={(event) => setTop(event.currentTarget.scrollTop)} onKeyDown={onKeyDown}>
      {header}
      <div role="presentation" style={{ height: count * rowHeight, position: 'relative' }}>
        <div role="presentation" style={{ position: 'absolute', top: first * rowHeight, left: 0, right: 0 }}>
          {rows}
        </div>
      </div>
    </div>
  );
}
