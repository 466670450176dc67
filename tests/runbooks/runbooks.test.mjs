// The scripts in examples/runbooks, unmodified, against the demo.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { program, until } from '../clients/lib/hotspan.mjs';
import { Child } from '../clients/lib/processes.mjs';
import { root } from '../clients/lib/project.mjs';

const scripts = join(root, 'examples', 'runbooks');
const store = mkdtempSync(join(tmpdir(), 'hotspan-runbooks-'));
let demo, env, python;

before(async () => {
  const ports = ['--http', '127.0.0.1:0', '--tempo', '127.0.0.1:0', '--otlp-grpc', 'off', '--otlp-http', 'off'];
  demo = new Child(program, ['demo', '--store', store, '--scenario', 'tax', '--rate', '8', ...ports]);
  const [, page] = await demo.line(/^http (\S+)$/, 60_000);
  const [, tempo] = await demo.line(/^tempo (\S+)$/, 60_000);
  env = { ...process.env, TEMPO_URL: `http://${tempo}`, PYROSCOPE_URL: `http://${page}` };
  python = join(scripts, '.venv', 'bin', 'python');
  if (!existsSync(python)) execFileSync('python3', ['-m', 'venv', join(scripts, '.venv')]);
  execFileSync(python, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '-r', join(scripts, 'requirements.txt')]);
});

after(async () => {
  await demo.stop();
  rmSync(store, { recursive: true, force: true });
});

const run = (command, args) => execFileSync(command, args, { cwd: scripts, env, encoding: 'utf8' });

// Scenario: somebody looks for slow tax calculations, then at one trace's samples and at its tax span's flame graph.
// Guarantee: all three scripts lead to the code that parses the table again and again.
test('slow spans lead to their code', async () => {
  // The newest traces may be there before their samples: profilers send every few seconds. So one is taken that names code.
  const parsing = /serde_json|parse_tax_document|Deserializer|alloc|BTreeMap|memcpy|malloc/;
  const explained = await until('a slow span with its functions', () => {
    const found = run(python, ['slow_spans.py', 'tax', 'calculate_tax', '100ms']);
    return found.split(/^(?=trace )/m).find((span) => /^trace \w+: calculate_tax took \d+ ms\n/.test(span) && parsing.test(span));
  }, 90_000);

  const [, traceId] = explained.match(/^trace (\w+)/);
  const samples = run('./samples_of_trace.sh', [traceId]).trim().split('\n');
  const ofTax = samples.map((line) => line.split(' ')).filter(([, service]) => service === 'tax');
  assert.ok(ofTax.length > 0, samples.join('\n'));

  const spanId = ofTax[0][2];
  const flame = run('./flame_of_span.sh', ['tax', spanId]);
  assert.match(flame, /lookup_tax_rate/);
  const top = JSON.parse(flame.trim().split('\n').at(-1));
  assert.ok(top.functions.length > 0 && top.functions.length <= 10);
  // As OTLP in JSON may write the id, with whatever characters base64 has.
  assert.match(run('./flame_of_span.sh', ['tax', Buffer.from(spanId, 'hex').toString('base64')]), /lookup_tax_rate/);
});
