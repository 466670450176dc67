// The operations that delay the answer, callers above callees, each with its own time in a slow and in a fast request.
import type { PathStep } from '../../api/explain';
import { type SideNames, ms, operationOf } from './wording';

export function CriticalPath({ steps, sides }: { steps: readonly PathStep[]; sides: SideNames }) {
  const longest = Math.max(1e-9, ...steps.flatMap((step) => [step.ms, step.fast_ms]));
  const [inQuestion, compared] = sides;
  return (
    <section className="panel" aria-label="Critical path">
      <h2>Critical path: only time on it delays the answer</h2>
      <div className="path">
        <span className="muted">own time of each operation</span>
        <span />
        <span className="number muted">{inQuestion}</span>
        <span className="number muted">{compared}</span>
        {steps.map((step, index) => (
          <div key={index} style={{ display: 'contents' }}>
            <span className="ellipsis" style={{ paddingLeft: 12 * Math.min(step.depth, 12) }} title={operationOf(step)}>
              <span className="muted">{step.service}</span> {step.operation}
              {step.callee && <span className="muted"> → {step.callee}</span>}
              {step.calls >= 1.5 && <span className="muted"> × {step.calls.toFixed(step.calls < 10 ? 1 : 0)}</span>}
            </span>
            <span className="bars" aria-hidden="true">
              <i style={{ width: `${(Math.max(0, step.ms) / longest) * 100}%`, background: 'var(--path)' }} />
              <i style={{ width: `${(Math.max(0, step.fast_ms) / longest) * 100}%`, background: 'var(--less)' }} />
            </span>
            <span className="number">{ms(step.ms)}</span>
            <span className="number muted">{ms(step.fast_ms)}</span>
          </div>
        ))}
      </div>
    </section>
  );
}
