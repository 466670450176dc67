// A trace too long to be read whole: a nightly job that works through its rows.

export const LONG_SPANS = 12_000;
export const LONG_TRACE = 'fe'.repeat(16);
/** The one row that is unlike the others, far down. */
export const ODD_ROW = 11_111;

const idOf = (number) => (number + 1).toString(16).padStart(16, '0');

/** Sends it in one request; every hundredth span has ninety-nine children. */
export async function sendLongTrace(origin, startMs) {
  const base = BigInt(Math.floor(startMs)) * 1_000_000n;
  const spans = Array.from({ length: LONG_SPANS }, (_, number) => {
    const parent = number === 0 ? null : number % 100 === 0 ? 0 : number - (number % 100);
    const from = base + BigInt(number) * 100_000n;
    return {
      traceId: LONG_TRACE,
      spanId: idOf(number),
      ...(parent === null ? {} : { parentSpanId: idOf(parent) }),
      name: number === 0 ? 'nightly' : number % 100 === 0 ? 'batch' : `row ${number % 7}`,
      kind: 1,
      startTimeUnixNano: String(from),
      endTimeUnixNano: String(from + (number === 0 ? 1_300_000_000n : number % 100 === 0 ? 9_900_000n : 90_000n)),
      attributes: [{ key: 'row.number', value: { intValue: String(number) } }, { key: 'row.kind', value: { stringValue: number === ODD_ROW ? 'odd' : 'even' } }],
    };
  });
  const body = JSON.stringify({ resourceSpans: [{ resource: { attributes: [{ key: 'service.name', value: { stringValue: 'nightly' } }] }, scopeSpans: [{ scope: { name: 'job' }, spans }] }] });
  const answer = await fetch(`${origin}/v1/traces`, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  if (!answer.ok) throw new Error(`the long trace was answered ${answer.status}: ${await answer.text()}`);
}
