// How well the stored data can answer, in four sentences with a bar each.
import type { Answer } from '../../api/useAnswer';
import { Failure, Progress } from '../../app/Waiting';
import { formatCount, formatDuration, formatShare } from '../../format/units';
import type { Coverage } from './coverage';

export function CoveragePanel({ answer }: { answer: Answer<Coverage> }) {
  const { value } = answer;
  return (
    <section className="panel coverage">
      <h2>Coverage in the chosen time range</h2>
      <Progress what="how well spans and samples fit together" answer={answer} />
      {answer.error && <Failure error={answer.error} what="the coverage" retry={answer.retry} />}
      {value && (
        <dl>
          <Line title="Spans with samples" part={value.profiledSpans} whole={value.spans} of={`${formatCount(value.spans ?? 0)} spans`} hint="Low: spans are short, or their profiler does not tell samples their span." />
          <Line title="Samples with a span" part={value.linkedSamples} whole={value.samples} of={`${formatCount(value.samples ?? 0)} CPU samples`} hint="Low: switch on span correlation in the profiler." />
          <Line title="Samples with a name" part={value.symbolised} whole={value.symbolised === null ? null : 1} of="CPU time" hint="Low: binaries are stripped; keep or upload their symbols." />
          <dt>Clock skew</dt>
          <dd>
            {value.skews === null ? (
              <span className="muted">not known</span>
            ) : value.skews.length === 0 ? (
              <span>
                none seen <span className="muted">in {value.tracesLookedAt} traces</span>
              </span>
            ) : (
              value.skews.slice(0, 4).map((skew) => (
                <div key={skew.caller + skew.callee} className="warn-text">
                  {skew.callee} is at least {formatDuration(Math.abs(skew.ns))} {skew.ns < 0 ? 'behind' : 'ahead of'} {skew.caller}
                </div>
              ))
            )}
          </dd>
        </dl>
      )}
    </section>
  );
}

function Line({ title, part, whole, of, hint }: { title: string; part: number | null; whole: number | null; of: string; hint: string }) {
  const share = part !== null && whole ? part / whole : null;
  return (
    <>
      <dt>{title}</dt>
      <dd>
        {share === null ? (
          <span className="muted">not known: nothing of this kind is stored in this range</span>
        ) : (
          <>
            <span className="share-bar" aria-hidden="true">
              <i style={{ width: `${Math.min(100, share * 100)}%` }} />
            </span>
            <b>{formatShare(Math.min(1, share))}</b> <span className="muted">of {of}</span> {share < 0.5 && <span className="warn-text">{hint}</span>}
          </>
        )}
      </dd>
    </>
  );
}
