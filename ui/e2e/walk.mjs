// The incident walk against a real server: services → heatmap brush → explain → trace → span → flame graph → line. Once by
// mouse, once by keyboard alone; then sharing by URL and the dark theme. SERVICE and FUNCTION name what the data holds.
import { check, launch, newPage, origin } from './browser.mjs';

const service = process.env.SERVICE ?? 'shop';
const culprit = process.env.FUNCTION ?? 'lookupTaxRate';
const browser = await launch();
const settle = (page) => page.waitForLoadState('networkidle').catch(() => undefined).then(() => page.waitForTimeout(400));

async function byMouse() {
  const page = await newPage(browser);
  await page.goto(`${origin}/#/services`);
  await page.locator(`td a:text-is("${service}")`).click();
  await settle(page);
  check(page.url().includes('#/traces'), 'a click on a service opens its requests');
  const map = await page.getByRole('application').boundingBox();
  await page.mouse.move(map.x + 60, map.y + 4);
  await page.mouse.down();
  await page.mouse.move(map.x + map.width - 10, map.y + map.height * 0.45, { steps: 8 });
  await page.mouse.up();
  await settle(page);
  check(await page.locator('.choice').isVisible(), 'a box over the slow part offers what to do with it');
  await page.locator('.choice button:has-text("Explain")').click();
  await settle(page);
  const first = page.getByLabel('Cause 1', { exact: true });
  check((await first.innerText()).includes(culprit), `explain blames ${culprit} first`);
  check(/:\d+/.test(await first.innerText()), 'and names file and line');
  await first.locator('a.mono').first().click();
  await settle(page);
  check(await page.locator('.wf-row').first().isVisible(), 'an example trace opens as a waterfall');
  check((await page.locator('.wf-critical').count()) > 0, 'the critical path is drawn');
  await page.locator('.flame-stage').waitFor();
  check((await page.locator('.flame-bar [role="status"]').innerText()).includes('of all'), 'the flame graph beside it shows the culprit’s share');
  check(page.faults.length === 0, `no script error on the way ${page.faults.join('; ')}`);
  await page.close();
}

async function byKeyboard() {
  const page = await newPage(browser);
  const press = async (...keys) => {
    for (const key of keys) {
      await page.keyboard.press(key);
      await page.waitForTimeout(150);
    }
    await settle(page);
  };
  await page.goto(`${origin}/#/services`);
  await settle(page);
  await press('/');
  await page.keyboard.type(service);
  await press('Escape', 'Enter');
  check(page.url().includes('#/traces'), 'keyboard: Enter opens the requests of the row');
  await press('h', 'Enter');
  check(page.url().includes('box='), 'keyboard: the heatmap selects what is slow');
  await press('e');
  check(page.url().includes('#/explain'), 'keyboard: e explains the selection');
  check((await page.getByLabel('Cause 1', { exact: true }).innerText()).includes(culprit), `keyboard: ${culprit} is first`);
  // Tab until the first example trace has the focus, as a person without a mouse would.
  for (let step = 0; step < 60 && !(await page.evaluate(() => document.activeElement?.matches('[aria-label="Cause 1"] a.mono'))); step++) await page.keyboard.press('Tab');
  await press('Enter');
  check(page.url().includes('#/trace/'), 'keyboard: Enter follows the example trace');
  await press('j', 'p');
  await press('f', 'ArrowDown', 'ArrowDown', 'Enter');
  check(page.url().includes('zoom='), 'keyboard: arrows walk the flame graph and Enter zooms');
  await press('r');
  check(page.url().includes('tf=collapse-all-recursion'), 'keyboard: r collapses recursion');
  await press('u');
  check(!page.url().includes('tf='), 'keyboard: u undoes it');
  await press('7');
  check(await page.getByRole('table', { name: 'Functions' }).isVisible(), 'keyboard: 7 shows the table');
  await press('?');
  check(await page.getByRole('dialog', { name: 'Keys' }).isVisible(), 'keyboard: ? lists the keys');
  check(page.faults.length === 0, `no script error on the way ${page.faults.join('; ')}`);
  await page.close();
}

async function sharing() {
  const page = await newPage(browser);
  await page.goto(`${origin}/#/profiles?service=${service}`);
  await page.locator('.flame-stage').waitFor();
  await page.getByLabel('Search in the graph').fill(culprit);
  await settle(page);
  const said = await page.locator('.flame-bar [role="status"]').innerText();
  const other = await newPage(browser, { colorScheme: 'dark' });
  await other.goto(page.url().replace(/&?from=[^&]*|&?to=[^&]*/g, ''));
  await other.locator('.flame-bar [role="status"]').waitFor();
  check((await other.locator('.flame-bar [role="status"]').innerText()).split('·')[1] === said.split('·')[1], 'a shared address shows the same search');
  check((await other.evaluate(() => document.documentElement.dataset.theme)) === 'dark', 'and keeps the reader’s own theme');
  await page.goto(`${origin}/#/compare?service=${service}`);
  await page.locator('.flame-stage').waitFor();
  check((await page.locator('.flame-legend').innerText()).includes('+ more'), 'compare opens as a difference with signs');
  await page.close();
  await other.close();
}

await byMouse();
await byKeyboard();
await sharing();
await browser.close();
