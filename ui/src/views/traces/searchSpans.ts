// The search behind the traces view. Asks for the fields the table shows; a server that refuses them is asked without.
import { ApiError } from '../../api/request';
import { type SearchAnswer, searchTraces, type SpanRow, spanRows } from '../../api/traces';
import type { ResolvedRange } from '../../location/timeRange';

export interface FoundSpans {
  rows: SpanRow[];
  answer: SearchAnswer;
  limit: number;
}

const FIELDS = ['resource.service.name, status, profile.cpu, profile.samples', 'resource.service.name, status'];

export async function searchSpans(query: string, range: ResolvedRange, limit: number, signal: AbortSignal): Promise<FoundSpans> {
  const asked = query || '{ }';
  const withFields = /\bselect\s*\(|\bwith\s*\(/.test(asked) ? [] : FIELDS.map((fields) => `${asked} | select(${fields})`);
  for (const attempt of withFields) {
    try {
      const answer = await searchTraces(attempt, range, limit, signal);
      return { rows: spanRows(answer.traces), answer, limit };
    } catch (cause) {
      // Only a refusal may be about the added fields; the plain question then tells the person's own mistake.
      if (!(cause instanceof ApiError) || cause.kind !== 'refused') throw cause;
    }
  }
  const answer = await searchTraces(asked, range, limit, signal);
  return { rows: spanRows(answer.traces), answer, limit };
}
