// The search behind the traces view. Asks for the fields the table shows; a question that has its own, or takes none, is asked as it is.
import { ApiError } from '../../api/request';
import { searchTraces, type SpanRow, spanRows } from '../../api/traces';
import type { ResolvedRange } from '../../location/timeRange';

const FIELDS = 'resource.service.name, status';

export async function searchSpans(query: string, range: ResolvedRange, limit: number, signal: AbortSignal): Promise<SpanRow[]> {
  if (!/\bselect\s*\(|\bwith\s*\(/.test(query)) {
    try {
      return spanRows((await searchTraces(`${query} | select(${FIELDS})`, range, limit, signal)).traces);
    } catch (cause) {
      // Only a refusal may be about the added fields; the plain question then tells the person's own mistake.
      if (!(cause instanceof ApiError) || cause.kind !== 'refused') throw cause;
    }
  }
  return spanRows((await searchTraces(query, range, limit, signal)).traces);
}
