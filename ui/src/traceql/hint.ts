// What is right by the grammar and still hardly what was meant.
import type { TagScope } from '../api/traces';
import { tokenize } from './tokens';

/** What a span is told by itself, not by attributes: the same words behind a scope name attributes. */
const INTRINSIC_WORDS = ['name', 'duration', 'status', 'statusMessage', 'kind'];

export interface Hint {
  at: number;
  message: string;
}

/** A scope and an intrinsic in one word, where no stored attribute is called so. */
export function hintAt(text: string, tags: readonly TagScope[]): Hint | null {
  const isStored = (name: string) => tags.some((scope) => scope.name !== 'intrinsic' && (scope.tags ?? []).includes(name));
  for (const token of tokenize(text)) {
    const scoped = token.kind === 'attribute' ? /^(parent\.(?:span\.)?|span\.)(\w+)$/.exec(token.text) : null;
    const word = scoped?.[2] ?? '';
    if (!scoped || !INTRINSIC_WORDS.includes(word) || isStored(word)) continue;
    const meant = scoped[1] === 'span.' ? `the ${word} of a span is ${word} or span:${word}` : `for the ${word} of the parent itself write { ${word} = … } > { … }`;
    return { at: token.from, message: `${token.text} is an attribute called “${word}”; ${meant}` };
  }
  return null;
}
