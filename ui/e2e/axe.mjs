// axe-core over every view in both themes: no serious or critical fault may remain.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { check, launch, newPage, origin, VIEWS } from './browser.mjs';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const traceId = process.env.TRACE_ID;
const views = [...VIEWS, ...(traceId ? [`trace/${traceId}`, `explain?target=${traceId}`] : [])];
const browser = await launch();
let faults = 0;
for (const colorScheme of ['light', 'dark']) {
  const page = await newPage(browser, { colorScheme });
  for (const view of views) {
    await page.goto('about:blank');
    await page.goto(`${origin}/#/${view}`);
    await page.waitForLoadState('networkidle').catch(() => undefined);
    await page.waitForTimeout(500);
    await page.evaluate(axe);
    const found = await page.evaluate(async () => (await globalThis.axe.run(document, { resultTypes: ['violations'] })).violations);
    for (const violation of found.filter((candidate) => candidate.impact === 'serious' || candidate.impact === 'critical')) {
      faults++;
      console.log(`${colorScheme} ${view}: ${violation.id} (${violation.impact}): ${violation.help}`);
      for (const node of violation.nodes.slice(0, 3)) console.log(`    ${node.html.slice(0, 160)}\n    ${(node.any[0] ?? node.all[0] ?? node.none[0])?.message ?? ''}`);
    }
  }
  for (const fault of page.faults) console.log(`${colorScheme}: page error: ${fault}`);
  faults += page.faults.length;
  await page.close();
}
await browser.close();
check(faults === 0, 'no serious accessibility fault and no script error on any view');
