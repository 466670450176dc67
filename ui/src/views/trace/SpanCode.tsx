// The code of the selected span, at once: scope and type switch, ledger, flame graph.
import { useCallback, useDeferredValue, useEffect, useMemo, useState } from 'react';
import { cohortFlame, cohortLedger, cohortPprof, explainedShare, type Ledger, mergedFlame } from '../../api/cohort';
import type { Exactness } from '../../api/evidence';
import { readProfile, readTimedSamples, type Scope, type SpanProfileFacts } from '../../api/profiles';
import { typeLabel, unitOfType } from '../../api/profileTypes';
import { useAnswer } from '../../api/useAnswer';
import { TypeSelect } from '../../app/TypeSelect';
import { Failure, Progress } from '../../app/Waiting';
import type { LoadedFlame } from '../../flame/flameWorker';
import { FlameView } from '../../flame/FlameView';
import { useKeys } from '../../keys/keyLayer';
import { useParam } from '../../location/urlState';
import { spanLedger } from '../../waterfall/barParts';
import { LedgerBar } from '../../waterfall/LedgerBar';
import type { TraceModel } from '../../waterfall/traceModel';

const SCOPES: readonly [Scope, string][] = [
  ['span', 'span'],
  ['subtree', '+ children'],
  ['trace', 'trace'],
  ['process', 'process'],
];
const SCOPE_HINTS: Record<Scope, string> = {
  span: 'Samples of this span alone',
  subtree: 'Samples of this span and all below it',
  trace: 'Samples of the whole trace',
  process: 'All samples of the process while the span ran',
};

interface Props {
  trace: TraceModel;
  traceId: string;
  span: number;
  facts: Readonly<Record<string, SpanProfileFacts>> | null;
  onEvidence: (evidence: Exactness | null) => void;
}

export function SpanCode({ trace, traceId, span: chosen, facts, onEvidence }: Props) {
  const [scopeText, setScope] = useParam('scope', 'subtree');
  const [type, setType] = useParam('type', 'cpu');
  const [merged, setMerged] = useParam('merged');
  // Walking rows with a held key must not queue a request per row.
  const span = useDeferredValue(chosen);
  const scope = scopeText as Scope;
  const spanId = trace.spanId[span]!;
  const range = useMemo(() => ({ fromMs: trace.originMs - 60_000, toMs: trace.originMs + trace.totalNs / 1e6 + 60_000 }), [trace]);
  const query = `{ trace:id = "${traceId}" && span:id = "${spanId}" }`;
  const subject = scope === 'trace' ? traceId : spanId;
  const ofTrace = scope === 'span' || scope === 'trace' ? { trace_id: traceId, ...(scope === 'span' ? { span_id: spanId } : {}), type } : null;
  const flame = useAnswer(`${traceId}|${subject}|${scope}|${type}|${merged}`, (signal) => {
    if (merged) return mergedFlame({ query, type, range, scope: 'subtree' }, signal);
    return ofTrace ? readProfile(ofTrace, signal) : cohortFlame({ query, type, range, scope }, signal);
  });
  const pprof = (signal: AbortSignal) => (ofTrace ? readProfile(ofTrace, signal, 'pprof') : cohortPprof({ query, type, range, scope }, signal));
  const remoteLedger = useAnswer(`${traceId}|${spanId}|${type}`, async (signal) => ({ spanId, ledger: await cohortLedger({ query, type, range, scope: 'span' }, signal) }));
  const ledger = useMemo<Ledger>(() => {
    if (remoteLedger.value?.spanId === spanId) return remoteLedger.value.ledger;
    // What the page could reckon itself knows less, and would be contradicted a moment later.
    if (!remoteLedger.error) return { duration_ns: trace.duration[span]!, parts: [] };
    const own = spanLedger(trace, span, facts?.[spanId]);
    return {
      duration_ns: own.durationNs,
      parts: [
        { kind: 'cpu', ns: own.cpuNs },
        { kind: 'waiting', ns: own.waitNs },
        { kind: 'child', ns: own.childNs },
        { kind: 'unexplained', ns: own.unexplainedNs },
      ],
    };
  }, [remoteLedger.value, remoteLedger.error, trace, span, facts, spanId]);
  const [exactness, setExactness] = useState<Exactness | null>(null);
  const onLoaded = useCallback((loaded: LoadedFlame) => setExactness(loaded.exactness), []);
  useEffect(() => onEvidence(exactness && { ...exactness, explained: ledger.parts.length > 0 ? explainedShare(ledger) : undefined }), [exactness, ledger, onEvidence]);
  const timed = {
    key: `timed|${traceId}|${subject}|${scope}|${type}`,
    load: (signal: AbortSignal) => {
      const ids = scope === 'span' ? [spanId] : trace.spanId.slice(span, trace.subtreeEnd[span]);
      return readTimedSamples(traceId, scope === 'trace' || scope === 'process' ? null : new Set(ids), type, signal);
    },
  };
  useKeys('Code of the span', [
    { key: 'g', does: 'merged tree of spans and code', run: () => setMerged(merged ? null : '1') },
    { key: 'f', does: 'to the flame graph', run: () => document.querySelector<HTMLElement>('.flame-stage')?.focus() },
  ]);
  return (
    <>
      <div className="bar" style={{ padding: '2px 8px' }}>
        <b className="ellipsis" style={{ maxWidth: '30ch' }} title={trace.name[span]}>
          {trace.name[span]}
        </b>
        <span className="buttons" role="group" aria-label="Samples of">
          {SCOPES.map(([name, label]) => (
            <button key={name} aria-pressed={!merged && scope === name} title={SCOPE_HINTS[name]} onClick={() => (setScope(name), merged && setMerged(null))}>
              {label}
            </button>
          ))}
          <button aria-pressed={merged === '1'} title="Spans go on into their code; sums to the whole duration  g" onClick={() => setMerged(merged ? null : '1')}>
            spans + code
          </button>
        </span>
        <TypeSelect value={type} set={setType} range={range} />
      </div>
      <LedgerBar ledger={ledger} of={`of ${trace.name[span]}`} />
      <Progress what={`${typeLabel(type)} samples of ${trace.name[span]}`} answer={flame} />
      {flame.error && <Failure error={flame.error} what={merged ? 'merged trees' : `flame graphs of ${scope === 'span' || scope === 'trace' ? 'spans' : `a ${scope}`}`} retry={flame.retry} />}
      {flame.value && (
        <FlameView
          bytes={flame.value}
          unit={unitOfType(type)}
          title={`${trace.name[span]} ${typeLabel(type)}`}
          onLoaded={onLoaded}
          timed={timed}
          pprof={pprof}
        />
      )}
    </>
  );
}
