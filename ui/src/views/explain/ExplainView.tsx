// The ranked causes with their evidence, told top to bottom so that it can be pasted into a ticket.
import './explain.css';
import { type Cause, explain, type Explanation, ledgerOf } from '../../api/cohort';
import { useAnswer } from '../../api/useAnswer';
import { CopyButton } from '../../app/CopyButton';
import { EvidenceStrip } from '../../app/EvidenceStrip';
import { Empty, Failure, Progress } from '../../app/Waiting';
import { formatCount, formatDuration, formatShare } from '../../format/units';
import { changeParams, hrefOf, useParam } from '../../location/urlState';
import { useTimeRange } from '../../location/useTimeRange';
import { QueryEditor } from '../../traceql/QueryEditor';
import { LedgerBar } from '../../waterfall/LedgerBar';
import { coverageOf, detailsOf, effectOf, helpOf, noteText, placeOf, subjectOf, toMarkdown, verdictText } from './story';

const isTraceId = (text: string) => /^[0-9a-f]{8,32}(:[0-9a-f]{16})?$/i.test(text);

export default function ExplainView() {
  const { resolved } = useTimeRange();
  const [target] = useParam('target');
  const [baseline] = useParam('baseline');
  const [type, setType] = useParam('type');
  const answer = useAnswer(target ? `${target}|${baseline}|${type}|${resolved.fromMs}|${resolved.toMs}` : null, (signal) =>
    explain({ target, ...(baseline ? { baseline } : {}), range: resolved, ...(type ? { type } : {}) }, signal),
  );
  return (
    <>
      <div className="bar">
        <b>Explain</b>
        <QueryEditor value={target} range={resolved} error={answer.error} onRun={(next) => changeParams({ target: next })} />
        <select aria-label="Profile type" value={type} onChange={(event) => setType(event.target.value || null)}>
          <option value="">all types</option>
          {['cpu', 'wall', 'off_cpu'].map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </div>
      <div className="view-body" tabIndex={0} role="region" aria-label="Explanation">
        <Progress what={`samples of ${isTraceId(target) ? 'the trace' : 'the slow and the fast spans'}`} answer={answer} />
        {answer.error && <Failure error={answer.error} what="explanations" retry={answer.retry} />}
        {!target && (
          <Empty title="What should be explained?">
            <p>
              A trace id, or a question that selects slow spans, such as <code>{'{ name = "checkout" && duration > 1s }'}</code>. The quickest way: <a href={hrefOf(['traces'])}>Traces</a>, drag a box over what is slow, Explain.
            </p>
          </Empty>
        )}
        {answer.value && <Story explanation={answer.value} target={target} baseline={baseline} />}
      </div>
      <EvidenceStrip evidence={answer.value ? (answer.value.exactness ?? null) : null} extra={answer.value ? undefined : 'nothing explained yet'} />
    </>
  );
}

function Story({ explanation, target, baseline }: { explanation: Explanation; target: string; baseline: string }) {
  const ledger = ledgerOf(explanation.ledger);
  const coverage = coverageOf(explanation);
  const path = explanation.critical_path ?? [];
  const longest = Math.max(1, ...path.map((step) => step.ms ?? step.self_ms ?? 0));
  return (
    <div className="explain">
      <section className="panel verdict" aria-label="Verdict">
        <div className="row">
          <b className="grow" style={{ overflowWrap: 'anywhere' }}>
            {verdictText(explanation)}
          </b>
          <CopyButton text={toMarkdown(explanation, target, location.href)} label="Copy as Markdown" />
        </div>
        <div className="muted" style={{ fontSize: 12 }}>
          {explanation.slow?.mean_ms !== undefined && explanation.fast?.mean_ms !== undefined && (
            <>
              {formatCount(explanation.slow.spans ?? 0)} slow at {formatDuration(explanation.slow.mean_ms * 1e6)} against {formatCount(explanation.fast.spans ?? 0)} fast at {formatDuration(explanation.fast.mean_ms * 1e6)} on average.{' '}
            </>
          )}
          Baseline: {baseline ? <code>{baseline}</code> : 'spans of the same operation around its median'}.
        </div>
      </section>
      {ledger && (
        <section className="panel" aria-label="Ledger">
          <LedgerBar ledger={ledger} of="per slow request" />
        </section>
      )}
      {explanation.causes.map((cause, index) => (
        <CauseCard key={index} cause={cause} rank={index + 1} target={target} />
      ))}
      {path.length > 0 && (
        <section className="panel" aria-label="Critical path">
          <h2>Critical path: only time on it delays the answer</h2>
          <div className="against" style={{ gridTemplateColumns: '220px 1fr 90px', maxWidth: 'none', padding: '8px 16px' }}>
            {path.map((step, index) => {
              const own = step.ms ?? step.self_ms ?? 0;
              return (
                <div key={index} style={{ display: 'contents' }}>
                  <span className="ellipsis">
                    <span className="muted">{step.service}</span> {step.operation ?? step.name}
                  </span>
                  <i style={{ width: `${(own / longest) * 100}%`, background: 'var(--path)' }} />
                  <span className="number">{formatDuration(own * 1e6)}</span>
                </div>
              );
            })}
          </div>
        </section>
      )}
      <section className="panel cause" aria-label="Not explained">
        <span className="rank">?</span>
        <div>
          <div className="says">
            {coverage !== null ? `${formatShare(1 - coverage)} of the time is not explained by samples or child spans.` : 'How much is not explained is not known for this answer.'}
          </div>
          <ul>
            {(explanation.notes ?? []).map((note, index) => (
              <li key={index}>{noteText(note)}</li>
            ))}
            {(explanation.moved ?? []).map((moved) => (
              <li key={`${moved.within}${moved.to}`}>
                Moved, not slower: {formatDuration(moved.ms * 1e6)} a request went from <code>{moved.from}</code> to <code>{moved.to}</code> within {moved.within}.
              </li>
            ))}
            {explanation.verdict === 'not_enough_data' && <li>Widen the time range, raise the sampling rate, or choose another profile type.</li>}
            {coverage !== null && coverage < 0.7 && <li>Off-CPU or wall-clock profiles would show what the spans wait for.</li>}
          </ul>
        </div>
      </section>
    </div>
  );
}

function CauseCard({ cause, rank, target }: { cause: Cause; rank: number; target: string }) {
  const most = Math.max(cause.slow_ms, cause.fast_ms, 1e-9);
  const help = helpOf(cause);
  const via = cause.via ? (Array.isArray(cause.via) ? cause.via : [cause.via]) : [];
  const traces = cause.traces ?? (isTraceId(target) ? [target.split(':')[0]!] : []);
  const flameParams = cause.function ? { fn: cause.function, find: cause.function } : {};
  return (
    <section className="panel cause" aria-label={`Cause ${rank}`}>
      <span className="rank">{rank}</span>
      <div>
        <div className="says">
          <code>{subjectOf(cause)}</code>
          {placeOf(cause) && (
            <>
              , <code title={cause.file ?? undefined}>{placeOf(cause)}</code>,
            </>
          )}{' '}
          {effectOf(cause)}.
        </div>
        <div className="against">
          <span>slow</span>
          <i style={{ width: `${(cause.slow_ms / most) * 100}%`, background: 'var(--more)' }} />
          <span className="number">{formatDuration(cause.slow_ms * 1e6)}</span>
          <span>fast</span>
          <i style={{ width: `${(cause.fast_ms / most) * 100}%`, background: 'var(--less)' }} />
          <span className="number">{formatDuration(cause.fast_ms * 1e6)}</span>
        </div>
        {(cause.function || via.length > 0) && (
          <div className="stackpath" aria-label="Path">
            {cause.operation && <div style={{ borderColor: 'var(--line-strong)', background: 'var(--bg)' }}>{[cause.service, cause.operation].join(' ')}</div>}
            {cause.function && (
              <div>
                {cause.function} <span className="muted">{placeOf(cause)}</span>
              </div>
            )}
            {via.map((name, index) => (
              <div key={name} style={{ marginLeft: 12 * (index + 1) }}>
                {name}
              </div>
            ))}
          </div>
        )}
        {detailsOf(cause).map((detail) => (
          <p key={detail} style={{ margin: '6px 0' }}>
            {detail}
          </p>
        ))}
        {help && (
          <p style={{ margin: '6px 0' }}>
            <span className="muted">What usually helps:</span> {help}
          </p>
        )}
        <div className="row muted">
          <span>
            {cause.kind}
            {cause.pattern ? ` · ${cause.pattern}` : ''} · {formatCount(cause.spans ?? 0)} spans · {formatCount(cause.samples ?? 0)} samples
            {cause.interval_ms && ` · ${formatDuration(cause.interval_ms[0] * 1e6)} to ${formatDuration(cause.interval_ms[1] * 1e6)} per request`}
          </span>
          <span className="grow" />
          {traces.slice(0, 3).map((trace) => (
            <a key={trace} className="mono" href={hrefOf(['trace', trace], flameParams)}>
              {trace.slice(0, 8)}
            </a>
          ))}
          {!isTraceId(target) && <a href={hrefOf(['traces'], { q: target, ...flameParams })}>flame graph</a>}
          {cause.link && <a href={cause.link}>link</a>}
        </div>
      </div>
    </section>
  );
}
