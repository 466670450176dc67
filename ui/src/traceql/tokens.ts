// A small TraceQL tokenizer: enough to colour, complete and point at slips. The server's parser stays the judge.

export type TokenKind = 'string' | 'number' | 'keyword' | 'attribute' | 'operator' | 'brace' | 'function' | 'space' | 'unknown';

export interface Token {
  kind: TokenKind;
  from: number;
  to: number;
  text: string;
}

export const INTRINSICS = ['duration', 'name', 'status', 'statusMessage', 'kind', 'rootName', 'rootServiceName', 'traceDuration', 'span:duration', 'span:name', 'span:kind', 'span:status', 'span:id', 'span:parentID', 'span:childCount', 'trace:duration', 'trace:rootName', 'trace:rootService', 'trace:id', 'event:name', 'link:traceID', 'instrumentation:name', 'profile.cpu', 'profile.wall', 'profile.samples', 'profile.function', 'profile.file'];
export const CONSTANTS = ['true', 'false', 'nil', 'ok', 'error', 'unset', 'unspecified', 'internal', 'server', 'client', 'producer', 'consumer', 'minInt', 'maxInt'];
export const FUNCTIONS = ['count', 'sum', 'avg', 'min', 'max', 'by', 'coalesce', 'select', 'rate', 'count_over_time', 'sum_over_time', 'avg_over_time', 'min_over_time', 'max_over_time', 'quantile_over_time', 'histogram_over_time', 'compare', 'topk', 'bottomk', 'with', 'flame', 'top', 'diff', 'ledger'];
export const SCOPES = ['resource.', 'span.', 'event.', 'link.', 'instrumentation.', 'parent.'];

const RULES: readonly [TokenKind, RegExp][] = [
  ['space', /\s+/y],
  ['string', /"(?:\\.|[^"\\])*"?|`[^`]*`?/y],
  ['number', /\d+(?:\.\d+)?(?:ns|us|µs|ms|s|m|h|d|w)?(?:\d+(?:ns|us|µs|ms|s|m|h))*(?![\w.])/y],
  ['operator', /&&|\|\||[!&]?(?:>>|<<|~)|[!=]~|[!<>]=|!?[<>]|=|[-+*/%^!]|\|/y],
  ['brace', /[{}(),]/y],
  ['attribute', /(?:(?:parent\.)?(?:resource|span|event|link|instrumentation|parent|profile)\.|\.|(?:span|trace|event|link|instrumentation):)(?:"(?:\\.|[^"\\])*"|[^\s{}()=~!<>&|^,"])*/y],
  ['unknown', /[A-Za-z_][\w]*|./y],
];

export function tokenize(text: string): Token[] {
  const tokens: Token[] = [];
  for (let at = 0; at < text.length; ) {
    for (const [kind, rule] of RULES) {
      rule.lastIndex = at;
      const match = rule.exec(text);
      if (!match || match[0] === '') continue;
      tokens.push({ kind: kind === 'unknown' ? wordKind(match[0]) : kind, from: at, to: at + match[0].length, text: match[0] });
      at += match[0].length;
      break;
    }
  }
  return tokens;
}

function wordKind(word: string): TokenKind {
  if (CONSTANTS.includes(word)) return 'keyword';
  if (INTRINSICS.includes(word)) return 'attribute';
  if (FUNCTIONS.includes(word)) return 'function';
  return 'unknown';
}

export interface Slip {
  at: number;
  message: string;
}

/** Slips that need no grammar: shown while typing, before the server is asked. */
export function findSlip(text: string): Slip | null {
  const tokens = tokenize(text).filter((token) => token.kind !== 'space');
  const open: Token[] = [];
  for (let i = 0; i < tokens.length; i++) {
    const token = tokens[i]!;
    if (token.kind === 'string' && (token.text.length < 2 || token.text[0] !== token.text.at(-1))) return { at: token.from, message: 'This text is not closed.' };
    if (token.text === '=' && tokens[i + 1]?.text === '=') return { at: token.from, message: 'Equality is written with one =.' };
    if (token.text === '{' || token.text === '(') open.push(token);
    if (token.text === '}' || token.text === ')') {
      const opener = open.pop();
      if (!opener || (opener.text === '{') !== (token.text === '}')) return { at: token.from, message: `Nothing is open that ${token.text} could close.` };
    }
  }
  const left = open.pop();
  return left ? { at: left.from, message: `${left.text} is not closed.` } : null;
}

export function isMetricsQuery(text: string): boolean {
  return /\|\s*(rate|compare|\w+_over_time)\s*\(/.test(text);
}
