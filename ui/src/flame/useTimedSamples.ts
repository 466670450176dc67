// Single samples of a selection, fetched when a view needs their times or threads.
import { useEffect, useState } from 'react';

export type LoadSamples = (signal: AbortSignal) => Promise<ArrayBuffer>;

interface TimedSamples {
  bytes: ArrayBuffer | null;
  problem: string;
}

export function useTimedSamples(load: LoadSamples | undefined, wanted: boolean): TimedSamples {
  const [state, setState] = useState<TimedSamples & { of: LoadSamples | null }>({ bytes: null, problem: '', of: null });
  useEffect(() => {
    if (!load || !wanted) return;
    const abort = new AbortController();
    load(abort.signal).then(
      (bytes) => setState({ bytes, problem: '', of: load }),
      (cause: unknown) => !abort.signal.aborted && setState({ bytes: null, problem: cause instanceof Error ? cause.message : String(cause), of: load }),
    );
    return () => abort.abort();
  }, [load, wanted]);
  return state.of === load ? state : { bytes: null, problem: '' };
}
