// Traces that strain a page: a nightly job too long to be read whole, and one that is deep and of long names.

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
  await send(origin, 'nightly', spans);
}

export const DEEP_TRACE = 'de'.repeat(16);
const LEVELS = 200;
const LONG_NAME = 'com.example.platform.commerce.checkout.orchestration.CheckoutWorkflowExecutionStrategyFactory.executeWithRetriesAndCompensation';

/** Each span has one child; each name and that of the service would fill a line. */
export async function sendDeepTrace(origin, startMs) {
  const base = BigInt(Math.floor(startMs)) * 1_000_000n;
  const spans = Array.from({ length: LEVELS }, (_, level) => ({
    traceId: DEEP_TRACE,
    spanId: idOf(level),
    ...(level === 0 ? {} : { parentSpanId: idOf(level - 1) }),
    name: `${LONG_NAME} ${level}`,
    kind: 1,
    startTimeUnixNano: String(base + BigInt(level) * 1_000_000n),
    endTimeUnixNano: String(base + BigInt(2 * LEVELS - level) * 1_000_000n),
  }));
  await send(origin, 'enterprise-commerce-checkout-orchestration-service-production-eu-central-1', spans);
}

async function send(origin, service, spans) {
  const body = JSON.stringify({ resourceSpans: [{ resource: { attributes: [{ key: 'service.name', value: { stringValue: service } }] }, scopeSpans: [{ scope: { name: 'job' }, spans }] }] });
  const answer = await fetch(`${origin}/v1/traces`, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  if (!answer.ok) throw new Error(`a trace was answered ${answer.status}: ${await answer.text()}`);
}
