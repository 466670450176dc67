// Two sides, chosen by time, label, version, cohort or percentile; merged or side by side.
import { useCallback, useMemo, useState } from 'react';
import { cohortDiff, cohortFlame } from '../../api/cohort';
import type { Exactness } from '../../api/evidence';
import { extentOfSeries, readLabelValues, type Scope, selectDiff, selectFlame, selectSeries } from '../../api/profiles';
import { CPU_TYPE, unitOfType } from '../../api/profileTypes';
import { type Answer, useAnswer } from '../../api/useAnswer';
import { EvidenceStrip } from '../../app/EvidenceStrip';
import { FitToData } from '../../app/FitToData';
import { NothingHere } from '../../app/NothingHere';
import { ScopeSelect } from '../../app/ScopeSelect';
import { TypeSelect } from '../../app/TypeSelect';
import { Failure, Progress } from '../../app/Waiting';
import type { DiffMode, SideSizes } from '../../flame/diff';
import type { LoadedFlame } from '../../flame/flameWorker';
import { FlameView } from '../../flame/FlameView';
import { dateAndTime } from '../../format/clock';
import { useKeys } from '../../keys/keyLayer';
import { changeParams, usePageLocation, useParam } from '../../location/urlState';
import { useTimeRange } from '../../location/useTimeRange';
import { spansOf } from '../../traceql/narrow';
import { ComparePresets } from './ComparePresets';
import { SideEditor } from './SideEditor';
import { profileSelector, rangeOfSide, type Side } from './sides';

const MODES: readonly [DiffMode, string][] = [
  ['share', 'share of each side'],
  ['absolute', 'absolute'],
  ['per-second', 'per second'],
  ['per-request', 'per request'],
];
const MOST_NODES = 100_000;
const SERIES_STEP = 15;

export default function CompareView() {
  const { resolved } = useTimeRange();
  const { params } = usePageLocation();
  const [kind] = useParam('kind', 'profile');
  const [type, setType] = useParam('type', CPU_TYPE);
  const [modeText, setMode] = useParam('mode', 'share');
  const [layout, setLayout] = useParam('layout', 'merged');
  const [scopeText, setScope] = useParam('scope', 'subtree');
  const scope = scopeText as Scope;
  const [evidence, setEvidence] = useState<Exactness | null>(null);
  const [requests, setRequests] = useState<{ a?: number; b?: number }>({});
  const services = useAnswer(`services|${resolved.fromMs}`, (signal) => readLabelValues('service_name', [], resolved, signal));
  const service = params.service ?? services.value?.[0] ?? '';
  const sides = useMemo(() => {
    const read = (name: 'a' | 'b'): Side => ({ selector: params[`${name}.q`] ?? '', from: params[`${name}.from`] ?? '', to: params[`${name}.to`] ?? '' });
    return { a: read('a'), b: read('b') };
  }, [params]);
  // By default: the first half of the range against the second. "What changed?" is the usual question.
  const middle = Math.round((resolved.fromMs + resolved.toMs) / 2);
  const rangeA = useMemo(() => rangeOfSide(sides.a, { fromMs: resolved.fromMs, toMs: middle }), [sides.a, resolved.fromMs, middle]);
  const rangeB = useMemo(() => rangeOfSide(sides.b, { fromMs: middle, toMs: resolved.toMs }), [sides.b, resolved.toMs, middle]);
  const isSpans = kind === 'spans';
  const queryA = isSpans ? sides.a.selector || spansOf(service) : profileSelector(sides.a.selector, service);
  const queryB = isSpans ? sides.b.selector || spansOf(service) : profileSelector(sides.b.selector, service);
  const key = service || isSpans ? [kind, scope, type, queryA, queryB, rangeA.fromMs, rangeA.toMs, rangeB.fromMs, rangeB.toMs].join('|') : null;
  const cohortType = isSpans && type === CPU_TYPE ? 'cpu' : type;
  const diff = useAnswer(key && layout === 'merged' ? key : null, (signal) =>
    isSpans ? cohortDiff({ query: queryB, baseline: queryA, type: cohortType, range: rangeB, baselineRange: rangeA, scope }, signal) : selectDiff({ typeId: type, selector: queryA, range: rangeA }, { typeId: type, selector: queryB, range: rangeB }, MOST_NODES, signal),
  );
  const beside = key && layout === 'beside' ? key : null;
  const left = useAnswer(beside && `a|${beside}`, (signal) => (isSpans ? cohortFlame({ query: queryA, type: cohortType, range: rangeA, scope }, signal) : selectFlame({ typeId: type, selector: queryA, range: rangeA }, MOST_NODES, signal)));
  const right = useAnswer(beside && `b|${beside}`, (signal) => (isSpans ? cohortFlame({ query: queryB, type: cohortType, range: rangeB, scope }, signal) : selectFlame({ typeId: type, selector: queryB, range: rangeB }, MOST_NODES, signal)));
  const sizes = useMemo<Partial<SideSizes>>(
    () => ({ secondsA: (rangeA.toMs - rangeA.fromMs) / 1000, secondsB: (rangeB.toMs - rangeB.fromMs) / 1000, requestsA: requests.a, requestsB: requests.b }),
    [rangeA, rangeB, requests],
  );
  const [isOneSided, setOneSided] = useState(false);
  const onLoaded = useCallback((loaded: LoadedFlame) => {
    setOneSided(loaded.isDiff && (loaded.ticksA === 0) !== (loaded.ticksB === 0));
    setEvidence(loaded.exactness);
    setRequests({ a: loaded.baseline?.spans, b: loaded.exactness?.spans });
  }, []);
  // Halves of a range that is mostly empty compare nothing with something: then the part that is filled is offered.
  const extent = useAnswer(isOneSided && !sides.a.from && !sides.b.from ? `extent|${service}|${type}|${resolved.fromMs}|${resolved.toMs}` : null, async (signal) => extentOfSeries(await selectSeries(type, profileSelector('', service), resolved, SERIES_STEP, [], signal), SERIES_STEP));
  const mode = modeText === 'per-request' && !(requests.a && requests.b) ? 'share' : (modeText as DiffMode);
  const swap = () => changeParams({ 'a.q': sides.b.selector, 'a.from': String(rangeB.fromMs), 'a.to': String(rangeB.toMs), 'b.q': sides.a.selector, 'b.from': String(rangeA.fromMs), 'b.to': String(rangeA.toMs) });
  useKeys('Compare', [
    { key: 'S', does: 'swap the sides', run: swap },
    { key: 'v', does: 'merged or side by side', run: () => setLayout(layout === 'merged' ? 'beside' : null) },
  ]);
  const unit = unitOfType(type);
  const what = isSpans ? 'differences of cohorts' : 'differences of profiles';
  const shown = (answer: Answer<ArrayBuffer>, prefix: string, title: string) => (
    <div className="pane">
      <div className="bar" style={{ minHeight: 26, padding: '0 8px' }}>
        <b>{title}</b>
      </div>
      <Progress what={title} answer={answer} />
      {answer.error && <Failure error={answer.error} what="flame graphs" retry={answer.retry} />}
      {answer.value && <FlameView bytes={answer.value} unit={unit} title={title} prefix={prefix} keys={prefix === ''} />}
    </div>
  );
  return (
    <>
      <div className="bar">
        <span className="buttons" role="group" aria-label="What to compare">
          <button aria-pressed={!isSpans} onClick={() => changeParams({ kind: null, 'a.q': null, 'b.q': null })}>
            Profiles
          </button>
          <button aria-pressed={isSpans} onClick={() => changeParams({ kind: 'spans', 'a.q': null, 'b.q': null })}>
            Spans
          </button>
        </span>
        <h1>{service}</h1>
        <TypeSelect value={type} set={setType} range={resolved} />
        {isSpans && <ScopeSelect value={scope} set={setScope} />}
        <label>
          By{' '}
          <select value={mode} onChange={(event) => setMode(event.target.value)}>
            {MODES.map(([name, label]) => (
              <option key={name} value={name} disabled={name === 'per-request' && !(requests.a && requests.b)}>
                {label}
              </option>
            ))}
          </select>
        </label>
        <span className="buttons">
          <button aria-pressed={layout === 'merged'} onClick={() => setLayout(null)}>
            Merged
          </button>
          <button aria-pressed={layout === 'beside'} onClick={() => setLayout('beside')}>
            Side by side
          </button>
        </span>
        <button onClick={swap} title="S">
          Swap
        </button>
        <span className="grow" />
        <ComparePresets service={service} range={resolved} />
      </div>
      <div className="bar sides">
        <SideEditor name="a" title="A, baseline" side={sides.a} shown={rangeA} isSpans={isSpans} />
        <span className="muted">→</span>
        <SideEditor name="b" title="B, compared" side={sides.b} shown={rangeB} isSpans={isSpans} />
        <FitToData extent={extent.value} range={resolved} />
      </div>
      <div className="view-body flush pane">
        {services.value?.length === 0 && !service && !isSpans && <NothingHere signal="samples" />}
        {layout === 'merged' ? (
          <>
            <Progress what={what} answer={diff} />
            {diff.error && <Failure error={diff.error} what={what} retry={diff.retry} />}
            {diff.value && <FlameView bytes={diff.value} unit={unit} title={`${service} A to B`} diffMode={mode} sizes={sizes} onLoaded={onLoaded} whenEmpty={isSpans ? undefined : `${service} has no such samples on either side. Another time, other labels or another type may show some.`} />}
          </>
        ) : (
          <div style={{ display: 'grid', gridTemplateColumns: '1fr 1fr', gap: 1, background: 'var(--line)', height: '100%', minHeight: 0 }}>
            {shown(left, '', 'A, baseline')}
            {shown(right, 'r.', 'B, compared')}
          </div>
        )}
      </div>
      <EvidenceStrip evidence={evidence} extra={`A ${dateAndTime(rangeA.fromMs)} – ${dateAndTime(rangeA.toMs)} · B ${dateAndTime(rangeB.fromMs)} – ${dateAndTime(rangeB.toMs)}`} />
    </>
  );
}
