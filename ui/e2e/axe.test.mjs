// axe-core over every view in both themes: no serious or critical fault may remain.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, before, test } from 'node:test';
import { goTo, launch, openPage } from './browser.mjs';
import { shop } from './shop.mjs';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const trace = shop(0).slowTraces[0];
const slow = encodeURIComponent('{ resource.service.name = "web" && duration > 1s }');
const VIEWS = [
  'services', 'services?as=graph', 'services?from=1000&to=2000', 'traces', `traces?q=${slow}`, 'profiles?service=tax', 'profiles?service=tax&view=table', 'profiles?service=tax&view=tree',
  'profiles?service=tax&view=flame&find=tax', 'profiles?service=tax&view=sandwich&fn=shop%2Ftax.lookupTaxRate', 'compare?service=tax', 'compare?service=tax&view=table', `trace/${trace}`, `trace/${trace}?view=timeline&scope=trace`,
  'explain', `explain?target=${slow}`, 'status', 'nonsense',
];

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

for (const colorScheme of ['light', 'dark']) {
  // Scenario: every view with data in it, as a screen reader's owner or a person with weak eyes gets it.
  // Guarantee: no serious or critical fault that axe knows.
  test(`no serious accessibility fault, ${colorScheme}`, async () => {
    // Once on a wide screen, once on a small one, where nothing may hang over the edge.
    const page = await openPage(browser, 'status', { colorScheme, ...(colorScheme === 'dark' ? { viewport: { width: 1100, height: 700 } } : {}) });
    const faults = [];
    for (const view of VIEWS) {
      await goTo(page, view);
      const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (over > 0) faults.push(`${view}: ${over} px wider than the window`);
      await page.evaluate(axe);
      const violations = await page.evaluate(async () => (await globalThis.axe.run(document, { resultTypes: ['violations'] })).violations);
      for (const { id, impact, help, nodes } of violations) {
        if (impact === 'serious' || impact === 'critical') faults.push(`${view}: ${id}: ${help}: ${nodes[0].html.slice(0, 160)} ${nodes[0].any[0]?.message ?? ''}`);
      }
    }
    assert.deepEqual(faults, []);
    await page.finish();
  });
}
