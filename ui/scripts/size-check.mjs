// Fails the build when what a browser downloads exceeds the promise of 400 KB compressed.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';

const LIMIT_BYTES = 400 * 1000;
const root = new URL('../dist', import.meta.url).pathname;

function filesUnder(folder) {
  return readdirSync(folder).flatMap((entry) => {
    const path = join(folder, entry);
    return statSync(path).isDirectory() ? filesUnder(path) : [path];
  });
}

let total = 0;
for (const path of filesUnder(root)) {
  const compressed = gzipSync(readFileSync(path), { level: 9 }).length;
  total += compressed;
  console.log(`${(compressed / 1000).toFixed(1).padStart(8)} KB  ${path.slice(root.length + 1)}`);
}
console.log(`${(total / 1000).toFixed(1).padStart(8)} KB  total compressed (limit ${LIMIT_BYTES / 1000} KB)`);
if (total > LIMIT_BYTES) {
  console.error('size-check: the page is larger than promised');
  process.exit(1);
}
