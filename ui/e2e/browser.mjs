// One browser for the end-to-end checks. HOTSPAN names the server; the page must already be built into it.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { chromium } from 'playwright-core';

export const origin = process.env.HOTSPAN ?? 'http://127.0.0.1:4040';

const INSTALLED = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

export function launch() {
  const executablePath = process.env.CHROMIUM ?? INSTALLED.find((path) => existsSync(path));
  if (!executablePath) throw new Error(`no browser: install Debian's chromium (apt-get install chromium), or name one in CHROMIUM`);
  return chromium.launch({
    executablePath,
    args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--no-first-run'],
  });
}

/** A page of its own window. Script errors on it are kept, and fail the test when it is closed. */
export async function openPage(browser, hash, { from = origin, ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
  await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: from });
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  const faults = [];
  page.on('pageerror', (error) => faults.push(error.message));
  await page.goto(`${from}/#/${hash}`);
  page.finish = async () => {
    await context.close();
    assert.deepEqual(faults, [], 'no script error on the way');
  };
  return page;
}

/** Waits until no answer is on its way, nothing is being laid out, and it stays so: one answer may lead to the next question. */
export async function settle(page) {
  await page.evaluate(async () => {
    const isBusy = () => !document.querySelector('main') || document.querySelector('[aria-busy="true"], .progress') !== null;
    for (let calm = 0; calm < 6; calm = isBusy() ? 0 : calm + 1) await new Promise(requestAnimationFrame);
  });
}

/** Goes to another view of the same page, as a link does. */
export async function goTo(page, hash) {
  await page.evaluate((next) => (location.hash = next), `#/${hash}`);
  await settle(page);
}

/** Presses keys one by one, as a person would. */
export async function press(page, ...keys) {
  for (const key of keys) {
    await page.keyboard.press(key);
    await page.waitForTimeout(60);
  }
}

/** Waits until the address says so. */
export async function addressHas(page, text) {
  await page.waitForFunction((wanted) => decodeURIComponent(location.hash.replaceAll('+', ' ')).includes(wanted), text);
}
