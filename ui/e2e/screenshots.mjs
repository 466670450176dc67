// Pictures of each view in both themes for docs/, from the demo: `npm run screenshots`. HOTSPAN names a demo that runs already;
// without it one is started, and given a minute of load first.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { launch, settle } from './browser.mjs';
import { startServer } from './server.mjs';

const folder = resolve(process.argv[2] ?? join(import.meta.dirname, '../../docs/screenshots'));
const WARM_UP_MS = Number(process.env.WARM_UP_MS ?? 90_000);
/** A picture that people load with a README must not be heavy. */
const MOST_BYTES = 150_000;
const SLOW = '{ resource.service.name = "checkout" && name = "POST /api/checkout" && duration > 500ms }';

const own = process.env.HOTSPAN ? null : await startServer('demo');
const origin = process.env.HOTSPAN ?? own.origin;
if (own) {
  console.log(`the demo runs on ${origin}; ${WARM_UP_MS / 1000} s of load`);
  await new Promise((done) => setTimeout(done, WARM_UP_MS));
}
const browser = await launch();
try {
  mkdirSync(folder, { recursive: true });
  // One whose time is in code, so that there is a flame graph to see.
  const found = await (await fetch(`${origin}/api/search?limit=1&q=${encodeURIComponent('{ resource.service.name = "tax" && duration > 300ms }')}`)).json();
  const trace = found.traces?.[0]?.traceID;
  if (!trace) throw new Error(`the demo has no slow checkout yet: ${SLOW}`);
  const range = `from=${Date.now() - WARM_UP_MS - 30_000}&to=${Date.now()}`;
  const query = encodeURIComponent(SLOW);
  const views = {
    services: `services?${range}`,
    graph: `services?as=graph&${range}`,
    traces: `traces?service=checkout&${range}`,
    trace: `trace/${trace}?${range}`,
    merged: `trace/${trace}?merged=1&${range}`,
    timeline: `trace/${trace}?scope=trace&view=timeline&colour=thread&${range}`,
    profiles: `profiles?service=tax&${range}`,
    compare: `compare?service=checkout&mode=per-request&${range}`,
    explain: `explain?target=${query}&${range}`,
    status: `status?${range}`,
  };
  for (const colorScheme of ['light', 'dark']) {
    const page = await browser.newPage({ viewport: { width: 1280, height: 800 }, colorScheme });
    const session = await page.context().newCDPSession(page);
    for (const [name, hash] of Object.entries(views)) {
      await page.goto('about:blank');
      await page.goto(`${origin}/#/${hash}`);
      await settle(page);
      if (name === 'compare') await page.getByRole('button', { name: /fast half/ }).click();
      // Rates need some looks at the server; a graph that is drawn moves for a moment.
      await page.waitForTimeout(name === 'status' ? 6000 : 500);
      await settle(page);
      // The folder of this run's store says nothing to anyone.
      await page.evaluate(() => document.querySelector('.status h2 code')?.remove());
      const path = join(folder, `${name}-${colorScheme}.webp`);
      // Playwright itself knows no WebP, which is a third of a PNG here.
      const { data } = await session.send('Page.captureScreenshot', { format: 'webp', quality: 68 });
      const picture = Buffer.from(data, 'base64');
      writeFileSync(path, picture);
      console.log(`${path} ${(picture.length / 1000).toFixed(0)} kB`);
      if (picture.length > MOST_BYTES) throw new Error(`${path} is larger than ${MOST_BYTES} bytes`);
    }
    await page.close();
  }
} finally {
  await browser.close();
  await own?.stop();
}
