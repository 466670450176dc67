// One browser for the end-to-end checks. HOTSPAN names the server; the page must already be built into it.
import { chromium } from 'playwright-core';

export const origin = process.env.HOTSPAN ?? 'http://127.0.0.1:4040';

export function launch() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--no-first-run'],
  });
}

export async function newPage(browser, options = {}) {
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 }, ...options });
  page.faults = [];
  page.on('pageerror', (error) => page.faults.push(error.message));
  return page;
}

export const VIEWS = ['services', 'services?as=graph', 'traces', 'profiles', 'profiles?view=table', 'profiles?view=tree', 'profiles?view=flame', 'compare', 'explain', 'status'];

/** Fails loudly, with what was expected: the runner prints nothing else. */
export function check(condition, what) {
  if (!condition) throw new Error(`expected: ${what}`);
  console.log(`ok   ${what}`);
}
