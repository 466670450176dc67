// Where no cause stands out: what most of the time is, so that there is a place to begin all the same.
import type { Widest } from '../../api/explain';
import { formatShare } from '../../format/units';
import { hrefOf } from '../../location/urlState';
import { ms, operationOf, placeOf } from './wording';

export function WidestPart({ widest, target, isTrace }: { widest: Widest; target: string; isTrace: boolean }) {
  const place = placeOf(widest);
  const flameParams = widest.function ? { fn: widest.function, find: widest.function } : {};
  return (
    <section className="panel cause" aria-label="Where most of the time goes">
      <span className="rank">·</span>
      <div>
        <div className="says">
          Most of the time goes to <code>{widest.function ?? operationOf(widest)}</code>
          {place && ` (${place})`}: {ms(widest.ms)} a request, {formatShare(widest.share)} of it, in slow and fast requests alike.
        </div>
        {widest.function && (
          <div className="stackpath" aria-label="Path">
            <div className="span">{operationOf(widest)}</div>
            <div style={{ marginLeft: 12 }}>{widest.function}</div>
          </div>
        )}
        <div className="row">
          <span className="grow" />
          <a href={isTrace ? hrefOf(['trace', target.split(':')[0]!], flameParams) : hrefOf(['traces'], { q: target, ...flameParams })}>flame graph</a>
        </div>
      </div>
    </section>
  );
}
