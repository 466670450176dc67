// A question to the server as React state: what is being read, how long it takes, cancel, retry.
import { useCallback, useEffect, useRef, useState } from 'react';
import { beginWaiting } from './inFlight';
import { type ApiError, asApiError } from './request';

export interface Answer<T> {
  /** The last good answer; stays while the next one loads, so nothing flickers. */
  value: T | null;
  error: ApiError | null;
  loading: boolean;
  startedAt: number;
  cancel: () => void;
  retry: () => void;
}

/** `key` identifies the question: same key, same answer; null asks nothing. */
export function useAnswer<T>(key: string | null, load: (signal: AbortSignal) => Promise<T>): Answer<T> {
  const [state, setState] = useState<{ key: string | null; value: T | null; error: ApiError | null; loading: boolean; startedAt: number }>({
    key: null,
    value: null,
    error: null,
    loading: key !== null,
    startedAt: 0,
  });
  const [attempt, setAttempt] = useState(0);
  const controller = useRef<AbortController | null>(null);
  const loadRef = useRef(load);
  useEffect(() => {
    loadRef.current = load;
  });

  useEffect(() => {
    if (key === null) {
      setState({ key: null, value: null, error: null, loading: false, startedAt: 0 });
      return;
    }
    const abort = new AbortController();
    controller.current = abort;
    const endWaiting = beginWaiting();
    setState((before) => ({ ...before, error: null, loading: true, startedAt: performance.now() }));
    void loadRef.current(abort.signal).then(
      (value) => {
        if (!abort.signal.aborted) setState({ key, value, error: null, loading: false, startedAt: 0 });
      },
      (cause: unknown) => {
        // Left on purpose (the question changed): silence. Cancelled by the person: say so.
        if (abort.signal.aborted && abort.signal.reason !== 'by hand') return;
        const error = abort.signal.aborted ? asApiError(new DOMException('', 'AbortError')) : asApiError(cause);
        setState((before) => ({ key, value: error.kind === 'cancelled' ? before.value : null, error, loading: false, startedAt: 0 }));
      },
    ).finally(endWaiting);
    return () => {
      abort.abort('left');
      endWaiting();
    };
  }, [key, attempt]);

  const cancel = useCallback(() => controller.current?.abort('by hand'), []);
  const retry = useCallback(() => setAttempt((count) => count + 1), []);
  return { value: state.value, error: state.error, loading: state.loading, startedAt: state.startedAt, cancel, retry };
}
