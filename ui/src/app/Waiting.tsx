// What stands where an answer is not (yet): progress with cancel, a failure that says what now, an endpoint this server lacks.
import { type ReactNode, useEffect, useState } from 'react';
import type { ApiError } from '../api/request';
import type { Answer } from '../api/useAnswer';
import { CopyButton } from './CopyButton';

type Awaiting = Pick<Answer<unknown>, 'loading' | 'startedAt' | 'cancel'> & { value?: unknown };

/** Nothing under 200 ms: a flash of progress is noise. Over what is there already: that must not move. */
export function Progress({ what, answer, over = answer.value !== null && answer.value !== undefined }: { what: string; answer: Awaiting; over?: boolean }) {
  const [elapsed, setElapsed] = useState(0);
  useEffect(() => {
    if (!answer.loading) return;
    const timer = setInterval(() => setElapsed(performance.now() - answer.startedAt), 100);
    return () => {
      clearInterval(timer);
      setElapsed(0);
    };
  }, [answer.loading, answer.startedAt]);
  if (!answer.loading || elapsed < 200) return null;
  return (
    <div className={over ? 'progress over' : 'progress'} role="status">
      <span className="track" aria-hidden="true" />
      <span>
        Reading {what} · {(elapsed / 1000).toFixed(1)} s
      </span>
      <button onClick={answer.cancel}>Cancel</button>
    </div>
  );
}

export function Failure({ error, what, retry }: { error: ApiError; what: string; retry?: () => void }) {
  if (error.kind === 'cancelled') {
    return (
      <div className="notice">
        <h2>Cancelled</h2>
        <p>
          Reading {what} was stopped. {retry && <button onClick={retry}>Read again</button>}
        </p>
      </div>
    );
  }
  if (error.kind === 'missing') {
    return (
      <div className="notice absent" role="status">
        <h2>This server does not have {what} yet</h2>
        <p className="muted">
          <code>{error.address.replace(/^\./, '').split('?')[0]}</code> answered {error.status}. Everything else on this page goes on working.
        </p>
      </div>
    );
  }
  return (
    <div className="notice failed" role="alert">
      <h2>{error.kind === 'unreachable' ? 'The server does not answer' : `${what.charAt(0).toUpperCase()}${what.slice(1)} could not be read`}</h2>
      <p className="mono">{error.kind === 'unreachable' ? `${location.host}: ${error.message}` : error.message}</p>
      {error.suggestion && <p>Did you mean {error.suggestion}?</p>}
      <p className="row">
        {retry && <button onClick={retry}>Try again</button>}
        <CopyButton text={`${error.address}\n${error.status} ${error.message}`} label="Copy details" />
        {error.kind === 'unreachable' && (
          <span className="muted">
            Is <code>hotspan serve</code> running there?
          </span>
        )}
      </p>
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="notice" role="status">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

/** The usual three states around an answer. */
export function Shown<T>({ answer, what, children }: { answer: Answer<T>; what: string; children: (value: T) => ReactNode }) {
  return (
    <>
      <Progress what={what} answer={answer} />
      {answer.error && <Failure error={answer.error} what={what} retry={answer.retry} />}
      {answer.value !== null && children(answer.value)}
    </>
  );
}
