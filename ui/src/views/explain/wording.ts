// Short texts about a cause. Whole sentences come from the server, so that page, terminal and ticket never disagree.
import type { Cause, Explanation } from '../../api/explain';
import { formatCount, formatDuration, formatShare } from '../../format/units';

export const ms = (value: number) => formatDuration(value * 1e6);

/** `tax.go:112` */
export function placeOf({ file, line }: Pick<Cause, 'file' | 'line'>): string {
  return file ? `${file.split('/').pop()}${line ? `:${line}` : ''}` : '';
}

/** `tax POST /v1/tax`, `checkout POST → tax` */
export function operationOf({ service, operation, callee }: { service: string; operation: string; callee?: string | null }): string {
  return `${service} ${operation}`.trim() + (callee ? ` → ${callee}` : '');
}

const mean = (value: number) => (Math.abs(value) < 100 ? value.toFixed(1) : formatCount(value));

/** A smaller share of a difference is not worth a sentence. */
const WORTH_A_WORD = 0.1;

/** How the requests in question are called, and those they are compared with. */
export type SideNames = readonly ['slow', 'fast'] | readonly ['before', 'after'] | readonly ['after', 'before'];

/** Where a change helped, what was before it is in question: causes are what it took away. */
export function sideNames({ comparison }: Pick<Explanation, 'comparison'>): SideNames {
  if (!comparison) return ['slow', 'fast'];
  return comparison.change === 'faster' ? ['before', 'after'] : ['after', 'before'];
}

/** `40.0 calls instead of 2.0`, and which requests have it. */
export function detailsOf({ calls, where, delta_ms, waiting_for_cpu_ms = 0 }: Cause, [inQuestion, compared]: SideNames = ['slow', 'fast']): string[] {
  const [these, those] = inQuestion === 'slow' ? ['slow', 'fast requests'] : [`requests ${inQuestion} it`, `those ${compared} it`];
  const details: string[] = [];
  if (waiting_for_cpu_ms >= WORTH_A_WORD * delta_ms) details.push(`${ms(waiting_for_cpu_ms)} of it without a CPU: others kept the machine busy.`);
  if (calls && Math.abs(calls.slow - calls.fast) >= 0.5) {
    details.push(`${calls.slow.toFixed(1)} calls a request instead of ${calls.fast.toFixed(1)}: ${ms(calls.more_calls_ms)} by more calls, ${ms(calls.slower_calls_ms)} by slower ones.`);
  }
  for (const { attribute, value, slow, fast } of where ?? []) {
    details.push(value === undefined ? `${attribute} is ${mean(slow)} on average instead of ${mean(fast)}.` : `${attribute} = ${value} in ${formatShare(slow)} of ${these} and ${formatShare(fast)} of ${those}.`);
  }
  return details;
}

/** Who is compared with whom. */
export function sidesOf({ slow, fast, comparison }: Explanation, baseline: string): string {
  const spans = (count: number) => `${formatCount(count)} request${count === 1 ? '' : 's'}`;
  if (comparison) return `${spans(comparison.before.spans)} before the change, ${spans(comparison.after.spans)} after it.`;
  if (fast.spans === 0) return `${spans(slow.spans)} at ${ms(slow.mean_ms)}${slow.spans > 1 ? ' on average' : ''}; ${baseline ? 'the baseline selects none' : 'there are none of the same operation'} to compare with.`;
  const against = baseline ? 'that the baseline selects' : 'of the same operation around its median';
  return `${spans(slow.spans)} at ${ms(slow.mean_ms)} against ${formatCount(fast.spans)} at ${ms(fast.mean_ms)} on average, ${against}.`;
}
