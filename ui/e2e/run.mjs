// Starts a server, fills it with the shop and runs every *.test.mjs here against it. `npm run e2e`, or with names to run some only.
import { spawn } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { sendDeepTrace, sendLongTrace } from './longTrace.mjs';
import { sendShop } from './shop.mjs';
import { startServer, writeShopSource } from './server.mjs';

const wanted = process.argv.slice(2);
const files = readdirSync(import.meta.dirname).filter((name) => name.endsWith('.test.mjs') && (wanted.length === 0 || wanted.some((word) => name.includes(word))));
const source = writeShopSource('tax/tax.go', 112, '\tjson.Unmarshal(taxTable, &rates) // parsed again for each item');
let server;
let code = 1;
try {
  server = await startServer('serve', ['--source', source.folder, '--self-tracing', 'false']);
  const endMs = Date.now() - 5000;
  await sendShop(server.origin, endMs);
  await sendLongTrace(server.origin, endMs - 40 * 60_000);
  await sendDeepTrace(server.origin, endMs - 40 * 60_000);
  const runner = spawn(process.execPath, ['--test', '--test-concurrency=1', '--test-reporter=spec', ...files.map((name) => join(import.meta.dirname, name))], { stdio: 'inherit', env: { ...process.env, HOTSPAN: server.origin, SHOP_END: String(endMs) } });
  code = await new Promise((done) => runner.once('exit', done));
} finally {
  await server?.stop();
  source.remove();
}
process.exit(code ?? 1);
