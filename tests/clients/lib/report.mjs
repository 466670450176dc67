// docs/clients.md: the matrix with its last results. A run replaces the lines of what it ran and leaves the others.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { root } from './project.mjs';
import { withVersion } from './versions.mjs';

const path = join(root, 'docs', 'clients.md');
const languages = { go: 'Go', java: 'Java', node: 'Node.js', python: 'Python', rust: 'Rust' };
const links = { root: "exact, the request's span", span: 'exact, the innermost labelled span' };
const linkOf = (row) => links[row.linksTo] + (row.inherits ? '; inherited below it' : '');

// How a row begins, which is how it is known.
function rowStart(row) {
  const packages = row.packages.map((name) => withVersion(row.language, name)).join(', ');
  return `| ${languages[row.language]} | ${row.client} | ${packages} |`;
}

const linesBefore = () => (existsSync(path) ? readFileSync(path, 'utf8').split('\n') : []);

export function isListed(row) {
  return linesBefore().some((line) => line.startsWith(rowStart(row)));
}

// `results` has, by name of the row, whether it passed and the share of its flame graph that is the function sought.
export function writeReport(rows, results) {
  const before = linesBefore();
  const today = new Date().toISOString().slice(0, 10);
  const lines = rows.map((row) => {
    const start = rowStart(row);
    const result = results.get(row.name);
    if (!result) return before.find((line) => line.startsWith(start)) ?? `${start} | | not run yet |`;
    const code = result.share === undefined ? '' : `${Math.round(result.share * 100)} %`;
    return `${start} ${linkOf(row)} | ${code} | ${result.passed ? 'passed' : '**failed**'} ${today} |`;
  });
  const quick = rows.filter((row) => !row.slow).map((row) => row.name);
  writeFileSync(path, `# Clients

<!-- Written by \`make test-clients\`: do not edit. -->

Each row is the real service in [examples/](../examples/README.md) with the official, unmodified packages. It gets real
requests, two kinds side by side, some chosen to be profiled and some not. The test then asks Hotspan's public API for the
slow span's flame graph, and passes if that holds the function which burned the time, if every sample of the trace is linked
as the column says, if no sample of another request is in it, and if a request that was not chosen has none. One row of each
language is also run with requests that nobody chose, of which the service itself profiles a share. \`make test\` runs what
takes minutes (${quick.join(', ')}), \`make test-clients\` all.

*inherited* means that the client names the request's span only, and that Hotspan finds the span below which ran when a sample
was taken, and says so. *code* is how much of the slow span's flame graph lies in that function; the rest is the runtime and the framework.

| language | client | packages | link | code | last result |
|---|---|---|---|---|---|
${lines.join('\n')}

\`tests/clients/collector.test.mjs\` runs the OpenTelemetry Collector in front of Hotspan: traces, and profiles in the shape
that the eBPF profiler sends (made by hand after its documentation, since the profiler itself can't run on every machine),
over gRPC and HTTP, with gzip and zstd; with a server too small for the load; and the Compose set-up as plain processes.
`);
}
