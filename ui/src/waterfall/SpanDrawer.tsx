// What a span carries: times, status, attributes, events, links; all copyable.
import { type KeyValue, plainValue } from '../api/traces';
import { CopyButton } from '../app/CopyButton';
import { dateAndTime, utc } from '../format/clock';
import { formatDuration } from '../format/units';
import { hrefOf } from '../location/urlState';
import { spansOf } from '../traceql/narrow';
import { hexId, type SpanDetails, type TraceModel } from './traceModel';

function Attributes({ pairs }: { pairs: readonly KeyValue[] }) {
  return (
    <dl className="facts">
      {pairs.map((pair) => (
        <div key={pair.key} style={{ display: 'contents' }}>
          <dt>{pair.key}</dt>
          <dd>{plainValue(pair.value)}</dd>
        </div>
      ))}
    </dl>
  );
}

export function SpanDrawer({ trace, span, details, problem }: { trace: TraceModel; span: number; details: SpanDetails | undefined; problem: string }) {
  const raw = details?.raw ?? {};
  const likeIt = spansOf(trace.service[span]!, trace.name[span]!);
  const startMs = trace.originMs + trace.start[span]! / 1e6;
  // A number where OTLP has no name for it.
  const kind = String(raw.kind ?? '').replace('SPAN_KIND_', '').toLowerCase();
  return (
    <div>
      <div className="row">
        <b>{trace.name[span]}</b>
        <span className="muted">{trace.service[span]}</span>
        <span>{formatDuration(trace.duration[span]!)}</span>
        <span title={utc(startMs)} className="muted">
          from {dateAndTime(startMs)}, {formatDuration(trace.start[span]!)} after the trace began
        </span>
        {kind && <span className="muted">{kind}</span>}
        {trace.failed[span] === 1 && <span className="wf-error">✕ error{raw.status?.message ? `: ${raw.status.message}` : ''}</span>}
        <span className="grow" />
        <CopyButton text={trace.spanId[span]!} label={`Copy span id ${trace.spanId[span]!.slice(0, 8)}…`} />
        <CopyButton text={likeIt} label="Copy as TraceQL" />
        <CopyButton text={JSON.stringify(raw, null, 2)} label="Copy JSON" />
        <a href={hrefOf(['traces'], { q: likeIt })}>Others like it</a>
      </div>
      {(raw.attributes?.length ?? 0) > 0 && (
        <>
          <h3>Attributes</h3>
          <Attributes pairs={raw.attributes!} />
        </>
      )}
      {(raw.events?.length ?? 0) > 0 && (
        <>
          <h3>Events</h3>
          {raw.events!.map((event, index) => (
            <div key={index}>
              <b>{event.name}</b> <span className="muted">{formatDuration(Number(BigInt(event.timeUnixNano ?? '0') - trace.originNanos) - trace.start[span]!)} into the span</span>
              <Attributes pairs={event.attributes ?? []} />
            </div>
          ))}
        </>
      )}
      {(raw.links?.length ?? 0) > 0 && (
        <>
          <h3>Links</h3>
          {raw.links!.map((link, index) => {
            const traceId = hexId(link.traceId, 16);
            const spanId = hexId(link.spanId, 8);
            return (
              <div key={index}>
                <a href={hrefOf(['trace', traceId], { span: spanId })}>
                  trace {traceId.slice(0, 8)}… span {spanId.slice(0, 8)}…
                </a>
                <Attributes pairs={link.attributes ?? []} />
              </div>
            );
          })}
        </>
      )}
      {details ? (
        <>
          <h3>Resource{details.scope ? ` · ${details.scope}` : ''}</h3>
          <Attributes pairs={details.resource} />
        </>
      ) : (
        <p className={problem ? 'error-text' : 'muted'} role="status">
          {problem ? `Its attributes could not be read: ${problem}` : 'Reading its attributes …'}
        </p>
      )}
    </div>
  );
}
