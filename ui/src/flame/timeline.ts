// Time-ordered view: samples in the order they were taken, one lane per thread, lanes one under the other. Neighbours with a common
// prefix share its frames; a gap closes them.
import { MergingBuilder } from './mergingBuilder';
import { type FlameTree, type FrameFacts, levelsOf, looksOf, type LooseNodes } from './tree';

export interface TimedSample {
  /** Nanoseconds since the epoch as text or number; only differences matter. */
  timestamp: string | number;
  value: number | string;
  /** Leaf first, as pprof orders it. */
  stack_trace: { function: string; file?: string; line?: number }[];
  span_id?: string;
  thread_name?: string;
  thread_id?: string | number;
}

export interface Timeline {
  tree: FlameTree;
  /** Start of the axis, milliseconds since the epoch. */
  originMs: number;
}

export const THREAD_PREFIX = 'thread ';

export function threadOf(sample: TimedSample): string {
  const id = sample.thread_id === undefined || sample.thread_id === null ? '' : String(sample.thread_id);
  return THREAD_PREFIX + (sample.thread_name || (id ? `#${id}` : 'unknown'));
}

const nanos = (timestamp: string | number): bigint => (typeof timestamp === 'number' ? BigInt(Math.trunc(timestamp)) : BigInt(timestamp));

function nameTable(): { names: string[]; facts: FrameFacts[]; idOf: (name: string, facts: FrameFacts) => number } {
  const names = ['total'];
  const facts: FrameFacts[] = [{}];
  const ids = new Map<string, number>([['total', 0]]);
  const idOf = (name: string, fact: FrameFacts) => {
    let id = ids.get(name);
    if (id === undefined) {
      id = names.push(name) - 1;
      facts.push(fact);
      ids.set(name, id);
    }
    return id;
  };
  return { names, facts, idOf };
}

interface Lane {
  thread: string;
  samples: { sample: TimedSample; at: number }[];
}

/** Busiest thread first. */
function lanesOf(samples: readonly TimedSample[], origin: bigint): Lane[] {
  const lanes = new Map<string, Lane>();
  for (const sample of samples) {
    const thread = threadOf(sample);
    let lane = lanes.get(thread);
    if (!lane) lanes.set(thread, (lane = { thread, samples: [] }));
    lane.samples.push({ sample, at: Number(nanos(sample.timestamp) - origin) });
  }
  for (const lane of lanes.values()) lane.samples.sort((x, y) => x.at - y.at);
  return [...lanes.values()].sort((x, y) => y.samples.length - x.samples.length || (x.thread < y.thread ? -1 : 1));
}

/** Usual distance of two samples of a thread: the shortest ones tell it best, since idle time only lengthens the others. */
function usualInterval(lanes: readonly Lane[]): number {
  const gaps = lanes.flatMap((lane) => lane.samples.slice(1).map(({ at }, index) => at - lane.samples[index]!.at)).filter((gap) => gap > 0);
  gaps.sort((x, y) => x - y);
  return gaps[Math.floor(gaps.length / 4)] || 10_000_000;
}

export function timeline(samples: readonly TimedSample[]): Timeline | null {
  const timed = samples.filter((sample) => sample.timestamp !== undefined && sample.timestamp !== null && sample.timestamp !== '' && Number(sample.timestamp) > 0);
  if (timed.length === 0) return null;
  const origin = timed.reduce((least, sample) => (nanos(sample.timestamp) < least ? nanos(sample.timestamp) : least), nanos(timed[0]!.timestamp));
  const lanes = lanesOf(timed, origin);
  const usual = usualInterval(lanes);
  // Longer than three usual intervals without a sample: the thread was not seen running.
  const longest = usual * 3;

  const { names, facts, idOf } = nameTable();
  const builder = new MergingBuilder(0, false, timed.length * 4);
  const starts: number[] = [0];
  const ends: number[] = [0];
  const levels: number[] = [0];
  let laneTop = 1;
  for (const lane of lanes) {
    const head = builder.append(0, idOf(lane.thread, { kind: 'thread' }));
    starts[head] = lane.samples[0]!.at;
    levels[head] = laneTop;
    let deepest = 0;
    let open: number[] = [];
    lane.samples.forEach(({ sample, at: from }, index) => {
      const until = Math.min(lane.samples[index + 1]?.at ?? from + usual, from + longest);
      const frames = [...sample.stack_trace].reverse();
      let shared = 0;
      while (shared < open.length && shared < frames.length && ends[open[shared]!] === from && names[builder.nameOf(open[shared]!)] === frames[shared]!.function) shared++;
      open = open.slice(0, shared);
      for (const node of open) ends[node] = until;
      let parent = open.at(-1) ?? head;
      for (const frame of frames.slice(shared)) {
        parent = builder.append(parent, idOf(frame.function, { file: frame.file, line: frame.line }));
        starts[parent] = from;
        ends[parent] = until;
        open.push(parent);
        levels[parent] = laneTop + open.length;
      }
      deepest = Math.max(deepest, open.length);
      builder.addSelf(parent, until - from, 0);
      ends[head] = until;
    });
    ends[0] = Math.max(ends[0]!, ends[head]!);
    // An empty row keeps two lanes apart.
    laneTop += deepest + 2;
  }
  const loose = builder.finish(names, facts, 'nanoseconds');
  return { tree: placeByTime(loose, starts, ends, levels), originMs: Number(origin / 1_000_000n) };
}

/** The same samples added up, under one frame per thread: the flame graph that is coloured by thread. */
export function byThread(samples: readonly TimedSample[], unit: string): LooseNodes {
  const { names, facts, idOf } = nameTable();
  const builder = new MergingBuilder(0, false, samples.length);
  for (const sample of samples) {
    let node = builder.child(0, idOf(threadOf(sample), { kind: 'thread' }));
    for (let frame = sample.stack_trace.length - 1; frame >= 0; frame--) {
      const { function: name, file, line } = sample.stack_trace[frame]!;
      node = builder.child(node, idOf(name, { file, line }));
    }
    builder.addSelf(node, Number(sample.value), 0);
  }
  return builder.finish(names, facts, unit);
}

/** Nodes were appended in preorder already; only places come from the clock and the lanes instead of from sums. */
function placeByTime(loose: LooseNodes, starts: readonly number[], ends: readonly number[], rows: readonly number[]): FlameTree {
  const { count } = loose;
  const depth = Uint16Array.from(rows);
  const subtreeEnd = new Int32Array(count);
  const pathHash = new Uint32Array(count);
  for (let i = 0; i < count; i++) {
    pathHash[i] = i;
    subtreeEnd[i] = i + 1;
  }
  for (let i = count - 1; i > 0; i--) {
    const parent = loose.parent[i]!;
    if (subtreeEnd[i]! > subtreeEnd[parent]!) subtreeEnd[parent] = subtreeEnd[i]!;
  }
  const levels = levelsOf(depth);
  const start = Float64Array.from(starts);
  const total = Float64Array.from(ends, (end, i) => end - starts[i]!);
  return {
    count,
    names: loose.names,
    facts: loose.facts,
    name: loose.name,
    parent: loose.parent,
    depth,
    total,
    self: loose.selfA,
    start,
    subtreeEnd,
    pathHash,
    sides: null,
    unit: loose.unit,
    ...looksOf(loose.names, loose.facts),
    ...levels,
    levelName: Uint32Array.from(levels.levelNodes, (node) => loose.name[node]!),
  };
}
