// The scale of values beside a plot: from zero to a round number, in round steps.

export interface ValueScale {
  top: number;
  /** From zero to the top. */
  ticks: number[];
}

/** What people halve and double. */
const ROUND = [1, 2, 2.5, 5, 10];

/** About `wanted` steps that hold the highest value. Of nothing, only zero is a value. */
export function valueScale(highest: number, wanted: number): ValueScale {
  if (!(highest > 0) || !Number.isFinite(highest)) return { top: 1, ticks: [0] };
  const raw = highest / Math.max(1, wanted);
  const magnitude = 10 ** Math.floor(Math.log10(raw));
  const step = ROUND.map((factor) => factor * magnitude).find((candidate) => candidate >= raw * (1 - 1e-9))!;
  const steps = Math.ceil(highest / step - 1e-9);
  return { top: steps * step, ticks: Array.from({ length: steps + 1 }, (_, index) => index * step) };
}
