// Time-ordered view: samples in the order they were taken. Neighbours with a common prefix share its frames; a gap closes them.
import { MergingBuilder } from './mergingBuilder';
import { type FlameTree, type FrameFacts, levelsOf, looksOf, type LooseNodes } from './tree';

export interface TimedSample {
  /** Nanoseconds since the epoch as text or number; only differences matter. */
  timestamp: string | number;
  value: number | string;
  stack_trace: { function: string; file?: string; line?: number }[];
  span_id?: string;
}

export interface Timeline {
  tree: FlameTree;
  /** Start of the axis, milliseconds since the epoch. */
  originMs: number;
}

function nanosSince(originText: bigint, timestamp: string | number): number {
  return Number(BigInt(Math.trunc(Number(timestamp)) === Number(timestamp) && typeof timestamp === 'number' ? Math.trunc(timestamp) : String(timestamp)) - originText);
}

/** `stack_trace` is leaf first, as pprof orders it. */
export function timeline(samples: readonly TimedSample[]): Timeline | null {
  if (samples.length === 0) return null;
  const stamped = samples.map((sample) => ({ sample, at: BigInt(typeof sample.timestamp === 'number' ? Math.trunc(sample.timestamp) : sample.timestamp) }));
  stamped.sort((x, y) => (x.at < y.at ? -1 : x.at > y.at ? 1 : 0));
  const origin = stamped[0]!.at;
  const times = stamped.map(({ sample }) => nanosSince(origin, sample.timestamp));
  const intervals = times.slice(1).map((time, index) => time - times[index]!).sort((x, y) => x - y);
  const usual = intervals[Math.floor(intervals.length / 2)] || 10_000_000;
  // Longer than three usual intervals without a sample: the thread was not seen running.
  const longest = usual * 3;

  const names: string[] = ['total'];
  const facts: FrameFacts[] = [{}];
  const nameIds = new Map<string, number>([['total', 0]]);
  const builder = new MergingBuilder(0, false, samples.length * 4);
  const starts: number[] = [0];
  const ends: number[] = [0];
  let open: number[] = [];
  stamped.forEach(({ sample }, index) => {
    const from = times[index]!;
    const until = Math.min(times[index + 1] ?? from + usual, from + longest);
    const frames = [...sample.stack_trace].reverse();
    let shared = 0;
    let parent = 0;
    while (shared < open.length && shared < frames.length && ends[open[shared]!] === from) {
      const node = open[shared]!;
      if (names[builder.nameOf(node)] !== frames[shared]!.function) break;
      parent = node;
      shared++;
    }
    open = open.slice(0, shared);
    for (const node of open) ends[node] = until;
    for (const frame of frames.slice(shared)) {
      let id = nameIds.get(frame.function);
      if (id === undefined) {
        id = names.push(frame.function) - 1;
        facts.push({ file: frame.file, line: frame.line });
        nameIds.set(frame.function, id);
      }
      parent = builder.append(parent, id);
      starts[parent] = from;
      ends[parent] = until;
      open.push(parent);
    }
    builder.addSelf(parent, until - from, 0);
    ends[0] = until;
  });
  const loose = builder.finish(names, facts, 'nanoseconds');
  return { tree: placeByTime(loose, starts, ends), originMs: Number(origin / 1_000_000n) };
}

/** Nodes were appended in preorder already; only places come from the clock instead of from sums. */
function placeByTime(loose: LooseNodes, starts: readonly number[], ends: readonly number[]): FlameTree {
  const { count } = loose;
  const depth = new Uint16Array(count);
  const subtreeEnd = new Int32Array(count);
  const pathHash = new Uint32Array(count);
  for (let i = 0; i < count; i++) {
    if (i > 0) depth[i] = depth[loose.parent[i]!]! + 1;
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
