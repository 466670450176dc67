// Flame graphs that the server draws itself: a page and a picture, each of which stands alone and answers clicks and searches.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launch, openPage, origin } from './browser.mjs';

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

const widthOf = (bar) => bar.locator('rect').evaluate((rect) => Number(rect.getAttribute('width')));

for (const format of ['flamegraph', 'svg']) {
  // Scenario: the flame graph opened in a browser, searched for a name and for what is no expression, zoomed by a click, and left.
  // Guarantee: the share of what was found is told; the chosen bar is as wide as the graph, and what has no part in it hidden;
  // then all is as it was.
  test(`a flame graph asked for as ${format} can be searched and zoomed`, async () => {
    const page = await openPage(browser, 'services');
    await page.goto(`${origin}/api/v1/profile?app=tax&format=${format}`);
    let words = 'lookupTaxRate';
    page.on('dialog', (dialog) => dialog.accept(words));
    const note = page.locator('#note');
    const said = await note.textContent();
    await page.keyboard.press('/');
    await page.waitForFunction(() => /^\d+ found, 9\d\.\d\d% of all$/.test(document.getElementById('note').textContent));
    words = '[nowhere';
    await page.locator('#search').click();
    await page.waitForFunction(() => document.getElementById('note').textContent === '0 found, 0.00% of all');
    await page.locator('#reset').click();
    assert.equal(await note.textContent(), said);

    const bars = page.locator('#bars > g');
    const whole = await widthOf(bars.first());
    const small = bars.filter({ hasText: 'sumLines' }).first();
    const before = await widthOf(small);
    assert.ok(before > 0 && before < whole / 2, `${before} of ${whole}`);
    await small.locator('rect').click();
    assert.equal(await widthOf(small), whole);
    assert.ok((await bars.filter({ visible: true }).count()) < (await bars.count()));
    await page.keyboard.press('Escape');
    assert.ok(Math.abs((await widthOf(small)) - before) < 0.01);
    assert.equal(await bars.filter({ visible: true }).count(), await bars.count());
    await page.finish();
  });
}
