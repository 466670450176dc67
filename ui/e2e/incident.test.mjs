// The incident walk: services → heatmap brush → explain → trace → span → flame graph → line of code. By mouse, then by keyboard.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { addressHas, launch, openPage, press, settle } from './browser.mjs';
import { CULPRIT, CULPRIT_PLACE, shop } from './shop.mjs';

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

const slowTraces = shop(0).slowTraces;
const culpritName = CULPRIT.split('.').at(-1);

// Scenario: someone who has never seen the shop follows what is slow with the mouse.
// Guarantee: two clicks and a brush name the function, the next shows its line; so does the way through trace and flame graph.
test('from the list of services to the line of code, by mouse', async () => {
  const page = await openPage(browser, 'services');
  await page.locator('td a:text-is("web")').click();
  await addressHas(page, '#/traces');
  await settle(page);
  const map = await page.getByRole('application').boundingBox();
  await page.mouse.move(map.x + 62, map.y + 7);
  await page.mouse.down();
  await page.mouse.move(map.x + map.width - 10, map.y + map.height * 0.3, { steps: 6 });
  await page.mouse.up();
  const choice = page.locator('.choice');
  await choice.waitFor();
  assert.match(await choice.innerText(), new RegExp(`^${slowTraces.length} requests`), 'the box holds exactly the slow requests');

  await choice.getByRole('button', { name: 'Explain' }).click();
  const first = page.getByLabel('Cause 1', { exact: true });
  await first.waitFor();
  const said = await first.innerText();
  assert.ok(said.includes(CULPRIT), `the first cause is ${CULPRIT}: ${said}`);
  assert.ok(said.includes(CULPRIT_PLACE), 'with its file and line');
  await first.getByRole('button', { name: CULPRIT_PLACE }).click();
  assert.match(await first.locator('.source .here').innerText(), /112\s*json\.Unmarshal/, 'the third click shows the line');
  await first.getByRole('button', { name: 'Close the source' }).click();

  await first.locator('a.mono').first().click();
  await addressHas(page, '#/trace/');
  assert.ok(slowTraces.some((id) => page.url().includes(id)), 'the example is one of the slow traces');
  await page.locator('.wf-row', { hasText: 'calculateTax' }).click();
  await addressHas(page, 'span=');
  assert.ok((await page.locator('.wf-critical').count()) > 0, 'the critical path is drawn');
  await settle(page);
  await page.getByLabel('Search in the graph').fill(culpritName);
  const share = page.locator('.flame-bar [role="status"]');
  await share.waitFor();
  assert.match(await share.innerText(), /^9\d(\.\d+)? % of all/, 'nearly all of the span is in the culprit');

  await page.getByLabel('Search in the graph').press('Enter');
  await page.keyboard.press('Escape');
  await page.locator('.fn-row', { hasText: CULPRIT }).click({ button: 'right' });
  await page.getByRole('menuitem', { name: /^Source tax\.go:112/ }).click();
  const here = page.locator('.source .here');
  await here.waitFor();
  assert.match(await here.innerText(), /112\s*json\.Unmarshal/, 'the line itself is on the screen');
  await page.finish();
});

// Scenario: the same walk with the mouse unplugged.
// Guarantee: every step can be done by keys alone, and ends at the same function.
test('from the list of services to the line of code, by keyboard', async () => {
  const page = await openPage(browser, 'services');
  await page.locator('td a:text-is("web")').waitFor();
  await press(page, '/');
  await page.keyboard.type('web');
  await page.locator('tbody tr').first().filter({ hasText: 'web' }).waitFor();
  await press(page, 'Escape', 'Enter');
  await addressHas(page, '#/traces');
  await settle(page);
  await press(page, 'h', 'Enter');
  await addressHas(page, 'box=');
  await page.locator('.choice').waitFor();
  await press(page, 'e');
  await addressHas(page, '#/explain');
  const first = page.getByLabel('Cause 1', { exact: true });
  await first.waitFor();
  assert.ok((await first.innerText()).includes(CULPRIT));
  for (let step = 0; step < 80 && !(await page.evaluate(() => document.activeElement?.matches('[aria-label="Cause 1"] a.mono'))); step++) await page.keyboard.press('Tab');
  await press(page, 'Enter');
  await addressHas(page, '#/trace/');
  await page.locator('.wf-row').first().waitFor();
  await settle(page);
  await press(page, 'F');
  await page.keyboard.type('calculateTax');
  await press(page, 'Escape', 'j', 'j', 'j', 'j', 'j', 'j');
  await addressHas(page, 'span=');
  await settle(page);
  await page.locator('.flame-stage').waitFor();
  await press(page, 's');
  await page.keyboard.type(culpritName);
  await page.locator('.flame-bar [role="status"]').waitFor();
  await press(page, 'Enter');
  await addressHas(page, 'sel=');
  await page.getByLabel('Search in the graph').evaluate((field) => field.blur());
  await press(page, 'f', 'Enter');
  await addressHas(page, 'zoom=');
  assert.ok((await page.locator('.flame-crumbs').innerText()).includes(CULPRIT), 'the breadcrumb names the frame that Enter zoomed to');
  await press(page, 'l');
  await page.locator('.source .here').waitFor();
  assert.match(await page.locator('.source .here').innerText(), /112\s*json\.Unmarshal/);
  await press(page, '?');
  const keys = page.getByRole('dialog', { name: 'Keys' });
  await keys.waitFor();
  const before = page.url();
  await press(page, 'Escape');
  await keys.waitFor({ state: 'detached' });
  assert.equal(page.url(), before, 'Esc closes the dialog and leads nowhere else');
  await page.finish();
});
