// One way to ask the server: typed, cancellable, and with errors a person can act on.

export type FailureKind = 'cancelled' | 'unreachable' | 'missing' | 'refused' | 'server';

export class ApiError extends Error {
  constructor(
    readonly kind: FailureKind,
    message: string,
    readonly address: string,
    readonly status = 0,
    /** Character in the query at fault, where the server names one. */
    readonly position: number | null = null,
    readonly suggestion: string | null = null,
  ) {
    super(message);
    this.name = 'ApiError';
  }
}

export function asApiError(cause: unknown): ApiError {
  if (cause instanceof ApiError) return cause;
  if (cause instanceof DOMException && cause.name === 'AbortError') return new ApiError('cancelled', 'Cancelled.', '');
  return new ApiError('unreachable', cause instanceof Error ? cause.message : String(cause), '');
}

type QueryValue = string | number | undefined | null;

/** Relative to the page, so that a path prefix added by a proxy stays. */
export function address(path: string, query: Readonly<Record<string, QueryValue>> = {}): string {
  const params = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== '') params.set(key, String(value));
  }
  const text = params.toString();
  return `.${path}${text ? `?${text}` : ''}`;
}

function positionIn(message: string, body: Record<string, unknown>): number | null {
  if (typeof body.position === 'number') return body.position;
  if (typeof body.offset === 'number') return body.offset;
  // `1:12: unexpected …`, as compilers write it; questions are asked in one line, so the column is the place.
  const compiler = /^1:(\d+): /.exec(message);
  if (compiler) return Number(compiler[1]) - 1;
  const column = /(?:col(?:umn)?|position|character|offset)\s*:?\s*(\d+)/i.exec(message);
  if (!column) return null;
  const number = Number(column[1]);
  return /col/i.test(column[0]) ? Math.max(0, number - 1) : number;
}

/** A 404 that explains itself in JSON is about what was asked for; a bare one is about the endpoint. */
function kindOf(status: number, explained: boolean): FailureKind {
  if (status === 501 || status === 405 || (status === 404 && !explained)) return 'missing';
  return status < 500 ? 'refused' : 'server';
}

async function failure(response: Response, where: string): Promise<ApiError> {
  const text = await response.text().catch(() => '');
  let body: Record<string, unknown> = {};
  let message = text.trim();
  try {
    const parsed: unknown = JSON.parse(text);
    if (parsed && typeof parsed === 'object') body = parsed as Record<string, unknown>;
    const said = body.message ?? body.error;
    if (typeof said === 'string') message = said;
    else if (said && typeof said === 'object' && typeof (said as Record<string, unknown>).message === 'string') {
      body = said as Record<string, unknown>;
      message = body.message as string;
    }
  } catch {
    // Plain text, as Tempo answers.
  }
  if (message.startsWith('<')) message = '';
  const position = positionIn(message, body);
  // The editor marks the place itself: of a message that draws the line and a caret under it, only the words are kept.
  if (position !== null && /\n\s*\^+/.test(message)) message = message.replace(/^\d+:\d+: /, '').replace(/\n[^\n]*\n\s*\^+\s*/, '; ').trim();
  const suggestion = typeof body.suggestion === 'string' ? body.suggestion : typeof body.hint === 'string' ? body.hint : null;
  const kind = kindOf(response.status, Object.keys(body).length > 0);
  return new ApiError(kind, message || `${response.status} ${response.statusText}`, where, response.status, position, suggestion);
}

async function ask(where: string, init: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(where, init);
  } catch (cause) {
    if (init.signal?.aborted) throw new ApiError('cancelled', 'Cancelled.', where);
    throw new ApiError('unreachable', cause instanceof Error ? cause.message : 'network error', where);
  }
  if (!response.ok) throw await failure(response, where);
  // A server that answers every unknown path with the page itself does not have this endpoint.
  if ((response.headers.get('content-type') ?? '').includes('text/html')) throw new ApiError('missing', 'This server does not have this endpoint.', where, 404);
  return response;
}

export async function getJson<T>(where: string, signal: AbortSignal): Promise<T> {
  return (await (await ask(where, { signal, headers: { accept: 'application/json' } })).json()) as T;
}

export async function postJson<T>(where: string, body: unknown, signal: AbortSignal): Promise<T> {
  return (await (await ask(where, postInit(body, signal))).json()) as T;
}

export async function getText(where: string, signal: AbortSignal): Promise<string> {
  return (await ask(where, { signal })).text();
}

/** The undecoded answer, for workers that parse large bodies off the main thread. */
export async function getBytes(where: string, signal: AbortSignal): Promise<ArrayBuffer> {
  return (await ask(where, { signal, headers: { accept: 'application/json' } })).arrayBuffer();
}

export async function postBytes(where: string, body: unknown, signal: AbortSignal): Promise<ArrayBuffer> {
  return (await ask(where, postInit(body, signal))).arrayBuffer();
}

function postInit(body: unknown, signal: AbortSignal): RequestInit {
  // Labels of OTLP have dots in their names, which old readers of this API can't take: it asks who can.
  return { method: 'POST', signal, headers: { accept: 'application/json; allow-utf8-labelnames=true', 'content-type': 'application/json' }, body: JSON.stringify(body) };
}
