// A small plot in a table cell. Zero is the floor; each is as high as its own highest value, so shapes compare and heights don't.
import { useState } from 'react';
import { timeWithUtc } from '../format/clock';
import { type Box, highestOf, inWords, pathOf, type Span, type SparkLine, stepAt, stepStart } from './sparkShape';

interface Props extends Partial<Box> {
  /** What is plotted, for those who can't see it. */
  what: string;
  lines: readonly SparkLine[];
  format: (value: number) => string;
  /** The time that the steps cut; without it a plot tells no times. */
  span?: Span | null;
}

export function Spark({ what, lines, format, span = null, width = 56, height = 18 }: Props) {
  const [over, setOver] = useState<{ step: number; x: number; y: number } | null>(null);
  const steps = Math.max(0, ...lines.map((line) => line.values.length));
  if (!lines.some((line) => line.values.some((value) => value !== null)) || steps < 2) return <span className="spark-gap" style={{ width }} />;
  const highest = highestOf(lines);
  const box = { width, height };
  return (
    <>
      <svg
        className="spark"
        {...box}
        role="img"
        aria-label={inWords(what, lines, format, span)}
        onPointerMove={(event) => {
          const bounds = event.currentTarget.getBoundingClientRect();
          setOver({ step: stepAt(event.clientX - bounds.left, width, steps), x: event.clientX, y: bounds.bottom });
        }}
        onPointerLeave={() => setOver(null)}
      >
        {over && <line x1={1 + (over.step / (steps - 1)) * (width - 2)} x2={1 + (over.step / (steps - 1)) * (width - 2)} y1={0} y2={height} stroke="var(--line-strong)" />}
        {lines.map((line) => (
          <path key={line.label} d={pathOf(line.values, highest, box)} fill="none" stroke={line.colour} strokeWidth={line.width ?? 1.25} strokeDasharray={line.dash} strokeLinecap="round" strokeLinejoin="round" />
        ))}
      </svg>
      {over && (
        <div className="tip spark-tip" style={{ ...(over.x > innerWidth - 240 ? { right: innerWidth - over.x + 8 } : { left: over.x + 8 }), ...(over.y > innerHeight - 120 ? { bottom: innerHeight - over.y + 24 } : { top: over.y + 6 }) }}>
          {span && <div>{timeWithUtc(stepStart(span, over.step, steps))}</div>}
          {[...lines].reverse().map((line) => {
            const value = line.values[over.step];
            return (
              <div key={line.label}>
                {line.label} <b>{value === null || value === undefined ? 'nothing ran' : format(value)}</b>
              </div>
            );
          })}
        </div>
      )}
    </>
  );
}
