// Span search: words, key=value, error, >100ms, and a minus before any of them.
import { plainValue } from '../api/traces';
import type { SpanDetails, TraceModel } from './traceModel';

type Test = (trace: TraceModel, span: number, details: SpanDetails | undefined) => boolean;

const DURATION_NS: Record<string, number> = { ns: 1, us: 1e3, µs: 1e3, ms: 1e6, s: 1e9, m: 60e9 };

function testOf(term: string): Test {
  const duration = /^([<>])=?(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m)$/.exec(term);
  if (duration) {
    const limit = Number(duration[2]) * DURATION_NS[duration[3]!]!;
    return duration[1] === '>' ? (trace, span) => trace.duration[span]! > limit : (trace, span) => trace.duration[span]! < limit;
  }
  if (term === 'error') return (trace, span) => trace.failed[span] === 1;
  const pair = /^([\w.:-]+)=(.*)$/.exec(term);
  if (pair) {
    const [, key, raw] = pair;
    const wanted = raw!.replace(/^"(.*)"$/, '$1').toLowerCase();
    return (trace, span, details) => {
      if (key === 'service' || key === 'service.name') return trace.service[span]!.toLowerCase().includes(wanted);
      if (key === 'name') return trace.name[span]!.toLowerCase().includes(wanted);
      const attribute = details?.raw.attributes?.find((candidate) => candidate.key === key) ?? details?.resource.find((candidate) => candidate.key === key);
      return attribute !== undefined && plainValue(attribute.value).toLowerCase().includes(wanted);
    };
  }
  const word = term.replace(/^"(.*)"$/, '$1').toLowerCase();
  return (trace, span, details) =>
    trace.name[span]!.toLowerCase().includes(word) ||
    trace.service[span]!.toLowerCase().includes(word) ||
    trace.spanId[span]!.startsWith(word) ||
    (details?.raw.attributes ?? []).some((attribute) => plainValue(attribute.value).toLowerCase().includes(word));
}

function termsOf(text: string): string[] | null {
  return text.trim().match(/-?(?:[\w.:-]+="[^"]*"|"[^"]*"|\S+)/g);
}

/** Whether it has words that may stand in any attribute. */
export function hasWords(text: string): boolean {
  return (termsOf(text) ?? []).some((term) => !/^-?(?:error$|[<>]=?\d|[\w.:-]+=)/.test(term));
}

/** Whether it asks for an attribute by its name: then those of all spans are needed. */
export function asksForAttributes(text: string): boolean {
  return (termsOf(text) ?? []).some((term) => /^-?[\w.:-]+=./.test(term) && !/^-?(service(\.name)?|name)=/.test(term));
}

/** Of a trace without attributes, words look at names, services and ids alone: what happens to be here must not decide. */
export function filterSpans(trace: TraceModel, text: string): Uint8Array | null {
  const terms = termsOf(text);
  if (!terms) return null;
  const tests = terms.map((term) => (term.length > 1 && term.startsWith('-') ? { negated: true, test: testOf(term.slice(1)) } : { negated: false, test: testOf(term) }));
  const matched = new Uint8Array(trace.count);
  for (let span = 0; span < trace.count; span++) matched[span] = tests.every(({ negated, test }) => test(trace, span, trace.details?.[span]) !== negated) ? 1 : 0;
  return matched;
}
