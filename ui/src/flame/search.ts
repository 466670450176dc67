// Search in a flame graph: words, /regex/, -negation, file: and pkg:. Works on distinct names first, so a million nodes cost
// one pass over small integers.
import { packageOf } from './frameNames';
import { type FlameTree, levelCount } from './tree';

interface Term {
  negated: boolean;
  field: 'any' | 'file' | 'pkg';
  test: (text: string) => boolean;
  /** Present for plain words: they can be looked up in all names at once. */
  word: string | null;
}

export interface SearchQuery {
  terms: Term[];
  /** A regex that does not compile: shown beside the field, matches nothing. */
  problem: string | null;
}

function splitTerms(text: string): string[] {
  return text.match(/[-!]?(?:(?:file|pkg):)?(?:\/(?:\\.|[^/\\])+\/|"[^"]*"|\S+)/g) ?? [];
}

export function parseSearch(text: string): SearchQuery {
  const terms: Term[] = [];
  for (const raw of splitTerms(text.trim())) {
    const negated = /^[-!]/.test(raw) && raw.length > 1;
    let rest = negated ? raw.slice(1) : raw;
    let field: Term['field'] = 'any';
    const prefix = /^(file|pkg):(.+)$/.exec(rest);
    if (prefix) {
      field = prefix[1] as 'file' | 'pkg';
      rest = prefix[2]!;
    }
    if (rest.length > 2 && rest.startsWith('/') && rest.endsWith('/')) {
      try {
        const pattern = new RegExp(rest.slice(1, -1), 'i');
        terms.push({ negated, field, word: null, test: (candidate) => pattern.test(candidate) });
      } catch (cause) {
        return { terms: [], problem: cause instanceof Error ? cause.message : String(cause) };
      }
    } else {
      const word = rest.replace(/^"(.*)"$/, '$1').toLowerCase();
      terms.push({ negated, field, word: field === 'any' ? word : null, test: (candidate) => candidate.toLowerCase().includes(word) });
    }
  }
  return { terms, problem: null };
}

interface NameText {
  text: string;
  /** Where each name begins in `text`. */
  starts: Int32Array;
}

const nameTexts = new WeakMap<readonly string[], NameText>();

/** Names or nodes that are looked at between two looks at the clock. */
const AT_ONCE = 1 << 14;

/** All names in one lower-case string: one `indexOf` over a megabyte beats twenty thousand small ones. */
function* nameText(names: readonly string[]): Generator<void, NameText> {
  let known = nameTexts.get(names);
  if (!known) {
    const starts = new Int32Array(names.length + 1);
    const lower: string[] = [];
    for (let i = 0; i < names.length; i++) {
      const name = names[i]!;
      starts[i + 1] = starts[i]! + name.length + 1;
      // Lower-casing must keep lengths, or the starts are wrong; it does not for a few letters such as İ.
      const changed = name.toLowerCase();
      lower.push(changed.length === name.length ? changed : name);
      if (i % AT_ONCE === 0) yield;
    }
    known = { text: `${lower.join('\n')}\n`, starts };
    nameTexts.set(names, known);
  }
  return known;
}

function namesWithWord(names: readonly string[], { text, starts }: NameText, word: string): Uint8Array {
  const found = new Uint8Array(names.length);
  let name = 0;
  for (let at = text.indexOf(word); at >= 0 && name < names.length; at = text.indexOf(word, starts[name + 1])) {
    while (starts[name + 1]! <= at) name++;
    found[name] = 1;
    if (name + 1 >= names.length) break;
  }
  return found;
}

/** 1 for each name that satisfies every term. An empty query matches nothing, so that nothing fades. */
function* matchNames(tree: FlameTree, query: SearchQuery): Generator<void, Uint8Array> {
  const { names, facts } = tree;
  if (query.terms.length === 0) return new Uint8Array(names.length);
  const matched = new Uint8Array(names.length).fill(1);
  for (const term of query.terms) {
    const words = term.word !== null ? namesWithWord(names, yield* nameText(names), term.word) : null;
    for (let i = 0; i < names.length; i++) {
      if (i % AT_ONCE === 0) yield;
      if (!matched[i]) continue;
      const hit = words ? words[i] === 1 : term.test(term.field === 'file' ? (facts?.[i]?.file ?? '') : term.field === 'pkg' ? packageOf(names[i]!, facts?.[i]) : names[i]!);
      if (hit === term.negated) matched[i] = 0;
    }
  }
  return matched;
}

export interface SearchResult {
  matched: Uint8Array;
  /** Frames that match. */
  frames: number;
  /** Value under the outermost matches: nothing counts twice. */
  value: number;
  share: number;
  /** Outermost matches, heaviest first, cut at a number a person can walk. */
  hits: number[];
  /** Prefix sums of matches in level order, so that a sub-pixel run can be asked "is one among you?". */
  levelMatches: Int32Array;
}

const MOST_HITS = 2000;

/** The heaviest few of many: a heap whose top is the lightest kept, so that most candidates cost one comparison. */
class Heaviest {
  private readonly heap: number[] = [];

  constructor(
    private readonly weight: Float64Array,
    private readonly most: number,
  ) {}

  offer(node: number): void {
    const { heap, weight } = this;
    if (heap.length === this.most) {
      if (weight[node]! <= weight[heap[0]!]!) return;
      let at = 0;
      for (;;) {
        let child = 2 * at + 1;
        if (child >= heap.length) break;
        if (child + 1 < heap.length && weight[heap[child + 1]!]! < weight[heap[child]!]!) child++;
        if (weight[heap[child]!]! >= weight[node]!) break;
        heap[at] = heap[child]!;
        at = child;
      }
      heap[at] = node;
      return;
    }
    let at = heap.push(node) - 1;
    for (let above = (at - 1) >> 1; at > 0 && weight[heap[above]!]! > weight[node]!; above = (at - 1) >> 1) {
      heap[at] = heap[above]!;
      at = above;
    }
    heap[at] = node;
  }

  sorted(): number[] {
    return [...this.heap].sort((a, b) => this.weight[b]! - this.weight[a]! || a - b);
  }
}

/** A search under way: it stops now and then, so that whoever runs it can let the page go on. */
export function* searching(tree: FlameTree, text: string): Generator<void, SearchResult | null> {
  const query = parseSearch(text);
  if (query.terms.length === 0) return null;
  const matched = yield* matchNames(tree, query);
  const levelMatches = new Int32Array(tree.count + 1);
  const { count, levelName, name, subtreeEnd, total } = tree;
  for (let slot = 0, sum = 0; slot < count; ) {
    for (const end = Math.min(count, slot + AT_ONCE); slot < end; slot++) levelMatches[slot + 1] = sum += matched[levelName[slot]!]!;
    yield;
  }
  let value = 0;
  const heaviest = new Heaviest(total, MOST_HITS);
  // The root is a frame only by courtesy: "total" must not match everything.
  for (let i = 1; i < count; ) {
    for (let left = AT_ONCE; left > 0 && i < count; left--) {
      if (matched[name[i]!]) {
        value += total[i]!;
        heaviest.offer(i);
        i = subtreeEnd[i]!;
      } else i++;
    }
    yield;
  }
  const frames = levelCount(tree) > 0 ? levelMatches[count]! - matched[name[0]!]! : 0;
  return { matched, frames, value, share: total[0] ? value / total[0] : 0, hits: heaviest.sorted(), levelMatches };
}

/** The same at one go. */
export function search(tree: FlameTree, text: string): SearchResult | null {
  const work = searching(tree, text);
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
  }
}
