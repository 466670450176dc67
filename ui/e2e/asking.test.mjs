// Asking: a store that fills while one looks, completion, metrics, brushing, code back to spans, a trace of twelve thousand spans.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { after, before, test } from 'node:test';
import { addressHas, goTo, launch, openPage, press, settle } from './browser.mjs';
import { LONG_SPANS, LONG_TRACE, ODD_ROW } from './longTrace.mjs';
import { binary, startServer } from './server.mjs';
import { CULPRIT, sendShop, shop } from './shop.mjs';

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

const { slowTraces } = shop(0);

// Scenario: a newcomer opens the page of an empty store, and sends data while looking at it.
// Guarantee: each view says how to send data, with lines that do what they say as they are; the page fills by itself.
test('an empty store says how to fill it, and the page fills', async () => {
  const server = await startServer('serve', ['--self-tracing', 'false']);
  try {
    const page = await openPage(browser, 'services', { from: server.origin });
    for (const view of ['traces', 'profiles', 'compare', 'explain', 'services']) {
      await goTo(page, view);
      await page.getByText('Nothing has arrived yet').waitFor();
    }
    const lines = await page.locator('.first-steps pre').allInnerTexts();
    assert.equal(lines.length, 3);
    assert.ok(lines.every((line) => line.includes(server.origin)), lines.join('\n'));
    const [, ...pushed] = lines[2].replace('cpu.pb.gz', '-').split(' ');
    await goTo(page, 'profiles');
    execFileSync(binary(), pushed, { input: 'main;work 7\n' });
    await page.getByText('my-service').first().waitFor();
    await goTo(page, 'services');
    await page.getByText('No spans have arrived yet').waitFor();
    await sendShop(server.origin, Date.now() - 5000);
    await page.locator('td a:text-is("web")').waitFor();
    await page.finish();
  } finally {
    await server.stop();
  }
});

// Scenario: a question typed with the help of completion, faster than the page draws, then one for a metric.
// Guarantee: attributes and values that are stored are offered and taken with Tab, and what is typed next comes behind them; a
// metric is drawn as lines.
test('completion knows what is stored, and metrics are drawn', async () => {
  const page = await openPage(browser, 'traces');
  await settle(page);
  const field = page.getByLabel('TraceQL question');
  await page.evaluate(() => {
    const draw = window.requestAnimationFrame.bind(window);
    window.requestAnimationFrame = (frame) => draw(() => setTimeout(frame, 100));
  });
  await field.fill('');
  await field.pressSequentially('{ resource.service.na');
  await page.getByRole('option', { name: 'resource.service.name', exact: true }).waitFor();
  await field.press('Tab');
  await field.pressSequentially('= "ta');
  await page.getByRole('option', { name: '"tax"', exact: true }).waitFor();
  await field.press('Tab');
  await field.pressSequentially(' }');
  await field.press('Enter');
  await addressHas(page, '{ resource.service.name = "tax" }');
  await page.locator('.results tbody tr', { hasText: 'calculateTax' }).first().waitFor();
  await field.fill('{ } | quantile_over_time(duration, .99) by (resource.service.name)');
  await field.press('Enter');
  await page.getByLabel('Evidence').getByText(/^\d+ series/).waitFor();
  await page.locator('.chart-legend li', { hasText: 'tax' }).waitFor();
  await page.finish();
});

// Scenario: slow requests brushed and compared with the rest; the table beside it.
// Guarantee: the code of the difference opens beside the map, with the culprit as more; each row says what its trace costs.
test('a brush compares slow requests with the rest', async () => {
  const page = await openPage(browser, 'traces?service=web');
  await settle(page);
  await press(page, 'h', 'Enter');
  await page.locator('.choice').waitFor();
  const share = await page.locator('.results tbody tr').first().locator('.share').innerText();
  assert.ok(Number.parseFloat(share) > 80, `a slow request is nearly all on the CPU: ${share}`);
  assert.match(await page.getByLabel('Evidence').innerText(), /% of time unexplained/);
  await press(page, 'c');
  await page.locator('.flame-legend', { hasText: '+ more' }).waitFor();
  await press(page, '7');
  const row = page.locator('.fn-row.diff', { hasText: 'decodeState' });
  await row.waitFor();
  assert.match(await row.innerText(), /\+\d/);
  await page.finish();
});

// Scenario: which spans ran the culprit, from its row in the profile of its service.
// Guarantee: operations and spans with the time in it, and a way to a slow trace.
test('a function leads back to the spans that ran it', async () => {
  const page = await openPage(browser, 'profiles?service=tax&view=table');
  await page.locator('.fn-row', { hasText: CULPRIT }).click({ button: 'right' });
  await page.getByRole('menuitem', { name: 'Spans that ran this' }).click();
  const dialog = page.getByRole('dialog', { name: `Spans that ran ${CULPRIT}` });
  await dialog.getByRole('cell', { name: 'calculateTax' }).first().waitFor();
  assert.match(await dialog.innerText(), /in 240 spans/);
  await dialog.locator('tbody a').last().click();
  await addressHas(page, '#/trace/');
  await page.locator('.wf-row', { hasText: 'calculateTax' }).waitFor();
  await page.finish();
});

// Scenario: the page of explanations before anything is asked.
// Guarantee: the slowest operations are listed, and one click explains the slowest of them.
test('what is slow is one click from its explanation', async () => {
  const page = await openPage(browser, 'explain');
  await page.getByLabel('Slowest operations').locator('a', { hasText: 'web POST /api/checkout' }).click();
  await addressHas(page, 'duration >');
  const said = await page.getByLabel('Cause 1', { exact: true }).innerText();
  assert.ok(said.includes(CULPRIT), said);
  await page.finish();
});

// Scenario: a trace of twelve thousand spans; its last row; a word that stands in one attribute only; a filter by an attribute.
// Guarantee: all rows are there though attributes are not; those of the row looked at come; a word says where it looked and
// looks at all attributes when told to; a filter by an attribute reads them by itself.
test('a long trace reads attributes as they are looked at', async () => {
  const page = await openPage(browser, 'status');
  const whole = [];
  page.on('request', (request) => request.url().includes(`/api/v2/traces/${LONG_TRACE}`) && whole.push(request.url()));
  const last = (LONG_SPANS).toString(16).padStart(16, '0');
  await page.evaluate((hash) => (location.hash = hash), `#/trace/${LONG_TRACE}?span=${last}`);
  await page.locator('.wf-row[aria-selected="true"]').waitFor();
  await page.getByText(`${LONG_SPANS.toLocaleString('en-US')} spans, 1 service`).waitFor();
  await page.waitForFunction(() => !document.body.textContent.includes('is being read'));
  await page.locator('.wf-rows').focus();
  await press(page, 'Enter');
  await page.getByLabel('Details of the span').getByText(String(LONG_SPANS - 1), { exact: true }).waitFor();
  assert.deepEqual(whole, [], 'the whole trace was not asked for');
  await page.getByLabel('Filter spans').fill('odd');
  await page.getByText('0 match').waitFor();
  await page.getByText('by name, service and id').waitFor();
  assert.deepEqual(whole, [], 'a word alone does not read everything');
  const other = await openPage(browser, page.url().split('#/')[1]);
  await page.getByRole('button', { name: 'Look at attributes too' }).click();
  await page.getByText('1 match').waitFor();
  assert.equal(await page.getByText('by name, service and id').count(), 0);
  await other.getByLabel('Filter spans').fill('row.kind=odd');
  await other.getByText('1 match').waitFor();
  await other.finish();
  await page.locator(`#span-${ODD_ROW}`).or(page.locator('.wf-row', { hasText: `row ${ODD_ROW % 7}` })).first().waitFor();
  await page.finish();
});

// Scenario: the pages of one slow trace and its span, reloaded.
// Guarantee: the span that was chosen is chosen again.
test('a reload keeps the chosen span', async () => {
  const page = await openPage(browser, `trace/${slowTraces[0]}`);
  await page.locator('.wf-row', { hasText: 'charge' }).click();
  await addressHas(page, 'span=');
  await page.reload();
  await page.locator('.wf-row[aria-selected="true"]', { hasText: 'charge' }).waitFor();
  await page.finish();
});
