// The explanation as sentences: on the page, and as Markdown for a ticket. One wording for both, so they never disagree.
import type { Cause, Explanation } from '../../api/cohort';
import { formatDuration, formatShare } from '../../format/units';

const ms = (value: number) => formatDuration(value * 1e6);

export function placeOf(cause: Cause): string {
  return cause.file ? `${cause.file.split('/').pop()}${cause.line ? `:${cause.line}` : ''}` : '';
}

export function subjectOf(cause: Cause): string {
  return cause.function ?? ([cause.service, cause.operation].filter(Boolean).join(' ') || cause.kind);
}

/** `adds 1.9 s ± 104 ms to each slow checkout, 95 % of the difference` */
export function effectOf(cause: Cause): string {
  const half = cause.interval_ms ? (cause.interval_ms[1] - cause.interval_ms[0]) / 2 : 0;
  const amount = `${ms(cause.delta_ms)}${half > 0 ? ` ± ${ms(half)}` : ''}`;
  const where = cause.function ? [cause.service, cause.operation].filter(Boolean).join(' ') || 'request' : 'request';
  return `${doing(cause.kind, amount)} each slow ${where}, ${formatShare(cause.share)} of the difference`;
}

function doing(kind: string, amount: string): string {
  switch (kind) {
    case 'lock':
      return `waits ${amount} longer for a lock in`;
    case 'io':
      return `waits ${amount} longer for I/O in`;
    case 'scheduling':
      return `waits ${amount} longer for a CPU in`;
    case 'gc':
      return `spends ${amount} more on allocating and collecting garbage in`;
    case 'downstream':
      return `takes ${amount} longer in`;
    case 'waiting':
      return `waits ${amount} longer in`;
    default:
      return `adds ${amount} to`;
  }
}

export const HELPS: Record<string, string> = {
  parsing: 'Parse once and keep the result, or read only the part that is needed.',
  regex: 'Compile the pattern once, outside the request.',
  serialisation: 'Write less, or use a cheaper format on this path.',
  allocation: 'Reuse buffers; allocate outside the loop.',
  gc: 'Allocate less in this request; look at alloc_space for who does.',
  lock: 'Hold the lock for less, split it, or read without it.',
  io: 'Read less, read ahead, or keep it in memory.',
  recursion: 'Bound the depth, or remember results already computed.',
  'repeated calls': 'Fetch in one call what is fetched one by one.',
  retries: 'Find out why the first attempts fail; give up sooner, or wait less between attempts.',
  downstream: 'Look into that service: its own trace shows where it spends the time.',
  scheduling: 'The process had no CPU: raise its limit or move its neighbours.',
};

export function helpOf(cause: Cause): string | null {
  return cause.helps ?? HELPS[cause.pattern ?? ''] ?? HELPS[cause.kind] ?? null;
}

/** `40.0 calls instead of 2.0`, and which requests have it. */
export function detailsOf(cause: Cause): string[] {
  const details: string[] = [];
  const { calls } = cause;
  if (calls && Math.abs(calls.slow - calls.fast) >= 0.5) {
    details.push(`${calls.slow.toFixed(1)} calls a request instead of ${calls.fast.toFixed(1)}: ${ms(calls.more_calls_ms)} by more calls, ${ms(calls.slower_calls_ms)} by slower ones.`);
  }
  for (const { attribute, value, slow, fast } of cause.where ?? []) {
    details.push(value === undefined ? `${attribute} is ${slow.toFixed(1)} on average instead of ${fast.toFixed(1)}.` : `${attribute} = ${value} in ${formatShare(slow)} of slow and ${formatShare(fast)} of fast requests.`);
  }
  return details;
}

export function noteText(note: NonNullable<Explanation['notes']>[number]): string {
  return typeof note === 'string' ? note : (note.text ?? note.message ?? '');
}

/** Coverage may come as a number or as an object that holds it. */
export function coverageOf(explanation: Explanation): number | null {
  const raw = explanation.coverage;
  if (typeof raw === 'number') return raw;
  if (raw && typeof raw === 'object') {
    const inner = raw as Record<string, unknown>;
    for (const key of ['explained', 'share', 'coverage', 'time']) if (typeof inner[key] === 'number') return inner[key];
  }
  return explanation.exactness?.coverage ?? null;
}

export function verdictText(explanation: Explanation): string {
  if (explanation.verdict === 'found') {
    const first = explanation.causes[0];
    return first ? `${subjectOf(first)}${placeOf(first) ? ` (${placeOf(first)})` : ''} ${effectOf(first)}.` : 'A cause was found.';
  }
  if (explanation.verdict === 'not_enough_data') return 'Too little data to name a cause.';
  if (explanation.verdict === 'nothing') return 'Nothing that was measured explains a difference.';
  return explanation.verdict;
}

export function toMarkdown(explanation: Explanation, target: string, link: string): string {
  const lines = [`## Why is it slow?`, '', `**${verdictText(explanation)}**`, '', `Target: \`${target}\`  `, `Hotspan: ${link}`, ''];
  if (explanation.causes.length > 0) {
    lines.push('| # | cause | where | slow | fast | difference | share | samples |', '|---|---|---|---|---|---|---|---|');
    explanation.causes.forEach((cause, index) => {
      const interval = cause.interval_ms ? ` (${ms(cause.interval_ms[0])} to ${ms(cause.interval_ms[1])})` : '';
      lines.push(`| ${index + 1} | ${cause.kind}: \`${subjectOf(cause)}\` ${placeOf(cause)} | ${[cause.service, cause.operation].filter(Boolean).join(' ')} | ${ms(cause.slow_ms)} | ${ms(cause.fast_ms)} | ${ms(cause.delta_ms)}${interval} | ${formatShare(cause.share)} | ${cause.samples ?? ''} |`);
    });
    lines.push('');
    for (const detail of detailsOf(explanation.causes[0]!)) lines.push(`- ${detail}`);
    const help = helpOf(explanation.causes[0]!);
    if (help) lines.push(`What usually helps: ${help}`, '');
  }
  for (const note of explanation.notes ?? []) lines.push(`- ${noteText(note)}`);
  return lines.join('\n');
}
