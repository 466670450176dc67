// Measures the built page in a real browser: first paint with a million nodes, frames while zooming, panning and searching,
// waterfall scrolling with a hundred thousand spans. Prints a Markdown table. Run `npm run build` first.
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { flameAnswer, traceAnswer } from './data.mjs';

const NODES = Number(process.env.NODES ?? 1_000_000);
const SPANS = Number(process.env.SPANS ?? 100_000);
const ROUNDS = Number(process.env.ROUNDS ?? 3);
const dist = new URL('../dist', import.meta.url).pathname;
const types = { js: 'text/javascript', css: 'text/css', html: 'text/html', svg: 'image/svg+xml' };

const flame = flameAnswer(NODES, 20_000);
const trace = traceAnswer(SPANS);
const server = createServer((request, response) => {
  const path = new URL(request.url, 'http://bench').pathname;
  const json = (body) => response.writeHead(200, { 'content-type': 'application/json' }).end(body);
  if (path === '/api/v1/profile') return json(flame.body);
  if (path.endsWith('/LabelValues')) return json('{"names":["million"]}');
  if (path.endsWith('/ProfileTypes')) return json('{"profileTypes":[]}');
  if (path.startsWith('/api/v2/traces/')) return json(trace.whole);
  if (/^\/api\/v1\/trace\/.*\/spans$/.test(path)) return json(trace.window(2000));
  if (/^\/api\/v1\/trace\/.*\/outline$/.test(path)) return json(trace.outline);
  if (/^\/api\/v1\/trace\/.*\/details$/.test(path)) return json('{"trace":{"resourceSpans":[]}}');
  const file = join(dist, path === '/' ? 'index.html' : path);
  if (existsSync(file)) return response.writeHead(200, { 'content-type': types[file.split('.').pop()] }).end(readFileSync(file));
  return response.writeHead(404).end();
});
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
const origin = `http://127.0.0.1:${server.address().port}`;
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--no-first-run'],
});

const quantile = (values, q) => [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * q))] ?? NaN;
const rows = [];
const report = (what, values, unit = 'ms') => rows.push([what, `${quantile(values, 0.5).toFixed(1)} ${unit}`, `${quantile(values, 0.99).toFixed(1)} ${unit}`, values.length]);

async function open(hash) {
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  page.on('pageerror', (error) => console.error('page error:', error.message));
  await page.goto(`${origin}/${hash}`, { waitUntil: 'commit' });
  return page;
}

/** Gaps between animation frames while `act` runs; the work of one frame is judged by them and by the paint measures. */
async function frames(page, act, measure) {
  await page.evaluate(() => {
    performance.clearMeasures();
    globalThis.benchFrames = [];
    let last = performance.now();
    const tick = (now) => {
      globalThis.benchFrames.push(now - last);
      last = now;
      globalThis.benchLoop = requestAnimationFrame(tick);
    };
    globalThis.benchLoop = requestAnimationFrame(tick);
  });
  await act();
  return page.evaluate((name) => {
    cancelAnimationFrame(globalThis.benchLoop);
    return { gaps: globalThis.benchFrames.slice(1), work: performance.getEntriesByName(name).map((entry) => entry.duration) };
  }, measure);
}

// CPU moves less than time does on a machine that others use: it bounds what an idle one would need.
const session = await browser.newBrowserCDPSession();
const rendererCpu = async () => (await session.send('SystemInfo.getProcessInfo')).processInfo.filter((process) => process.type === 'renderer').reduce((sum, process) => sum + process.cpuTime * 1000, 0);

const firstPaints = [];
const firstPaintCpu = [];
for (let round = 0; round < ROUNDS; round++) {
  const before = await rendererCpu();
  const page = await open('#/profiles?service=million');
  const at = await page.waitForFunction(() => performance.getEntriesByName('flame:paint')[0]?.startTime + performance.getEntriesByName('flame:paint')[0]?.duration || null, null, { timeout: 60_000, polling: 20 });
  firstPaints.push(await at.jsonValue());
  firstPaintCpu.push((await rendererCpu()) - before);
  await page.close();
}
report(`first paint, ${flame.count.toLocaleString('en-US')} nodes, ${(flame.body.length / 1e6).toFixed(0)} MB answer`, firstPaints);
report('first paint: CPU of the renderer, all threads', firstPaintCpu);

const page = await open('#/profiles?service=million');
await page.waitForFunction(() => performance.getEntriesByName('flame:paint').length > 0, null, { timeout: 60_000 });
await page.waitForTimeout(1000);
const box = await page.locator('.flame-canvas').boundingBox();
const at = { x: box.x + box.width * 0.37, y: box.y + 200 };
await page.mouse.move(at.x, at.y);

/** Events are sent from inside the page, one per frame: the driver's own round trips must not count as the page's time. */
const wheel = (count, delta, ctrl) =>
  page.evaluate(
    async ([x, y, count, delta, ctrl]) => {
      const target = document.querySelector('.flame-scroll');
      for (let i = 0; i < count; i++) {
        target.dispatchEvent(new WheelEvent('wheel', { bubbles: true, cancelable: true, clientX: x, clientY: y, deltaY: ctrl ? (i < count / 2 ? -delta : delta) : 0, deltaX: ctrl ? 0 : i < count / 2 ? delta : -delta, ctrlKey: ctrl }));
        await new Promise(requestAnimationFrame);
      }
    },
    [at.x, at.y, count, delta, ctrl],
  );
const zoom = await frames(page, () => wheel(240, 8, true), 'flame:paint');
report('zoom: paint', zoom.work);
report('zoom: frame gap', zoom.gaps);
await wheel(40, 0, true);
await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 500)));
await page.evaluate(([x, y]) => document.querySelector('.flame-scroll').dispatchEvent(new WheelEvent('wheel', { bubbles: true, cancelable: true, clientX: x, clientY: y, deltaY: -50, ctrlKey: true })), [at.x, at.y]);
const pan = await frames(page, () => wheel(240, 12, false), 'flame:paint');
report('pan: paint', pan.work);
report('pan: frame gap', pan.gaps);

await page.locator('input[type="search"][aria-label="Search in the graph"]').focus();
const search = await frames(
  page,
  async () => {
    for (const key of 'method12') {
      await page.keyboard.press(key);
      await page.waitForTimeout(60);
    }
  },
  'flame:search',
);
report('search: a slice of matching a million nodes', search.work);
report('search: until all of them are matched', await page.evaluate(() => performance.getEntriesByName('flame:search:whole').map((entry) => entry.duration)));
report('search: frame gap', search.gaps);
const memory = await page.evaluate(() => performance.memory?.usedJSHeapSize ?? 0);
rows.push(['script heap with the flame graph open', `${(memory / 1e6).toFixed(0)} MB`, '', 1]);
await page.close();

const waterfall = await open(`#/trace/${'b'.repeat(32)}`);
const opened = performance.now();
await waterfall.waitForSelector('.wf-row', { timeout: 60_000 });
rows.push([`waterfall first rows, ${SPANS.toLocaleString('en-US')} spans`, `${(performance.now() - opened).toFixed(0)} ms`, '', 1]);
await waterfall.waitForFunction(() => document.querySelector('.wf-row') && !document.body.textContent.includes('is being read'), null, { timeout: 60_000 });
rows.push([`waterfall whole, ${(trace.outline.length / 1e6).toFixed(0)} MB outline`, `${(performance.now() - opened).toFixed(0)} ms`, '', 1]);
await waterfall.waitForTimeout(500);
const scroll = await frames(
  waterfall,
  () =>
    waterfall.evaluate(async () => {
      const target = document.querySelector('.wf-rows');
      for (let i = 0; i < 300; i++) {
        // Mostly steady scrolling, now and then a jump across the trace.
        target.scrollTop = i % 50 === 49 ? Math.random() * target.scrollHeight : target.scrollTop + 110;
        await new Promise(requestAnimationFrame);
      }
    }),
  'none',
);
report('waterfall scroll: frame gap', scroll.gaps);
rows.push(['script heap with the waterfall open', `${((await waterfall.evaluate(() => performance.memory?.usedJSHeapSize ?? 0)) / 1e6).toFixed(0)} MB`, '', 1]);
await waterfall.close();
await browser.close();
server.close();

console.log('| what | median | P99 | n |\n|---|---|---|---|');
for (const row of rows) console.log(`| ${row.join(' | ')} |`);
