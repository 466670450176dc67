// The ranked causes with their evidence, told top to bottom so that it can be pasted into a ticket; or whether a change helped.
import './explain.css';
import { explain, type Explanation } from '../../api/explain';
import { useAnswer } from '../../api/useAnswer';
import { CopyButton } from '../../app/CopyButton';
import { EvidenceStrip } from '../../app/EvidenceStrip';
import { localInput } from '../../app/TimeRangePicker';
import { Empty, Failure, Progress } from '../../app/Waiting';
import { formatShare } from '../../format/units';
import type { ResolvedRange } from '../../location/timeRange';
import { changeParams, hrefOf, useParam } from '../../location/urlState';
import { useTimeRange } from '../../location/useTimeRange';
import { QueryEditor } from '../../traceql/QueryEditor';
import { LedgerBar } from '../../waterfall/LedgerBar';
import { CauseCard } from './CauseCard';
import { ChangeTable } from './ChangeTable';
import { CriticalPath } from './CriticalPath';
import { SlowestOperations } from './SlowestOperations';
import { WidestPart } from './WidestPart';
import { ms, sideNames, sidesOf } from './wording';

const isTraceId = (text: string) => /^[0-9a-f]{8,32}(:[0-9a-f]{16})?$/i.test(text);

export default function ExplainView() {
  const { resolved } = useTimeRange();
  const [target] = useParam('target');
  const [baseline] = useParam('baseline');
  const [type, setType] = useParam('type');
  const [before] = useParam('before');
  const [after] = useParam('after');
  const change = before && after ? { before, after } : undefined;
  const answer = useAnswer(target ? [target, baseline, type, before, after, resolved.fromMs, resolved.toMs].join('|') : null, (signal) =>
    explain({ target, baseline, range: resolved, type, change }, signal),
  );
  return (
    <>
      <div className="bar">
        <b>Explain</b>
        <QueryEditor value={target} range={resolved} error={answer.error} onRun={(next) => changeParams({ target: next })} />
        {!isTraceId(target) && <ChangedAt after={after} range={resolved} />}
        <select aria-label="Profile type" value={type} onChange={(event) => setType(event.target.value || null)}>
          <option value="">all types</option>
          {['cpu', 'wall', 'off_cpu'].map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </div>
      <div className="view-body" tabIndex={0} role="region" aria-label="Explanation">
        <Progress what={`samples of ${isTraceId(target) ? 'the trace' : change ? 'requests before and after' : 'the slow and the fast spans'}`} answer={answer} />
        {answer.error && answer.error.position === null && <Failure error={answer.error} what="Explanations" retry={answer.retry} />}
        {!target && (
          <Empty title="What should be explained?">
            <p>
              A trace id, or a question that selects slow spans, such as <code>{'{ name = "checkout" && duration > 1s }'}</code>. The quickest way: <a href={hrefOf(['traces'])}>Traces</a>, drag a box over what is slow, Explain.
            </p>
            <SlowestOperations range={resolved} />
          </Empty>
        )}
        {answer.value && <Story explanation={answer.value} target={target} baseline={baseline} />}
      </div>
      <EvidenceStrip evidence={answer.value?.exactness ?? null} extra={answer.value ? undefined : answer.error ? 'no answer' : 'nothing explained yet'} />
    </>
  );
}

/** Slow against fast, or before against after a moment inside the time range. */
function ChangedAt({ after, range }: { after: string; range: ResolvedRange }) {
  const changedMs = Number(after.split('..')[0]) || null;
  const split = (atMs: number) => ({ before: `${Math.floor(range.fromMs)}..${atMs}`, after: `${atMs}..${Math.ceil(range.toMs)}`, baseline: null });
  return (
    <span className="row">
      <span className="buttons" role="group" aria-label="What to compare">
        <button aria-pressed={!changedMs} title="Why are these requests slower than others?" onClick={() => changeParams({ before: null, after: null })}>
          slow / fast
        </button>
        <button aria-pressed={changedMs !== null} title="Did a change help?" onClick={() => changeParams(split(changedMs ?? Math.round((range.fromMs + range.toMs) / 2)))}>
          before / after
        </button>
      </span>
      {changedMs && (
        <input
          aria-label="When it changed"
          type="datetime-local"
          step="1"
          value={localInput(changedMs)}
          min={localInput(range.fromMs)}
          max={localInput(range.toMs)}
          onChange={(event) => event.target.value && changeParams(split(new Date(event.target.value).getTime()), 'replace')}
        />
      )}
    </span>
  );
}

function Story({ explanation, target, baseline }: { explanation: Explanation; target: string; baseline: string }) {
  const { causes, comparison, coverage, critical_path, ledger, moved = [], notes, widest } = explanation;
  const parts = ledger.parts.map((part) => ({ ...part, ns: part.ms * 1e6 }));
  const sides = sideNames(explanation);
  return (
    <div className="explain">
      <section className="panel verdict" aria-label="Verdict">
        <div className="row">
          <b className="headline">{explanation.headline}</b>
          <CopyButton text={explanation.markdown} label="Copy as Markdown" />
        </div>
        <div className="muted" style={{ fontSize: 12 }}>
          {sidesOf(explanation, baseline)}
        </div>
      </section>
      {comparison && <ChangeTable comparison={comparison} />}
      {ledger.duration_ms > 0 && (
        <section className="panel" aria-label="Ledger">
          <LedgerBar ledger={{ duration_ns: ledger.duration_ms * 1e6, parts }} of={comparison ? `per request ${sides[0]}` : 'per slow request'} />
        </section>
      )}
      {causes.map((cause, index) => (
        <CauseCard key={index} cause={cause} rank={index + 1} target={target} isTrace={isTraceId(target)} sides={sides} />
      ))}
      {widest && <WidestPart widest={widest} target={target} isTrace={isTraceId(target)} />}
      {critical_path.length > 0 && <CriticalPath steps={critical_path} sides={sides} />}
      <section className="panel cause" aria-label="Not explained">
        <span className="rank">?</span>
        <div>
          <div className="says">{formatShare(1 - coverage.explained)} of the time is not explained by samples or child spans.</div>
          <ul>
            {notes.map((note) => (
              <li key={note}>{note}</li>
            ))}
            {moved.map(({ within, from, to, ms: moving }) => (
              <li key={`${within}${from}${to}`}>
                Moved, not slower: {ms(moving)} a request went from <code>{from}</code> to <code>{to}</code> within {within}.
              </li>
            ))}
          </ul>
        </div>
      </section>
    </div>
  );
}
