// Narrowing a question: adds a condition to a TraceQL query without changing what it meant.

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

/** Nanoseconds as TraceQL writes them, rounded to what a person would type. */
export function durationLiteral(nanoseconds: number): string {
  if (nanoseconds >= 1e9) return `${Number((nanoseconds / 1e9).toPrecision(3))}s`;
  if (nanoseconds >= 1e6) return `${Number((nanoseconds / 1e6).toPrecision(3))}ms`;
  if (nanoseconds >= 1e3) return `${Number((nanoseconds / 1e3).toPrecision(3))}us`;
  return `${Math.round(nanoseconds)}ns`;
}
