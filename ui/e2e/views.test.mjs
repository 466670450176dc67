// What each view promises: search, transforms with undo, the other shapes of a flame graph, exports, comparing, sharing, themes.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { addressHas, goTo, launch, openPage, origin, press, settle } from './browser.mjs';
import { DEEP_TRACE } from './longTrace.mjs';
import { CULPRIT, MINUTES, shop } from './shop.mjs';

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

const { slowTraces, manyReads } = shop(0);
/** When version 1.4.2 came, as a field for dates takes it. */
const releaseMs = Number(process.env.SHOP_END) - (MINUTES / 2) * 60_000;
const release = new Date(releaseMs - new Date(releaseMs).getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
const found = (page) => page.locator('.flame-bar [role="status"]');

// Scenario: the pointer rests on the small plots of the slowest service.
// Guarantee: each tells a time and its values, in words too; the plot of latencies has all three percentiles, for operations as well.
test('services show their percentiles over time', async () => {
  const page = await openPage(browser, 'services');
  const row = page.locator('tr', { hasText: 'POST /api/checkout' }).first();
  const latency = row.getByRole('img', { name: /^Latency over time: P50 at most .+, P95 at most .+, P99 at most .+ at / });
  await latency.hover();
  const tip = page.locator('.spark-tip');
  assert.match(await tip.innerText(), /\d\d:\d\d:\d\d[^]*P99 [^]*P95 [^]*P50 /);
  assert.equal(await latency.locator('path').count(), 3);
  await page.getByRole('img', { name: /^CPU per request over time: at most .+ at / }).first().hover();
  assert.match(await tip.innerText(), /CPU per request (nothing ran|[\d.]+ .?s)/);
  await page.finish();
});

// Scenario: words, a regular expression and a negation typed into the search of a flame graph.
// Guarantee: each says its share of the whole, and the table lists only what matches.
test('search finds words, expressions and what is not', async () => {
  const page = await openPage(browser, 'profiles?service=tax');
  const field = page.getByLabel('Search in the graph');
  await field.fill('lookupTaxRate');
  await found(page).waitFor();
  assert.match(await found(page).innerText(), /^95\.\d+ % of all/);
  await field.fill('/sum(Lines|Rows)$/');
  await page.waitForFunction(() => document.querySelector('.flame-bar [role="status"]')?.textContent.startsWith('4.'));
  await field.fill('tax -lookup');
  await page.waitForFunction(() => document.querySelector('.flame-bar [role="status"]')?.textContent.includes('2 frames'));
  await press(page, 'Escape');
  await field.fill('/(/');
  await page.locator('.flame-bar .error-text').waitFor();
  await page.finish();
});

// Scenario: recursion collapsed, runtime hidden, a function focused; then undone one by one.
// Guarantee: the breadcrumb tells each step, the address holds them, and undo leads back to the whole.
test('transforms are told, shared and undone', async () => {
  const page = await openPage(browser, 'profiles?service=checkout');
  await page.locator('.flame-stage').waitFor();
  const crumbs = page.locator('.flame-crumbs');
  const whole = (await crumbs.innerText()).split('\n')[0];
  await press(page, 'r');
  await addressHas(page, 'tf=collapse-all-recursion');
  await page.locator('.fn-row', { hasText: 'renderCart' }).click({ button: 'right' });
  await page.getByRole('menuitem', { name: 'Focus on function' }).click();
  await page.waitForFunction(() => document.querySelector('.flame-crumbs').textContent.includes('only shop'));
  // What is not under the focus is gone, as soon as the graph is laid out anew.
  await page.waitForFunction(() => [...document.querySelectorAll('.fn-row')].every((one) => !one.textContent.includes('walkRules')));
  const other = await openPage(browser, page.url().split('#/')[1]);
  await other.waitForFunction(() => document.querySelector('.flame-crumbs')?.textContent.includes('only shop'));
  await other.finish();
  await press(page, 'u', 'u');
  await page.locator('.fn-row', { hasText: 'walkRules' }).waitFor();
  assert.equal((await crumbs.innerText()).split('\n')[0], whole);
  await page.finish();
});

// Scenario: every transform that a menu offers, one after the other.
// Guarantee: each is told in the breadcrumb and kept in the address; the frames are what it says.
test('every transform of the menus does what it says', async () => {
  const page = await openPage(browser, 'profiles?service=checkout&view=tree');
  const crumbs = page.locator('.flame-crumbs');
  const row = (name) => page.locator('.fn-row', { hasText: name });
  await row('walkRules').first().waitFor();
  const told = async (text) => crumbs.getByText(text).waitFor();
  const ofFrame = async (frame, item) => {
    await row(frame).first().click({ button: 'right' });
    await page.getByRole('menuitem', { name: item }).click();
  };
  const ofGraph = async (item) => {
    await page.getByRole('button', { name: 'More' }).click();
    await page.getByRole('menuitem', { name: item }).click();
  };
  await row('walkRules').first().dblclick();
  await page.waitForFunction(() => [...document.querySelectorAll('.fn-row')].filter((one) => one.textContent.includes('walkRules')).length > 1);
  await ofFrame('walkRules', 'Collapse its recursion');
  await told('recursion of shop/checkout.walkRules collapsed');
  await page.waitForFunction(() => [...document.querySelectorAll('.fn-row')].filter((one) => one.textContent.includes('walkRules')).length === 1);
  await ofFrame('walkRules', 'Merge into callers');
  await row('walkRules').waitFor({ state: 'detached' });
  await ofGraph('Hide runtime and kernel');
  await told('runtime hidden');
  await row('mallocgc').waitFor({ state: 'detached' });
  await ofFrame('renderCart', 'Collapse package shop/checkout');
  await row('[shop/checkout]').waitFor();
  await press(page, 'u');
  await ofFrame('renderCart', 'Hide stacks with it');
  await told('without shop/checkout.renderCart');
  await row('renderCart').waitFor({ state: 'detached' });
  await press(page, 'u');
  await ofGraph('Own code only');
  await row('net/http').first().waitFor({ state: 'detached' });
  await ofGraph('Invert: leaves first');
  await addressHas(page, '~own-code~invert');
  await told('inverted');
  await page.finish();
});

// Scenario: keys 1 to 7 on the graph of one slow trace.
// Guarantee: flame, icicle, left-heavy, timeline by thread, sandwich, tree and table all show it.
test('one selection in seven shapes', async () => {
  const page = await openPage(browser, `trace/${slowTraces[0]}?scope=trace`);
  await page.locator('.flame-stage').waitFor();
  for (const key of ['1', '3', '2']) {
    await press(page, key);
    await page.locator('.flame-canvas').first().waitFor();
  }
  await press(page, '4');
  await page.locator('.flame-axis').waitFor();
  await page.getByRole('treeitem').first().waitFor({ state: 'attached' });
  await press(page, '7');
  await page.locator('.fn-row', { hasText: CULPRIT }).click();
  await press(page, '5');
  await page.getByText(`callers of ${CULPRIT}`).waitFor();
  await press(page, '6');
  await page.getByRole('treegrid', { name: /call tree/i }).or(page.locator('.tree-columns')).first().waitFor();
  await press(page, '2');
  await page.getByLabel('Colour by').selectOption('thread');
  await page.waitForFunction(() => [...document.querySelectorAll('[role="treeitem"]')].some((item) => /thread tax-\d/.test(item.textContent)));
  await page.finish();
});

// Scenario: each file that a flame graph can be saved as.
// Guarantee: every one holds the culprit, or is a picture of some size.
test('exports hold what is on the screen', async () => {
  const page = await openPage(browser, `trace/${slowTraces[0]}?scope=trace`);
  await page.locator('.flame-stage').waitFor();
  const save = async (name) => {
    await page.getByRole('button', { name: 'More' }).click();
    const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('menuitem', { name }).click()]);
    return readFile(await download.path());
  };
  for (const name of ['Export SVG', 'Export collapsed stacks', 'Export for speedscope']) assert.ok((await save(name)).includes(CULPRIT), name);
  const png = await save('Export PNG');
  assert.equal(png.subarray(1, 4).toString(), 'PNG');
  assert.ok(png.length > 2000);
  const pprof = await save('Export pprof');
  assert.deepEqual([...pprof.subarray(0, 2)], [0x1f, 0x8b], 'pprof is gzipped');
  await page.finish();
});

// Scenario: a trace with seventy equal reads.
// Guarantee: they are one row that unfolds; filters keep ancestors; details of a span are there.
test('a waterfall folds what repeats and finds what is asked', async () => {
  const page = await openPage(browser, `trace/${manyReads}`);
  const group = page.locator('.wf-row', { hasText: '× 70' });
  await group.waitFor();
  const folded = await page.locator('.wf-row').count();
  await group.getByRole('button', { name: 'Unfold the group' }).click();
  await page.waitForFunction((before) => document.querySelectorAll('.wf-row').length > before + 5, folded);
  await page.getByLabel('Filter spans').fill('db.system=postgresql');
  await page.getByText('70 match').waitFor();
  await page.getByLabel('Filter spans').fill('calculateTax');
  await page.getByText('1 match').waitFor();
  await page.getByLabel('Filter spans').fill('');
  await page.getByRole('button', { name: '−', exact: true }).click();
  await page.getByRole('button', { name: '4 of 5 levels' }).click();
  await page.getByRole('button', { name: 'all levels' }).waitFor();
  await page.getByRole('button', { name: 'Critical path' }).click();
  await page.waitForFunction(() => document.querySelectorAll('.wf-row').length > 3);
  await page.finish();
});

// Scenario: version 1.4.1 against 1.4.2 of tax, merged and side by side; then the fast half against the slowest.
// Guarantee: the culprit is told as more, with a sign and not by colour alone, and the table sums to the whole change;
// on request it leaves out what may be chance.
test('comparing tells what changed', async () => {
  const page = await openPage(browser, 'compare?service=tax');
  await page.getByRole('button', { name: '1.4.1 / 1.4.2' }).click();
  await page.locator('.flame-legend', { hasText: '+ more' }).waitFor();
  await page.getByRole('combobox', { name: 'By' }).selectOption('absolute');
  await press(page, '7');
  const row = page.locator('.fn-row.diff', { hasText: 'decodeState' });
  await row.waitFor();
  assert.match(await row.innerText(), /\+\d/);
  const sum = await page.locator('.fn-sum').innerText();
  const [all, listed] = [...sum.matchAll(/[+−][\d.]+ m?s/g)].map((match) => match[0]);
  assert.equal(all, listed, sum);
  assert.match(await row.innerText(), /decode\.go:379/, 'with its file and line');
  const unchanged = page.locator('.fn-row.diff', { hasText: 'sumLines' });
  await unchanged.waitFor();
  await page.getByLabel('only changes beyond sampling noise').check();
  await unchanged.waitFor({ state: 'detached' });
  await row.waitFor();
  await press(page, '2');
  await page.getByRole('button', { name: 'Side by side' }).click();
  await page.waitForFunction(() => document.querySelectorAll('.flame-canvas').length === 2);
  await page.getByRole('button', { name: 'Merged' }).click();
  await page.getByRole('button', { name: /fast half/ }).click();
  await addressHas(page, 'kind=spans');
  await page.locator('.flame-legend', { hasText: '+ more' }).waitFor();
  await page.goto(`${origin}/#/compare?service=tax&kind=spans&mode=per-request&view=table&from=${releaseMs - 300_000}&to=${releaseMs + 300_000}`);
  await row.waitFor();
  assert.match(await row.innerText(), /\+\d/, 'spans before the release against spans after it');
  await page.finish();
});

// Scenario: a view with a search and a selection, its link copied and opened by someone with dark eyes.
// Guarantee: the same numbers at a fixed time, in the reader's own theme, which t changes and a reload keeps.
test('a link shows the same to everyone, in their own theme', async () => {
  const page = await openPage(browser, 'profiles?service=tax&find=lookupTaxRate');
  await found(page).waitFor();
  const said = await found(page).innerText();
  await page.getByRole('button', { name: 'Link', exact: true }).click();
  const link = await page.evaluate(() => navigator.clipboard.readText());
  assert.match(link, /from=\d{13}&.*to=\d{13}/);
  const other = await openPage(browser, link.split('#/')[1], { colorScheme: 'dark' });
  await found(other).waitFor();
  assert.equal(await found(other).innerText(), said);
  const theme = () => other.evaluate(() => document.documentElement.dataset.theme);
  assert.equal(await theme(), 'dark');
  await press(other, 't');
  const isLight = () => document.documentElement.dataset.theme === 'light';
  await other.waitForFunction(isLight);
  await other.reload();
  await other.waitForFunction(isLight);
  await other.finish();
  await page.finish();
});

// Scenario: every view in a window as narrow as half a laptop's screen.
// Guarantee: the names of the views stand in one line, and nothing has to be scrolled sideways but what is in a pane of its own.
test('narrow windows keep everything in reach', async () => {
  const page = await openPage(browser, 'services', { viewport: { width: 700, height: 900 } });
  for (const view of ['services', 'traces', `trace/${slowTraces[0]}`, 'profiles?service=tax', 'compare?service=tax', `explain?target=${slowTraces[0]}`, 'status']) {
    await goTo(page, view);
    assert.ok((await page.getByRole('navigation', { name: 'Views' }).boundingBox()).height < 40, `${view}: names of views wrap`);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${view}: wider than the window`);
  }
  await goTo(page, 'services');
  assert.ok((await page.locator('.services td').first().boundingBox()).width >= 160, 'names of services can be read');
  await page.finish();
});

// Scenario: every view on a telephone.
// Guarantee: nothing is wider than the window, no control lies under another or outside, and all views can be reached.
test('controls stay apart on the narrowest windows', async () => {
  const page = await openPage(browser, 'services', { viewport: { width: 420, height: 800 } });
  for (const view of ['services', 'traces', `trace/${slowTraces[0]}`, 'profiles?service=tax', 'compare?service=tax&kind=spans', 'explain', `explain?target=${encodeURIComponent('{ resource.service.name = "web" && duration > 1s }')}`, 'status']) {
    await goTo(page, view);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${view}: wider than the window`);
    const covered = await page.evaluate(() =>
      [...document.querySelectorAll('.nav a, .nav button, .nav select, .bar button, .bar select, .bar input, .bar textarea')]
        .map((control) => [control, control.getBoundingClientRect()])
        .filter(([control, { left, right, top, width, height }]) => {
          const hit = document.elementFromPoint(left + width / 2, top + height / 2);
          return left < 0 || right > innerWidth || !hit || !(control.contains(hit) || hit.contains(control));
        })
        .map(([control]) => control.textContent || control.getAttribute('aria-label')),
    );
    assert.deepEqual(covered, [], `${view}: out of reach`);
  }
  await page.finish();
});

// Scenario: a service and spans with names as long as a paragraph, two hundred levels deep.
// Guarantee: each row of the waterfall has room for the span's name, and the ledger stays in its pane.
test('long names and deep traces stay readable', async () => {
  const page = await openPage(browser, `trace/${DEEP_TRACE}`);
  await page.locator('.wf-row').nth(10).waitFor();
  await settle(page);
  const places = await page.evaluate(() => [...document.querySelectorAll('.wf-row .wf-name > :last-child')].map((name) => name.getBoundingClientRect().width));
  assert.ok(places.length > 10 && places.every((width) => width >= 40), places.join(' '));
  await press(page, ...Array(12).fill('j'));
  assert.ok(await page.evaluate(() => [...document.querySelectorAll('.ledger .words > span')].every((word) => word.getBoundingClientRect().right <= innerWidth)), 'the ledger is cut off');
  await page.finish();
});

// Scenario: a time range typed by hand, given up once.
// Guarantee: its fields move nothing, Esc closes them, a range that ends before it begins can't be set, and one that can is.
test('a time range is typed without moving the page', async () => {
  const page = await openPage(browser, 'services');
  await settle(page);
  const height = async () => (await page.locator('.nav').boundingBox()).height;
  const before = await height();
  const open = () => page.getByLabel('Time range').selectOption('custom');
  await open();
  await page.getByLabel('From').waitFor();
  assert.equal(await height(), before);
  await press(page, 'Escape');
  await page.getByLabel('From').waitFor({ state: 'detached' });
  await open();
  await page.getByLabel('From').fill('2026-01-31T10:00:00');
  await page.getByLabel('To', { exact: true }).fill('2026-01-31T09:00:00');
  assert.ok(await page.getByRole('button', { name: 'Set' }).isDisabled());
  await page.getByLabel('To', { exact: true }).fill('2026-01-31T11:00:00');
  await page.getByRole('button', { name: 'Set' }).click();
  await addressHas(page, `from=${new Date('2026-01-31T10:00:00').getTime()}`);
  await page.finish();
});

// Scenario: what traces cost comes later than they do; then spans are searched again, and the server takes its time.
// Guarantee: columns stand where they will stay; the page says what it reads over what is there, which does not move.
test('reading again moves nothing', async () => {
  const page = await openPage(browser, 'status');
  let giveCosts;
  const allowed = new Promise((allow) => (giveCosts = allow));
  await page.route('**/api/v1/cohort/traces', async (route) => (await allowed, route.continue()));
  await page.goto(`${origin}/#/traces?service=web`);
  const head = page.getByRole('columnheader', { name: 'Duration' });
  const early = await head.boundingBox();
  giveCosts();
  await page.locator('.results .share').first().waitFor();
  const late = await head.boundingBox();
  assert.ok(Math.abs(early.x + early.width - late.x - late.width) <= 8, `columns moved: ${JSON.stringify([early, late])}`);
  await settle(page);
  const table = page.locator('.results');
  const before = await table.boundingBox();
  await page.route('**/api/search?*', () => undefined);
  await page.getByRole('button', { name: 'Read again' }).click();
  await page.locator('.progress', { hasText: 'Reading spans' }).waitFor();
  assert.deepEqual(await table.boundingBox(), before);
  await page.finish();
});

// Scenario: a question with a mistake, one that finds nothing, an id that is not stored, and an address that is no page.
// Guarantee: each says what is wrong and what to do next.
test('mistakes and emptiness are explained', async () => {
  const page = await openPage(browser, `traces?q=${encodeURIComponent('{ duration >> 5 }')}`);
  await page.locator('.tql-fault').waitFor();
  await page.goto(`${origin}/#/traces?q=${encodeURIComponent('{ parent.name = "checkout" }')}`);
  await page.getByText('parent.name is an attribute called “name”').waitFor();
  await page.goto(`${origin}/#/traces?q=${encodeURIComponent('{ name = "no such thing" }')}`);
  await page.getByText('No span answers this question').waitFor();
  await page.goto(`${origin}/#/trace/${'ab'.repeat(16)}`);
  await page.getByText('This trace is not stored here').waitFor();
  await page.goto(`${origin}/#/nonsense`);
  await page.getByText('There is no such page').waitFor();
  for (const view of ['services', 'traces', 'profiles', 'compare', 'explain']) {
    await page.goto(`${origin}/#/${view}?from=1000&to=2000`);
    await page.getByText(/No (spans|samples) in this time range/).waitFor();
  }
  await page.goto(`${origin}/#/services?find=nothing+of+this+name`);
  await page.getByText('No service or operation has this in its name').waitFor();
  await page.goto(`${origin}/#/services?from=1000&to=2000`);
  await page.getByRole('button', { name: 'Show the latest' }).click();
  await page.locator('td a:text-is("web")').waitFor();
  await page.finish();
});

// Scenario: the server is gone when someone reads again, and back a moment later.
// Guarantee: the page says who does not answer, once, and goes on when asked again.
test('a server that is gone is named, and found again', async () => {
  const page = await openPage(browser, 'services');
  await page.locator('td a:text-is("web")').waitFor();
  const isApi = (url) => url.pathname.startsWith('/api/');
  await page.route(isApi, (route) => route.abort());
  await page.getByRole('button', { name: 'Read again' }).click();
  const said = page.getByRole('alert');
  await said.getByText('The server does not answer').waitFor();
  assert.ok((await said.innerText()).includes(new URL(origin).host));
  await page.unroute(isApi);
  await said.getByRole('button', { name: 'Try again' }).click();
  await page.locator('td a:text-is("web")').waitFor();
  await page.finish();
});

// Scenario: the page is open while the server is updated, whose files then have other names.
// Guarantee: a view that can't be read any more says so and offers to reload the page.
test('a page older than its server says so', async () => {
  const page = await openPage(browser, 'status');
  await settle(page);
  await page.route('**/assets/CompareView*', (route) => route.fulfill({ status: 404 }));
  await page.evaluate(() => (location.hash = '#/compare'));
  await page.getByText('This part of the page could not be read').waitFor();
  await page.unroute('**/assets/CompareView*');
  await page.getByRole('button', { name: 'Reload the page' }).click();
  await page.getByText('A, baseline').first().waitFor();
  await page.finish();
});

// Scenario: an answer that takes long.
// Guarantee: the page says what it reads and for how long, and stops when told to.
test('a long question shows progress and can be cancelled', async () => {
  const page = await openPage(browser, 'status');
  await page.route('**/api/v1/profile?*', () => undefined);
  await page.goto(`${origin}/#/profiles?service=tax`);
  const progress = page.locator('.progress', { hasText: 'flame graph of tax' });
  await progress.waitFor();
  await progress.getByRole('button', { name: 'Cancel' }).click();
  await page.getByText('was stopped').waitFor();
  await page.unroute('**/api/v1/profile?*');
  await page.getByRole('button', { name: 'Read again' }).last().click();
  await page.locator('.flame-stage').waitFor();
  await settle(page);
  await page.finish();
});

// Scenario: a pprof file that the server takes long to write, and one that it refuses to.
// Guarantee: the page says what it waits for and stops when told to; a refusal is told; trying again saves the file.
test('a file that takes long can be given up and asked for again', async () => {
  const page = await openPage(browser, 'profiles?service=tax');
  await page.locator('.flame-stage').waitFor();
  const isPprof = (url) => url.searchParams.get('format') === 'pprof';
  const more = async () => {
    await page.getByRole('button', { name: 'More' }).click();
    await page.getByRole('menuitem', { name: 'Export pprof' }).click();
  };
  await page.route(isPprof, () => undefined);
  await more();
  const progress = page.locator('.progress', { hasText: 'the pprof file' });
  await progress.getByRole('button', { name: 'Cancel' }).click();
  await page.getByText('No file was saved').waitFor();
  await page.unroute(isPprof);
  await page.route(isPprof, (route) => route.fulfill({ status: 500, json: { message: 'out of disk' } }));
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.getByText('No pprof: out of disk').waitFor();
  await page.unroute(isPprof);
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Try again' }).click()]);
  assert.deepEqual([...(await readFile(await download.path())).subarray(0, 2)], [0x1f, 0x8b]);
  await page.getByText('No pprof').waitFor({ state: 'detached' });
  await page.finish();
});

// Scenario: someone asks whether the release in the middle of the time helped, and pastes the answer into a ticket.
// Guarantee: slower, by the function that the release slowed down, on the page and in the ticket alike; the link keeps it.
test('before and after a change', async () => {
  const page = await openPage(browser, `explain?target=${encodeURIComponent('{ resource.service.name = "web" && name = "POST /api/checkout" }')}`);
  await page.getByLabel('Verdict').waitFor();
  await page.getByRole('button', { name: 'before / after' }).click();
  await addressHas(page, 'before=');
  await page.getByLabel('When it changed').fill(release);
  const table = page.getByLabel('Before and after');
  await table.locator('tr', { hasText: CULPRIT }).waitFor();
  const verdict = await page.getByLabel('Verdict').locator('b').innerText();
  assert.match(verdict, /^Slower: /);
  await page.getByRole('button', { name: 'Copy as Markdown' }).click();
  const ticket = await page.evaluate(() => navigator.clipboard.readText());
  assert.ok(ticket.includes(verdict) && ticket.includes(CULPRIT), ticket);
  await page.reload();
  await table.locator('tr', { hasText: CULPRIT }).waitFor();
  assert.equal(await page.getByLabel('Verdict').locator('b').innerText(), verdict);
  await page.finish();
});
