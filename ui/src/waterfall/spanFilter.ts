// Span search: words, key=value, error, >100ms, and a minus before any of them.
import { plainValue } from '../api/traces';
import type { TraceModel } from './traceModel';

type Test = (trace: TraceModel, span: number) => boolean;

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
    return (trace, span) => {
      if (key === 'service' || key === 'service.name') return trace.service[span]!.toLowerCase().includes(wanted);
      if (key === 'name') return trace.name[span]!.toLowerCase().includes(wanted);
      const attribute = trace.raw[span]!.attributes?.find((candidate) => candidate.key === key) ?? trace.resource[span]!.find((candidate) => candidate.key === key);
      return attribute !== undefined && plainValue(attribute.value).toLowerCase().includes(wanted);
    };
  }
  const word = term.replace(/^"(.*)"$/, '$1').toLowerCase();
  return (trace, span) =>
    trace.name[span]!.toLowerCase().includes(word) ||
    trace.service[span]!.toLowerCase().includes(word) ||
    trace.spanId[span]!.startsWith(word) ||
    (trace.raw[span]!.attributes ?? []).some((attribute) => plainValue(attribute.value).toLowerCase().includes(word));
}

export function filterSpans(trace: TraceModel, text: string): Uint8Array | null {
  const terms = text.trim().match(/-?(?:[\w.:-]+="[^"]*"|"[^"]*"|\S+)/g);
  if (!terms) return null;
  const tests = terms.map((term) => (term.length > 1 && term.startsWith('-') ? { negated: true, test: testOf(term.slice(1)) } : { negated: false, test: testOf(term) }));
  const matched = new Uint8Array(trace.count);
  for (let span = 0; span < trace.count; span++) matched[span] = tests.every(({ negated, test }) => test(trace, span) !== negated) ? 1 : 0;
  return matched;
}
