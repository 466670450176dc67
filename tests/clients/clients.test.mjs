// The client matrix: real services with the official packages, looked at through Hotspan's public API.
//
//   node --test tests/clients                    the rows that `make test` runs
//   CLIENTS=all node --test tests/clients        all rows; writes docs/clients.md
//   CLIENTS=go node --test tests/clients         the rows whose name begins so; writes theirs
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { checkClient, checkShare, TooLittle } from './lib/check.mjs';
import { Hotspan } from './lib/hotspan.mjs';
import { isListed, writeReport } from './lib/report.mjs';
import { addressesOf, freePort, Service } from './lib/service.mjs';
import go from './rows/go.mjs';
import java from './rows/java.mjs';
import node from './rows/node.mjs';
import python from './rows/python.mjs';
import rust from './rows/rust.mjs';

const rows = [...go, ...java, ...node, ...python, ...rust].map((row) => {
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
  if (wanted !== 'quick') writeReport(rows, results);
});

for (const row of rows.filter(isWanted)) {
  // Scenario: the service in this row's language with this row's profiler gets requests of two kinds at once.
  // Guarantee: the slow span leads to the function that burned the time, and to nothing of another request.
  test(row.name, async (context) => {
    const missing = row.needs.find((command) => spawnSync('which', [command]).status !== 0);
    if (missing && wanted === 'quick') return context.skip(`${missing} is not on this machine`);
    assert.ok(!missing, `${missing} is not on this machine`);
    results.set(row.name, { passed: false });
    const { share } = await run(row).catch((error) => {
      // `make test` looks twice where there was too little, the matrix once.
      if (wanted !== 'quick' || !(error instanceof TooLittle)) throw error;
      context.diagnostic(`once more, since ${error.message}`);
      return run({ ...row, service: `${row.service}-again` });
    });
    results.set(row.name, { passed: true, share });
    context.diagnostic(`${Math.round(share * 100)} % of the slow span is the function that burned the time`);
  });
}

for (const row of rows.filter(isWanted).filter((row) => row.rollsDice)) {
  // Scenario: the service of this language is told to profile one request in two, and no request says that it wants it.
  // Guarantee: some of the requests have samples that name them, and others have none.
  test(`${row.name}: head sampling by share`, async (context) => {
    if (row.needs.some((command) => spawnSync('which', [command]).status !== 0)) return context.skip('its tools are not on this machine');
    const ofShare = { ...row, service: `${row.service}-share`, env: { ...row.env, PROFILE_SHARE: '0.5' } };
    const [profiled, sent] = await run(ofShare, checkShare);
    assert.ok(profiled > 0 && profiled < sent, `${profiled} of ${sent} requests were profiled`);
  });
}

// Starts the service of a row and looks at it: by default for the share of the slow span that is the function which burned
// the time.
async function run(row, check = checkClient) {
  const own = row.server && (await startOwnServer(row));
  const server = own?.server ?? hotspan;
  try {
    const env = { ...addressesOf(server), ...own?.env, ...row.env };
    const service = await Service.start({ ...row, name: row.service, env });
    return await check(row, server, service).finally(() => service.child.kill());
  } finally {
    await own?.stop();
  }
}

// A server that is told beforehand on which port the service will listen.
async function startOwnServer(row) {
  const port = await freePort();
  const folder = mkdtempSync(join(tmpdir(), 'hotspan-clients-'));
  const server = await Hotspan.start({ args: row.server({ folder, service: row.service, port }) });
  const stop = async () => {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  };
  return { server, env: { PORT: String(port) }, stop };
}

// Scenario: a row was added or a package was updated. Guarantee: the matrix in docs/clients.md has been written since.
test('docs/clients.md has every row', { skip: wanted !== 'quick' }, () => {
  for (const row of rows) assert.ok(isListed(row), `run make test-clients: docs/clients.md lacks ${row.name}`);
});
