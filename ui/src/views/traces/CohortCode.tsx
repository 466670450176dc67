// The code behind a set of spans: flame graph, or the difference to the rest.
import { useCallback, useMemo, useState } from 'react';
import { cohortDiff, cohortFlame, cohortLedger } from '../../api/cohort';
import type { Exactness } from '../../api/evidence';
import type { Scope } from '../../api/profiles';
import { useAnswer } from '../../api/useAnswer';
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

const TYPES = ['cpu', 'wall', 'off_cpu', 'alloc_space', 'mutex', 'block'];
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
  const onLoaded = useCallback(
    (loaded: LoadedFlame) => {
      onEvidence(loaded.exactness);
      // In a diff, side A is the baseline and side B the selection.
      setSizes({ requestsA: loaded.baseline?.spans, requestsB: loaded.exactness?.spans });
    },
    [onEvidence],
  );
  const mode: DiffMode = modeText === 'per-request' && !(sizes.requestsA && sizes.requestsB) ? 'share' : (modeText as DiffMode);
  const known = useMemo(() => sizes, [sizes]);
  return (
    <>
      <div className="bar" style={{ padding: '2px 8px' }}>
        <b className="ellipsis" style={{ maxWidth: '34ch' }}>
          {baseline ? `${subject} against the rest` : `Code of ${subject}`}
        </b>
        <select aria-label="Profile type" value={type} onChange={(event) => setType(event.target.value)}>
          {TYPES.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
        <select aria-label="Scope" value={scope} onChange={(event) => setScope(event.target.value)}>
          <option value="span">the spans alone</option>
          <option value="subtree">with their children</option>
          <option value="trace">whole traces</option>
          <option value="process">their processes</option>
        </select>
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
      <Progress what={`${type} samples of ${subject}`} answer={flame} />
      {flame.error && <Failure error={flame.error} what={baseline ? 'differences of cohorts' : 'flame graphs of cohorts'} retry={flame.retry} />}
      {flame.value && <FlameView bytes={flame.value} unit={type === 'alloc_space' ? 'bytes' : 'nanoseconds'} title={`${subject} ${type}`} onLoaded={onLoaded} diffMode={mode} sizes={known} />}
    </>
  );
}
