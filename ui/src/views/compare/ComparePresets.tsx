// Comparisons people ask for by name: before and after, version against version, slow against typical.
import { readLabelNames, readLabelValues } from '../../api/profiles';
import { labelMatcher } from '../../api/profileTypes';
import { readServices } from '../../api/services';
import { useAnswer } from '../../api/useAnswer';
import type { ResolvedRange } from '../../location/timeRange';
import { changeParams, type ParamChanges } from '../../location/urlState';
import { durationLiteral } from '../../traceql/narrow';

const CLEAR: ParamChanges = { kind: null, 'a.q': null, 'b.q': null, 'a.from': null, 'a.to': null, 'b.from': null, 'b.to': null };

export function ComparePresets({ service, range }: { service: string; range: ResolvedRange }) {
  const when = `${service}|${range.fromMs}|${range.toMs}`;
  const selector = `{service_name=${JSON.stringify(service)}}`;
  const versions = useAnswer(service ? `versions|${when}` : null, async (signal) => {
    const label = (await readLabelNames([selector], range, signal)).find((name) => /^(service[._])?version$|^commit$|^git[._]/.test(name));
    return label ? { label, values: await readLabelValues(label, [selector], range, signal) } : { label: '', values: [] };
  });
  const facts = useAnswer(service ? `facts|${when}` : null, (signal) => readServices(range, signal));
  const own = facts.value?.services.find((candidate) => candidate.service === service);
  const whole = { 'a.from': String(Math.round(range.fromMs)), 'a.to': String(Math.round(range.toMs)), 'b.from': String(Math.round(range.fromMs)), 'b.to': String(Math.round(range.toMs)) };
  // What differs comes first: a field shows only the beginning.
  const requestsOf = (condition: string) => `{ ${condition} && resource.service.name = ${JSON.stringify(service)} && kind = server }`;
  const { label, values } = versions.value ?? { label: '', values: [] };
  const [older, newer] = values.slice(-2);
  return (
    <span className="row">
      <span className="muted">Compare</span>
      <button onClick={() => changeParams(CLEAR)}>before / after</button>
      {older && newer && (
        <button title={`${label} ${older} against ${newer}`} onClick={() => changeParams({ ...CLEAR, ...whole, 'a.q': labelMatcher(label, older), 'b.q': labelMatcher(label, newer) })}>
          {older} / {newer}
        </button>
      )}
      {own && own.p95_ns > 0 && (
        <button
          title={`Spans faster than the median against those slower than P95 (${durationLiteral(own.p95_ns)})`}
          onClick={() => changeParams({ ...CLEAR, ...whole, kind: 'spans', 'a.q': requestsOf(`duration < ${durationLiteral(own.p50_ns)}`), 'b.q': requestsOf(`duration > ${durationLiteral(own.p95_ns)}`) })}
        >
          fast half / slowest 5 %
        </button>
      )}
    </span>
  );
}
