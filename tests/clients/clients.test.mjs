// The client matrix: real services with the official packages, looked at through Hotspan's public API.
//
//   node --test tests/clients                    the rows that `make test` runs
//   CLIENTS=all node --test tests/clients        all rows; writes docs/clients.md
//   CLIENTS=go node --test tests/clients         the rows whose name begins so
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { after, before, test } from 'node:test';

import { checkClient } from './lib/check.mjs';
import { Hotspan } from './lib/hotspan.mjs';
import { isListed, writeReport } from './lib/report.mjs';
import { Service } from './lib/service.mjs';
import go from './rows/go.mjs';
import java from './rows/java.mjs';
import node from './rows/node.mjs';
import python from './rows/python.mjs';

const rows = [...go, ...java, ...node, ...python].map((row) => {
  const name = `${row.language} ${row.mode}`;
  return { ...row, name, service: `order-service-${name.replace(' ', '-')}` };
});
const wanted = process.env.CLIENTS ?? 'quick';
const isWanted = (row) => wanted === 'all' || (wanted === 'quick' ? row.slow !== true : row.name.startsWith(wanted));
const results = new Map();

let hotspan;
before(async () => {
  hotspan = await Hotspan.start();
});
after(async () => {
  await hotspan?.stop();
  if (wanted === 'all') writeReport(rows, results);
});

for (const row of rows.filter(isWanted)) {
  // Scenario: the service in this row's language with this row's profiler gets requests of two kinds at once.
  // Guarantee: the slow span leads to the function that burned the time, and to nothing of another request.
  test(row.name, async (context) => {
    const missing = row.needs.find((command) => spawnSync('which', [command]).status !== 0);
    if (missing && wanted === 'quick') return context.skip(`${missing} is not on this machine`);
    assert.ok(!missing, `${missing} is not on this machine`);
    results.set(row.name, { passed: false, note: 'see the log' });
    const env = {
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://${hotspan.addresses['otlp-http']}`,
      PYROSCOPE_SERVER_ADDRESS: hotspan.url,
      HOTSPAN_ADDRESS: hotspan.url,
      ...row.env,
    };
    const service = await Service.start({ ...row, name: row.service, env });
    const { share } = await checkClient(row, hotspan, service).finally(() => service.child.kill());
    results.set(row.name, { passed: true, share });
    context.diagnostic(`${Math.round(share * 100)} % of the slow span is the function that burned the time`);
  });
}

// Scenario: a row was added or a package was updated. Guarantee: the matrix in docs/clients.md has been written since.
test('docs/clients.md has every row', { skip: wanted === 'all' }, () => {
  for (const row of rows) assert.ok(isListed(row), `run make test-clients: docs/clients.md lacks ${row.name}`);
});
