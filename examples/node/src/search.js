// Ranking the catalogue.
import { setImmediate as nextTurn } from 'node:timers/promises';

import { inSpan } from './tracing.js';

export async function search(words, work) {
  return inSpan('catalogue.rank', async (span) => {
    let best = '';
    for (let word = 0; word < words; word += 1) {
      best = work(span, () => rankProducts(`word-${word}`));
      await nextTurn();
    }
    return best;
  });
}

function rankProducts(word) {
  let best = '';
  let highest = -1;
  for (let number = 0; number < 20_000; number += 1) {
    const product = `product-${number}`;
    const score = similarity(word + product);
    if (score >= highest) [highest, best] = [score, product];
  }
  return best;
}

function similarity(text) {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash >>> 0;
}
