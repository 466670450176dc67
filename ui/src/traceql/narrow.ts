// Questions in TraceQL that the page asks by itself, and narrowing one without changing what it meant.

/** A single `{ … }` takes the condition inside; anything else gets a further filter stage. */
export function narrow(query: string, condition: string): string {
  const text = query.trim();
  const single = /^\{([^{}]*)\}$/.exec(text);
  if (single) {
    const inner = single[1]!.trim();
    if (!inner) return `{ ${condition} }`;
    // `&&` and `||` bind alike in TraceQL, so an `||` inside needs its own brackets.
    return `{ ${inner.includes('||') ? `(${inner})` : inner} && ${condition} }`;
  }
  return text ? `${text} | { ${condition} }` : `{ ${condition} }`;
}

/** What arrives at a service, or the spans of one of its operations. */
export function spansOf(service: string, operation: string | null = null): string {
  return `{ resource.service.name = ${JSON.stringify(service)} && ${operation === null ? 'kind = server' : `name = ${JSON.stringify(operation)}`} }`;
}

/** The slowest twentieth, where `p95Ns` is known. */
export function slowestOf(service: string, operation: string | null, p95Ns: number): string {
  return narrow(spansOf(service, operation), `duration > ${durationLiteral(p95Ns)}`);
}

/** Nanoseconds as TraceQL writes them, rounded to what a person would type. */
export function durationLiteral(nanoseconds: number): string {
  if (nanoseconds >= 1e9) return `${Number((nanoseconds / 1e9).toPrecision(3))}s`;
  if (nanoseconds >= 1e6) return `${Number((nanoseconds / 1e6).toPrecision(3))}ms`;
  if (nanoseconds >= 1e3) return `${Number((nanoseconds / 1e3).toPrecision(3))}us`;
  return `${Math.round(nanoseconds)}ns`;
}
