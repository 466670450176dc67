// What could come next at the caret.
import type { TagScope } from '../api/traces';
import { CONSTANTS, FUNCTIONS, INTRINSICS, SCOPES, tokenize } from './tokens';

export type Wanted = { what: 'attribute'; prefix: string; from: number } | { what: 'function'; prefix: string; from: number } | { what: 'value'; prefix: string; from: number; attribute: string } | { what: 'nothing' };

export function wantedAt(text: string, caret: number): Wanted {
  const before = tokenize(text.slice(0, caret));
  const last = before.at(-1);
  const typing = last && last.kind !== 'space' && last.kind !== 'operator' && last.kind !== 'brace' ? last : null;
  const from = typing ? typing.from : caret;
  const prefix = typing ? typing.text : '';
  const settled = (typing ? before.slice(0, -1) : before).filter((token) => token.kind !== 'space');
  const depth = settled.reduce((sum, token) => sum + (token.text === '{' ? 1 : token.text === '}' ? -1 : 0), 0);
  const previous = settled.at(-1);
  if (depth > 0) {
    if (!previous || previous.text === '{' || previous.text === '&&' || previous.text === '||' || previous.text === '(' || previous.text === '!') return { what: 'attribute', prefix, from };
    if (previous.kind === 'operator') {
      const attribute = settled.at(-2);
      if (attribute?.kind === 'attribute') return { what: 'value', prefix: prefix.replace(/^"/, ''), from, attribute: attribute.text };
      return { what: 'nothing' };
    }
    return { what: 'nothing' };
  }
  if (previous?.text === '|') return { what: 'function', prefix, from };
  if (previous?.text === '(' || (previous?.text === ',' && settled.length > 0)) return { what: 'attribute', prefix, from };
  return { what: 'nothing' };
}

/** Scoped names first, then intrinsics; those that begin with the prefix before those that hold it. */
export function completions(wanted: Wanted, tags: readonly TagScope[], values: readonly { type: string; value: string }[]): string[] {
  if (wanted.what === 'nothing') return [];
  let pool: string[];
  if (wanted.what === 'function') pool = FUNCTIONS.filter((name) => name !== 'with').map((name) => `${name}(`);
  else if (wanted.what === 'attribute') {
    pool = [
      ...tags.filter((scope) => scope.name !== 'intrinsic').flatMap((scope) => (scope.tags ?? []).map((tag) => `${scope.name}.${/[\s{}()=~!<>&|^,]/.test(tag) ? JSON.stringify(tag) : tag}`)),
      ...INTRINSICS,
      ...SCOPES,
    ];
  } else if (wanted.attribute === 'status' || wanted.attribute === 'span:status') pool = ['error', 'ok', 'unset'];
  else if (wanted.attribute === 'kind' || wanted.attribute === 'span:kind') pool = CONSTANTS.slice(6, 12);
  else if (/duration/i.test(wanted.attribute) || /^profile\.(cpu|wall)$/.test(wanted.attribute)) pool = ['100ms', '500ms', '1s', '2s'];
  else pool = values.map((value) => (value.type === 'string' ? JSON.stringify(value.value) : value.value));
  const needle = wanted.prefix.toLowerCase();
  const starts = pool.filter((entry) => entry.toLowerCase().replace(/^"/, '').startsWith(needle));
  const holds = pool.filter((entry) => !starts.includes(entry) && entry.toLowerCase().includes(needle));
  return [...new Set([...starts, ...holds])].filter((entry) => entry !== wanted.prefix).slice(0, 50);
}
