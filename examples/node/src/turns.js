// Which turns of the event loop belong to which request.
import { AsyncLocalStorage, createHook } from 'node:async_hooks';

const current = new AsyncLocalStorage();
const entered = [];
let recordings = 0;

// V8 stamps samples with the same clock, in microseconds.
const now = () => Number(process.hrtime.bigint() / 1000n);

const hook = createHook({
  before() {
    const recording = current.getStore();
    entered.push(recording && { recording, from: now() });
  },
  after() {
    const turn = entered.pop();
    turn?.recording.push([turn.from, now()]);
  },
});

// Runs `work`; `end()` tells the stretches of time, in order, in which it had the CPU.
export function recordTurns(work) {
  const turns = [];
  if (recordings === 0) hook.enable();
  recordings += 1;
  const from = now();
  const result = current.run(turns, work);
  // The turn in which it began: until it first waited.
  turns.push([from, now()]);
  const end = () => {
    recordings -= 1;
    if (recordings === 0) {
      hook.disable();
      entered.length = 0;
    }
    return [...turns, [entered.at(-1)?.from ?? now(), now()]].sort((one, other) => one[0] - other[0]);
  };
  return { result, end };
}

// A test for moments that come in order.
export function turnsOf(turns) {
  let at = 0;
  return (moment) => {
    while (at < turns.length && turns[at][1] < moment) at += 1;
    return at < turns.length && turns[at][0] <= moment;
  };
}
