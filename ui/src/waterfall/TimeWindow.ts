// Visible part of a trace's time, in nanoseconds since its start.

export interface TimeWindow {
  from: number;
  to: number;
}

export function clampTime(window: TimeWindow, totalNs: number): TimeWindow {
  const width = Math.min(totalNs, Math.max(totalNs * 1e-7, window.to - window.from));
  const from = Math.min(Math.max(0, window.from), totalNs - width);
  return { from, to: from + width };
}

/** About `wanted` ticks at round numbers. */
export function timeTicks(window: TimeWindow, wanted: number): number[] {
  const raw = (window.to - window.from) / Math.max(1, wanted);
  const magnitude = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * magnitude).find((candidate) => candidate >= raw)!;
  const ticks: number[] = [];
  for (let tick = Math.ceil(window.from / step) * step; tick <= window.to; tick += step) ticks.push(tick);
  return ticks;
}
