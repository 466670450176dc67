// Long work on the main thread, a slice at a time: typing and drawing go on in between.

/** Half of a frame of 16 ms; the other half is for drawing. */
const SLICE_MS = 6;

/** Runs `work` to its end, the first slice at once; the returned function gives it up. Each slice is measured under `name`. */
export function inSlices<T>(name: string, work: Generator<void, T>, done: (result: T) => void): () => void {
  const channel = new MessageChannel();
  const began = performance.now();
  let isGivenUp = false;
  const slice = () => {
    if (isGivenUp) return;
    const from = performance.now();
    let step = work.next();
    while (!step.done && performance.now() - from < SLICE_MS) step = work.next();
    const now = performance.now();
    performance.measure(name, { start: from, end: now });
    if (!step.done) return channel.port2.postMessage(null);
    performance.measure(`${name}:whole`, { start: began, end: now });
    channel.port1.close();
    done(step.value);
  };
  channel.port1.onmessage = slice;
  slice();
  return () => {
    isGivenUp = true;
    channel.port1.close();
  };
}
