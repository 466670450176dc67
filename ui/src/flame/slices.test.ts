import { describe, expect, it } from 'vitest';
import { inSlices } from './slices';

/** Work that takes about this long. */
function* busyFor(milliseconds: number): Generator<void, string> {
  const until = performance.now() + milliseconds;
  while (performance.now() < until) yield;
  return 'done';
}

const slicesOf = (name: string) => performance.getEntriesByName(name).map((entry) => entry.duration);

describe('work in slices', () => {
  it('is done at once where it is short', () => {
    let result = '';
    inSlices('short', busyFor(0), (value) => (result = value));
    expect(result).toBe('done');
  });
  it('lets others run between slices where it is long', async () => {
    let others = 0;
    const timer = setInterval(() => others++, 1);
    const result = await new Promise((resolve) => inSlices('long', busyFor(60), resolve));
    clearInterval(timer);
    expect(result).toBe('done');
    expect(others).toBeGreaterThan(0);
    expect(slicesOf('long').length).toBeGreaterThan(3);
    expect(slicesOf('long:whole').length).toBe(1);
  });
  it('stops when it is given up', async () => {
    let isDone = false;
    const giveUp = inSlices('given up', busyFor(40), () => (isDone = true));
    giveUp();
    await new Promise((resolve) => setTimeout(resolve, 80));
    expect(isDone).toBe(false);
    expect(slicesOf('given up').length).toBe(1);
  });
});
