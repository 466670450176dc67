// docs/clients.md: the matrix with its last results.
import { readFileSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import { join } from 'node:path';

import { root } from './project.mjs';
import { withVersion } from './versions.mjs';

const path = join(root, 'docs', 'clients.md');
const languages = { go: 'Go', java: 'Java', node: 'Node.js', python: 'Python', rust: 'Rust', collector: 'Collector' };

// How a row begins, which is how it is known.
export function rowStart(row) {
  const packages = row.packages.map((name) => withVersion(row.language, name)).join(', ');
  return `| ${languages[row.language]} | ${row.client} | ${packages} |`;
}

export function isListed(row) {
  return readFileSync(path, 'utf8').includes(rowStart(row));
}

export function writeReport(rows, results) {
  const links = { root: "exact, the request's span", span: 'exact, the innermost labelled span' };
  const lines = rows.map((row) => {
    const { passed, share, note } = results.get(row.name) ?? { passed: false, note: 'not run' };
    const code = share === undefined ? '' : `${Math.round(share * 100)} %`;
    return `${rowStart(row)} ${links[row.linksTo] ?? row.linksTo} | ${code} | ${passed ? 'passed' : `**failed**: ${note}`} |`;
  });
  writeFileSync(path, `# Clients

<!-- Written by \`make test-clients\`: do not edit. -->

Each row is the real service in [examples/](../examples/README.md) with the official, unmodified packages. It gets real
requests, two kinds side by side, some chosen to be profiled and some not. The test then asks Hotspan's public API for the
slow span's flame graph, and passes if that holds the function which burned the time, if every sample of the trace is linked
as the column says, if no sample of another request is in it, and if a request that was not chosen has none.

*code* is how much of the slow span's flame graph lies in that function; the rest is the runtime and the framework.

Last run: ${new Date().toISOString().slice(0, 10)}, ${os.type()} ${os.arch()}, ${os.cpus().length} cores.

| language | client | packages | link | code | result |
|---|---|---|---|---|---|
${lines.join('\n')}
`);
}
