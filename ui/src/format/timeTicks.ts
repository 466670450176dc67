// Ticks of a time axis at round times of the viewer's clock, and how much of a time each needs to say.
import { clockTime } from './clock';

const STEPS_MS = [1, 2, 5, 10, 15, 30].map((seconds) => seconds * 1000).concat([1, 2, 5, 10, 15, 30].map((minutes) => minutes * 60_000), [1, 2, 3, 6, 12, 24, 48, 168].map((hours) => hours * 3_600_000));

export interface TimeTick {
  at: number;
  label: string;
}

/** A label stands in the middle of its tick, but must not hang over the end of the axis. */
export function labelAnchor(x: number, right: number): 'middle' | 'end' {
  return x > right - 24 ? 'end' : 'middle';
}

export function clockTicks(fromMs: number, toMs: number, wanted: number): TimeTick[] {
  const step = STEPS_MS.find((candidate) => (toMs - fromMs) / candidate <= wanted) ?? STEPS_MS.at(-1)!;
  // Round in the viewer's zone: midnight there is a tick, midnight in UTC need not be.
  const zone = new Date(fromMs).getTimezoneOffset() * 60_000;
  const ticks: TimeTick[] = [];
  for (let at = Math.ceil((fromMs - zone) / step) * step + zone; at <= toMs; at += step) ticks.push({ at, label: tickLabel(at, step) });
  return ticks;
}

function tickLabel(at: number, stepMs: number): string {
  if (stepMs >= 86_400_000) return new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric' }).format(at);
  const time = clockTime(at);
  return stepMs >= 60_000 ? time.slice(0, 5) : time;
}
