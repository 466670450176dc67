// Search in a flame graph: words, /regex/, -negation, file: and pkg:. Works on distinct names first, so a million nodes cost
// one pass over small integers.
import { packageOf } from './frameNames';
import { type FlameTree, levelCount } from './tree';

interface Term {
  negated: boolean;
  field: 'any' | 'file' | 'pkg';
  test: (text: string) => boolean;
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
        terms.push({ negated, field, test: (candidate) => pattern.test(candidate) });
      } catch (cause) {
        return { terms: [], problem: cause instanceof Error ? cause.message : String(cause) };
      }
    } else {
      const needle = rest.replace(/^"(.*)"$/, '$1').toLowerCase();
      terms.push({ negated, field, test: (candidate) => candidate.toLowerCase().includes(needle) });
    }
  }
  return { terms, problem: null };
}

/** 1 for each name that satisfies every term. An empty query matches nothing, so that nothing fades. */
export function matchNames(tree: FlameTree, query: SearchQuery): Uint8Array {
  const matched = new Uint8Array(tree.names.length);
  if (query.terms.length === 0) return matched;
  tree.names.forEach((name, index) => {
    const facts = tree.facts?.[index];
    matched[index] = query.terms.every((term) => {
      const hit =
        term.field === 'file' ? term.test(facts?.file ?? '') : term.field === 'pkg' ? term.test(packageOf(name, facts)) : term.test(name);
      return hit !== term.negated;
    })
      ? 1
      : 0;
  });
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

export function search(tree: FlameTree, text: string): SearchResult | null {
  const query = parseSearch(text);
  if (query.terms.length === 0) return null;
  const matched = matchNames(tree, query);
  const levelMatches = new Int32Array(tree.count + 1);
  for (let slot = 0; slot < tree.count; slot++) levelMatches[slot + 1] = levelMatches[slot]! + matched[tree.name[tree.levelNodes[slot]!]!]!;
  let value = 0;
  let outermost: number[] = [];
  // The root is a frame only by courtesy: "total" must not match everything.
  for (let i = 1; i < tree.count; ) {
    if (matched[tree.name[i]!]) {
      value += tree.total[i]!;
      outermost.push(i);
      i = tree.subtreeEnd[i]!;
    } else i++;
  }
  if (outermost.length > MOST_HITS) {
    const threshold = Float64Array.from(outermost, (i) => tree.total[i]!).sort()[outermost.length - MOST_HITS]!;
    outermost = outermost.filter((i) => tree.total[i]! >= threshold).slice(0, MOST_HITS);
  }
  outermost.sort((x, y) => tree.total[y]! - tree.total[x]!);
  const frames = levelCount(tree) > 0 ? levelMatches[tree.count]! - matched[tree.name[0]!]! : 0;
  return { matched, frames, value, share: tree.total[0] ? value / tree.total[0] : 0, hits: outermost, levelMatches };
}
