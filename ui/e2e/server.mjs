// A real server as a child process: free ports, a store that is gone afterwards.
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';

const root = resolve(import.meta.dirname, '../..');

/** HOTSPAN_BIN, or what cargo has built. */
export function binary() {
  const target = resolve(root, process.env.CARGO_TARGET_DIR ?? 'target');
  const candidates = [process.env.HOTSPAN_BIN, join(target, 'debug/hotspan'), join(target, 'quick/hotspan')].filter(Boolean);
  const found = candidates.find((path) => existsSync(path));
  if (!found) throw new Error(`no server to test: build it with \`cargo build -p hotspan\`, or name it in HOTSPAN_BIN (looked at ${candidates.join(', ')})`);
  return found;
}

export async function startServer(command, more = []) {
  const store = mkdtempSync(join(tmpdir(), 'hotspan-e2e-'));
  const ports = ['http', 'otlp-grpc', 'otlp-http', 'tempo'].flatMap((name) => [`--${name}`, '127.0.0.1:0']);
  const child = spawn(binary(), [command, '--store', store, ...ports, ...more], { stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, HOTSPAN_LOG_LEVEL: 'warn' }, cwd: root });
  const ended = new Promise((done) => child.once('exit', done));
  const stop = async () => {
    child.kill('SIGTERM');
    await ended;
    rmSync(store, { recursive: true, force: true });
  };
  try {
    const address = await new Promise((found, failed) => {
      createInterface({ input: child.stdout }).on('line', (line) => line.startsWith('http ') && found(line.slice(5)));
      child.once('exit', (code) => failed(new Error(`the server ended with ${code} before it was ready`)));
    });
    const origin = `http://${address}`;
    await becomeReady(origin);
    return { origin, stop };
  } catch (cause) {
    await stop();
    throw cause;
  }
}

async function becomeReady(origin) {
  for (let tries = 0; tries < 400; tries++) {
    const answer = await fetch(`${origin}/ready`).catch(() => null);
    if (answer?.ok) return;
    await new Promise((again) => setTimeout(again, 50));
  }
  throw new Error('the server did not become ready');
}

/** A checkout of the shop, as far as the tests look at it. */
export function writeShopSource(file, line, text) {
  const folder = mkdtempSync(join(tmpdir(), 'hotspan-e2e-source-'));
  const path = join(folder, file);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, Array.from({ length: line + 60 }, (_, index) => (index + 1 === line ? text : `// line ${index + 1}`)).join('\n'));
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}
