// Code to traces: which endpoints and spans spend how much in a function.
import { useEffect, useRef } from 'react';
import { readSpansOfFunction } from '../api/profiles';
import { useAnswer } from '../api/useAnswer';
import { Empty, Shown } from '../app/Waiting';
import { counted, formatCount, formatDuration } from '../format/units';
import { hrefOf } from '../location/urlState';
import { useTimeRange } from '../location/useTimeRange';

export function SpansOfFunction({ name, close }: { name: string; close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const { resolved } = useTimeRange();
  const answer = useAnswer(`${name}|${resolved.fromMs}|${resolved.toMs}`, (signal) => readSpansOfFunction(name, resolved, signal));
  useEffect(() => {
    dialog.current?.showModal();
  }, []);
  return (
    <dialog ref={dialog} aria-label={`Spans that ran ${name}`} onClose={close}>
      <div className="row">
        <h1 className="grow mono">{name}</h1>
        <button onClick={close}>Close</button>
      </div>
      <Shown answer={answer} what="spans of functions">
        {(found) => {
          const operations = found.operations ?? [];
          const spans = found.spans ?? [];
          if (operations.length + spans.length === 0) return <Empty title="No span ran it in this time range">Its samples carry no span id, or it ran outside of spans.</Empty>;
          return (
            <>
              <p>
                {formatDuration(found.value ?? 0)} in it, in {counted(found.span_count ?? spans.length, 'span')}
                {found.unlinked_value ? <span className="warn-text">; {formatDuration(found.unlinked_value)} of it belong to no span</span> : ''}.
                {(found.span_count ?? 0) > spans.length && <span className="muted"> The {formatCount(spans.length)} with most of it are listed.</span>}
              </p>
              {operations.length > 0 && (
                <table>
                  <thead>
                    <tr>
                      <th>Service</th>
                      <th>Operation</th>
                      <th className="number">Time in it</th>
                      <th className="number">Spans</th>
                      <th>Example</th>
                    </tr>
                  </thead>
                  <tbody>
                    {operations.slice(0, 50).map((operation) => (
                      <tr key={`${operation.service} ${operation.operation}`}>
                        <td>{operation.service}</td>
                        <td>{operation.operation}</td>
                        <td className="number">{formatDuration(operation.value ?? 0)}</td>
                        <td className="number">{formatCount(operation.spans ?? 0)}</td>
                        <td>{operation.traces?.[0] && <a href={hrefOf(['trace', operation.traces[0]])} onClick={close}>{operation.traces[0].slice(0, 8)}</a>}</td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              )}
              {spans.length > 0 && (
                <table>
                  <thead>
                    <tr>
                      <th>Span</th>
                      <th>Trace</th>
                      <th className="number">Duration</th>
                      <th className="number">In it</th>
                    </tr>
                  </thead>
                  <tbody>
                    {spans.slice(0, 50).map((span) => (
                      <tr key={span.trace_id + span.span_id}>
                        <td>
                          <a href={hrefOf(['trace', span.trace_id], { span: span.span_id })} onClick={close}>
                            {span.service} {span.name || span.span_id}
                          </a>
                        </td>
                        <td className="mono">{span.trace_id.slice(0, 8)}</td>
                        <td className="number">{span.duration_ns ? formatDuration(span.duration_ns) : ''}</td>
                        <td className="number">{formatDuration(span.value ?? 0)}</td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              )}
            </>
          );
        }}
      </Shown>
    </dialog>
  );
}
