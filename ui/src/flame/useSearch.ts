// What a search in a graph finds. While the next word is looked for, the last answer stays.
import { useEffect, useState } from 'react';
import { searching, type SearchResult } from './search';
import { inSlices } from './slices';
import type { FlameTree } from './tree';

export function useSearch(tree: FlameTree | null, text: string): SearchResult | null {
  const [found, setFound] = useState<{ tree: FlameTree; result: SearchResult | null } | null>(null);
  useEffect(() => {
    if (!tree || !text) return undefined;
    return inSlices('flame:search', searching(tree, text), (result) => setFound({ tree, result }));
  }, [tree, text]);
  // Nodes of another tree have other numbers.
  return found && text && found.tree === tree ? found.result : null;
}
