// The code behind a set of spans: flame graph, or the difference to the rest.
import { useCallback, useEffect, useState } from 'react';
import { cohortDiff, cohortFlame, cohortLedger, cohortPprof, explainedShare } from '../../api/cohort';
import type { Exactness } from '../../api/evidence';
import type { Scope } from '../../api/profiles';
import { typeLabel, unitOfType } from '../../api/profileTypes';
import { useAnswer } from '../../api/useAnswer';
import { ScopeSelect } from '../../app/ScopeSelect';
import { TypeSelect } from '../../app/TypeSelect';
import { Failure, Progress } from '../../app/Waiting';
import type { DiffMode, SideSizes } from '../../flame/diff';
import type { LoadedFlame } from '../../flame/flameWorker';
import { FlameView } from '../../flame/FlameView';
import type { ResolvedRange } from '../../location/timeRange';
import { useParam } from '../../location/urlState';
import { LedgerBar } from '../../waterfall/LedgerBar';

interface Props {
  query: string;
  /** Present: show what differs from these spans. */
  baseline: string | null;
  range: ResolvedRange;
  subject: string;
  onEvidence: (evidence: Exactness | null) => void;
}

const MODES: readonly [DiffMode, string][] = [
  ['per-request', 'per request'],
  ['share', 'share'],
  ['absolute', 'absolute'],
];

export function CohortCode({ query, baseline, range, subject, onEvidence }: Props) {
  const [type, setType] = useParam('type', 'cpu');
  const [scopeText, setScope] = useParam('scope', 'subtree');
  const [modeText, setMode] = useParam('mode', 'per-request');
  const [sizes, setSizes] = useState<Partial<SideSizes>>({});
  const scope = scopeText as Scope;
  const key = `${query}|${baseline ?? ''}|${range.fromMs}|${range.toMs}|${type}|${scope}`;
  const flame = useAnswer(key, (signal) => (baseline ? cohortDiff({ query, baseline, type, range, scope }, signal) : cohortFlame({ query, type, range, scope, maxNodes: 100_000 }, signal)));
  const ledger = useAnswer(baseline ? null : `ledger|${query}|${range.fromMs}|${range.toMs}|${scope}`, (signal) => cohortLedger({ query, type, range, scope }, signal));
  const [exactness, setExactness] = useState<Exactness | null>(null);
  const onLoaded = useCallback((loaded: LoadedFlame) => {
    setExactness(loaded.exactness);
    // In a diff, side A is the baseline and side B the selection.
    setSizes({ requestsA: loaded.baseline?.spans, requestsB: loaded.exactness?.spans });
  }, []);
  useEffect(() => onEvidence(exactness && { ...exactness, explained: ledger.value ? explainedShare(ledger.value) : undefined }), [exactness, ledger.value, onEvidence]);
  const pprof = (signal: AbortSignal) => cohortPprof({ query, type, range, scope }, signal);
  const mode: DiffMode = modeText === 'per-request' && !(sizes.requestsA && sizes.requestsB) ? 'share' : (modeText as DiffMode);
  return (
    <>
      <div className="bar" style={{ padding: '2px 8px' }}>
        <b className="ellipsis" style={{ maxWidth: '34ch' }}>
          {baseline ? `Code of ${subject} against the rest` : `Code of ${subject}`}
        </b>
        <TypeSelect value={type} set={setType} range={range} />
        <ScopeSelect value={scope} set={setScope} />
        {baseline && (
          <select aria-label="Compare by" value={mode} onChange={(event) => setMode(event.target.value)}>
            {MODES.map(([name, label]) => (
              <option key={name} value={name} disabled={name === 'per-request' && !(sizes.requestsA && sizes.requestsB)}>
                {label}
              </option>
            ))}
          </select>
        )}
      </div>
      {ledger.value && <LedgerBar ledger={ledger.value} of="per request" />}
      <Progress what={`${typeLabel(type)} samples of ${subject}`} answer={flame} />
      {flame.error && <Failure error={flame.error} what={baseline ? 'differences of cohorts' : 'flame graphs of cohorts'} retry={flame.retry} />}
      {flame.value && <FlameView bytes={flame.value} unit={unitOfType(type)} title={`${subject} ${typeLabel(type)}`} onLoaded={onLoaded} diffMode={mode} sizes={sizes} pprof={baseline ? undefined : pprof} />}
    </>
  );
}
