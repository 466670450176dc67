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

/** Nanoseconds as a person would type them. */
export function roundedDuration(nanoseconds: number): number {
  return Number(Math.round(nanoseconds).toPrecision(3));
}

/** Rounded nanoseconds as TraceQL writes them. */
export function durationLiteral(nanoseconds: number): string {
  const rounded = roundedDuration(nanoseconds);
  if (rounded >= 1e9) return `${Number((rounded / 1e9).toPrecision(3))}s`;
  if (rounded >= 1e6) return `${Number((rounded / 1e6).toPrecision(3))}ms`;
  if (rounded >= 1e3) return `${Number((rounded / 1e3).toPrecision(3))}us`;
  return `${rounded}ns`;
}
