// Attributes, events and links of spans. Short traces bring them along; of long ones those of the spans that are looked at are read.
import { useCallback, useEffect, useRef, useState } from 'react';
import { readSpanDetails } from '../api/traces';
import { hexId, type SpanDetails, spansIn, type TraceModel } from './traceModel';

export interface DetailsOfSpans {
  /** Undefined while they are not here. Another function as soon as more are. */
  of: (span: number) => SpanDetails | undefined;
  /** Asks for those that are not here yet. */
  want: (spans: readonly number[]) => void;
  problem: string;
}

const NO_DETAILS: ReadonlyMap<string, SpanDetails> = new Map();

export function useSpanDetails(traceId: string, trace: TraceModel | null): DetailsOfSpans {
  const [read, setRead] = useState(NO_DETAILS);
  const [problem, setProblem] = useState('');
  const asked = useRef(new Set<string>());
  useEffect(() => {
    asked.current = new Set();
    setRead(NO_DETAILS);
  }, [traceId]);
  const of = useCallback((span: number) => (trace?.details ? trace.details[span] : read.get(trace?.spanId[span] ?? '')), [trace, read]);
  const want = useCallback(
    (spans: readonly number[]) => {
      if (!trace || trace.details) return;
      const ids = spans.map((span) => trace.spanId[span]!).filter((id) => !asked.current.has(id));
      if (ids.length === 0) return;
      const round = asked.current;
      ids.forEach((id) => round.add(id));
      readSpanDetails(traceId, ids, new AbortController().signal).then(
        (answer) => {
          if (round !== asked.current) return;
          setProblem('');
          setRead((before) => new Map([...before, ...spansIn(answer).map((details): [string, SpanDetails] => [hexId(details.raw.spanId, 8), details])]));
        },
        (cause: unknown) => {
          // Asked for again when it is looked at again.
          ids.forEach((id) => round.delete(id));
          setProblem(cause instanceof Error ? cause.message : String(cause));
        },
      );
    },
    [trace, traceId],
  );
  return { of, want, problem };
}
