// Single samples of a selection with their times and threads, fetched when a view needs them: timelines and colours by thread.
import { useEffect, useState } from 'react';
import { type Answer, useAnswer } from '../api/useAnswer';
import type { FlameEngine } from './flameEngine';
import type { Timeline } from './timeline';

export interface TimedSource {
  /** Names the selection: same key, same samples. */
  key: string;
  load: (signal: AbortSignal) => Promise<ArrayBuffer>;
}

export function useTimedSamples(source: TimedSource | undefined, wanted: boolean): Answer<ArrayBuffer> {
  return useAnswer(source && wanted ? source.key : null, (signal) => source!.load(signal));
}

/** The samples as lanes over time; a problem says why there are none. */
export function useTimeline(engine: () => FlameEngine, samples: ArrayBuffer | null, wanted: boolean): { timeline: Timeline | null; problem: string } {
  const [state, setState] = useState<{ timeline: Timeline | null; problem: string }>({ timeline: null, problem: '' });
  useEffect(() => {
    if (!wanted || !samples) return;
    let current = true;
    engine()
      .timeline(samples)
      .then(
        (timeline) => current && setState({ timeline, problem: timeline ? '' : 'No sample of this selection carries a time.' }),
        (cause: unknown) => current && setState({ timeline: null, problem: cause instanceof Error ? cause.message : String(cause) }),
      );
    return () => {
      current = false;
    };
    // The engine is one per view and never changes.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [wanted, samples]);
  return state;
}
