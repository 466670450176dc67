// Pictures of each view in both themes, made from whatever the server holds: `node e2e/screenshots.mjs ../docs/screenshots`.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { launch, newPage, origin } from './browser.mjs';

const folder = process.argv[2] ?? 'screenshots';
mkdirSync(folder, { recursive: true });
const browser = await launch();
const first = await newPage(browser);
// One slow trace, found by the page's own search.
await first.goto(`${origin}/#/traces?q=${encodeURIComponent('{ duration > 500ms }')}`);
const link = first.locator('td.mono a').first();
await link.waitFor({ timeout: 15_000 }).catch(() => undefined);
const traceId = (await link.getAttribute('href').catch(() => null))?.match(/trace\/([0-9a-f]+)/)?.[1];
await first.close();
const views = { services: 'services', graph: 'services?as=graph', traces: 'traces', profiles: 'profiles', table: 'profiles?view=table', compare: 'compare', status: 'status', ...(traceId ? { trace: `trace/${traceId}`, explain: `explain?target=${traceId}` } : {}) };
for (const colorScheme of ['light', 'dark']) {
  const page = await newPage(browser, { colorScheme });
  for (const [name, hash] of Object.entries(views)) {
    await page.goto('about:blank');
    await page.goto(`${origin}/#/${hash}`);
    await page.waitForLoadState('networkidle').catch(() => undefined);
    await page.waitForTimeout(600);
    await page.screenshot({ path: join(folder, `${name}-${colorScheme}.png`) });
    console.log(join(folder, `${name}-${colorScheme}.png`));
  }
  await page.close();
}
await browser.close();
