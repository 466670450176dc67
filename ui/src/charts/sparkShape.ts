// What a small plot shows: where its lines run, which step the pointer is over, and all of it in words.
import { timeWithUtc } from '../format/clock';

export interface SparkLine {
  label: string;
  /** Over the time in equal steps, oldest first; null where there is nothing to tell. */
  values: readonly (number | null)[];
  colour: string;
  width?: number;
  dash?: string;
}

export interface Box {
  width: number;
  height: number;
}

const known = (line: SparkLine) => line.values.filter((value): value is number => value !== null);

/** All lines share one scale from zero to the highest value of any. */
export function highestOf(lines: readonly SparkLine[]): number {
  return lines.reduce((highest, line) => known(line).reduce((most, value) => Math.max(most, value), highest), 0);
}

/** A line with gaps where nothing is known; a step between two gaps is a dash. */
export function pathOf(values: readonly (number | null)[], highest: number, { width, height }: Box): string {
  const x = (index: number) => (values.length < 2 ? width / 2 : (index / (values.length - 1)) * (width - 2) + 1).toFixed(1);
  const y = (value: number) => (height - 2 - (value / (highest || 1)) * (height - 4)).toFixed(1);
  return values.map((value, index) => (value === null ? '' : `${index > 0 && typeof values[index - 1] === 'number' ? 'L' : 'M'}${x(index)} ${y(value)}${typeof values[index - 1] !== 'number' && typeof values[index + 1] !== 'number' ? 'm-1 0h2' : ''}`)).join('');
}

/** The step under a pointer that is `x` pixels from the left edge. */
export function stepAt(x: number, width: number, steps: number): number {
  return Math.max(0, Math.min(steps - 1, Math.round(((x - 1) / (width - 2)) * (steps - 1))));
}

export interface Span {
  fromMs: number;
  toMs: number;
}

/** When a step begins. */
export const stepStart = ({ fromMs, toMs }: Span, step: number, steps: number) => fromMs + ((toMs - fromMs) * step) / steps;

/** For those who can't see it: how high each line goes, and when. */
export function inWords(what: string, lines: readonly SparkLine[], format: (value: number) => string, span: Span | null): string {
  const told = lines.filter((line) => known(line).length > 0).map((line) => {
    const most = Math.max(...known(line));
    const when = span && most > 0 ? ` at ${timeWithUtc(stepStart(span, line.values.indexOf(most), line.values.length))}` : '';
    return `${lines.length > 1 ? `${line.label} ` : ''}at most ${format(most)}${when}`;
  });
  return `${what} over time: ${told.join(', ') || 'nothing'}`;
}
