// One cause: a sentence, slow against fast, the way through the code, what usually helps, and where to look.
import { useState } from 'react';
import type { Cause } from '../../api/explain';
import { SourceLines } from '../../flame/SourceLines';
import { formatCount, formatShare } from '../../format/units';
import { hrefOf } from '../../location/urlState';
import { type SideNames, detailsOf, ms, operationOf, placeOf } from './wording';

interface Props {
  cause: Cause;
  rank: number;
  target: string;
  isTrace: boolean;
  sides: SideNames;
}

export function CauseCard({ cause, rank, target, isTrace, sides }: Props) {
  const flameParams = cause.function ? { fn: cause.function, find: cause.function } : {};
  const place = placeOf(cause);
  const [showsSource, setShowsSource] = useState(false);
  return (
    <section className="panel cause" aria-label={`Cause ${rank}`}>
      <span className="rank">{rank}</span>
      <div>
        <div className="says">{cause.sentence}</div>
        <Against cause={cause} sides={sides} />
        {cause.function && (
          <div className="stackpath" aria-label="Path">
            <div className="span">{operationOf(cause)}</div>
            {[cause.function, ...(cause.via ?? [])].map((name, depth) => (
              <div key={depth} style={{ marginLeft: 12 * (depth + 1) }}>
                {name}{' '}
                {depth === 0 && place && (
                  <button className="place" title={`Source: ${cause.file}`} aria-expanded={showsSource} onClick={() => setShowsSource(!showsSource)}>
                    {place}
                  </button>
                )}
              </div>
            ))}
          </div>
        )}
        {showsSource && cause.function && cause.file && <SourceLines file={cause.file} line={cause.line ?? 1} functionName={cause.function} close={() => setShowsSource(false)} />}
        {detailsOf(cause, sides).map((detail) => (
          <p key={detail}>{detail}</p>
        ))}
        {cause.helps && (
          <p>
            <span className="muted">What usually helps:</span> {cause.helps}
          </p>
        )}
        <div className="row muted">
          <span>
            {cause.kind}
            {cause.pattern && cause.pattern !== cause.kind ? ` · ${cause.pattern}` : ''} · {formatCount(cause.spans)} {cause.spans === 1 ? 'request' : 'requests'} · {formatCount(cause.samples)} samples
          </span>
          <span className="grow" />
          {cause.traces.map((trace) => (
            <a key={trace} className="mono" title={`A typical trace: ${trace}`} href={hrefOf(['trace', trace], flameParams)}>
              {trace.slice(0, 8)}
            </a>
          ))}
          {!isTrace && <a href={hrefOf(['traces'], { q: target, ...flameParams })}>flame graph</a>}
        </div>
      </div>
    </section>
  );
}

function Against({ cause: { slow_ms, fast_ms, delta_ms, interval_ms, share, waiting_for_cpu_ms = 0 }, sides }: { cause: Cause; sides: readonly [string, string] }) {
  const most = Math.max(slow_ms, fast_ms, 1e-9);
  const widthOf = (value: number) => `${(Math.max(0, value) / most) * 100}%`;
  const bar = (label: string, value: number, colour: string, waiting: number) => (
    <>
      <span>{label}</span>
      <span className="against-bar" style={{ color: colour }}>
        <i style={{ width: widthOf(value - waiting) }} />
        {waiting > 0 && <i className="waiting" title={`${ms(waiting)} of it waiting for a CPU`} style={{ width: widthOf(waiting) }} />}
      </span>
      <span className="number">{ms(value)}</span>
    </>
  );
  return (
    <div className="against">
      {bar(sides[0], slow_ms, 'var(--more)', waiting_for_cpu_ms)}
      {bar(sides[1], fast_ms, 'var(--less)', 0)}
      <span className="muted told">
        {ms(delta_ms)} more ({ms(interval_ms[0])} to {ms(interval_ms[1])} with 95 % confidence), {formatShare(share)} of the difference
      </span>
    </div>
  );
}
