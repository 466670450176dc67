// Flamebearer, as Pyroscope and Hotspan answer it: levels of bars, each `offset, total, self, name`, the offset counted from
// the end of the bar before; a diff doubles the first three. 64-bit integers may come as strings.
import type { Exactness } from '../api/evidence';
import type { FrameFacts, LooseNodes } from './tree';

type Cell = number | string;
type Level = readonly Cell[] | { values?: readonly Cell[] };

interface RawFlamebearer {
  names?: string[];
  levels?: Level[];
  numTicks?: Cell;
  total?: Cell;
  /** Hotspan's addition, parallel to `names`. */
  frames?: FrameFacts[];
}

export interface RawAnswer {
  flamebearer?: RawFlamebearer;
  flamegraph?: RawFlamebearer & { leftTicks?: Cell; rightTicks?: Cell };
  metadata?: { format?: string; units?: string; sampleRate?: number; name?: string };
  leftTicks?: Cell;
  rightTicks?: Cell;
  /** A cohort's diff: values are of this many requests, and each side had so many in all. */
  per_requests?: number;
  left?: { spans?: number };
  right?: { spans?: number };
  exactness?: Exactness;
  baseline_exactness?: Exactness;
}

const NOTHING: LooseNodes = {
  count: 0,
  names: [],
  facts: null,
  name: new Uint32Array(0),
  parent: new Int32Array(0),
  selfA: new Float64Array(0),
  selfB: null,
  unit: '',
};

function valuesOf(level: Level): readonly Cell[] {
  return Array.isArray(level) ? level : ((level as { values?: readonly Cell[] }).values ?? []);
}

/** Pyroscope calls nanoseconds "samples" at a rate of 1e9; people call them seconds. */
export function unitOf(answer: RawAnswer, fallback: string): string {
  const { units, sampleRate } = answer.metadata ?? {};
  if (units === 'samples' && sampleRate === 1_000_000_000) return 'nanoseconds';
  return units || fallback;
}

const scaledTicks = (ticks: Cell | undefined, factor: number) => (ticks === undefined ? undefined : Number(ticks) * factor);

export function decodeFlamebearer(answer: RawAnswer, fallbackUnit: string): LooseNodes {
  const bearer = answer.flamebearer ?? answer.flamegraph;
  const levels = (bearer?.levels ?? []).map(valuesOf);
  const names = bearer?.names ?? [];
  if (levels.length === 0 || levels[0]!.length === 0) return { ...NOTHING, unit: unitOf(answer, fallbackUnit) };
  const isDiff =
    answer.metadata?.format === 'double' ||
    answer.leftTicks !== undefined ||
    answer.flamegraph?.leftTicks !== undefined ||
    (levels[0]!.length === 7 && answer.metadata?.format !== 'single');
  const width = isDiff ? 7 : 4;
  const count = levels.reduce((sum, level) => sum + Math.floor(level.length / width), 0);

  const name = new Uint32Array(count);
  const parent = new Int32Array(count);
  const selfA = new Float64Array(count);
  const selfB = isDiff ? new Float64Array(count) : null;
  // Places on the combined axis; a bar's parent is the bar of the level above that covers it.
  const start = new Float64Array(count);
  const end = new Float64Array(count);
  let node = 0;
  let aboveFrom = 0;
  let aboveTo = 0;
  for (const level of levels) {
    const levelFrom = node;
    let edgeA = 0;
    let edgeB = 0;
    let above = aboveFrom;
    for (let c = 0; c + width <= level.length; c += width) {
      const startA = edgeA + Number(level[c]);
      edgeA = startA + Number(level[c + 1]);
      selfA[node] = Number(level[c + 2]);
      start[node] = startA;
      end[node] = edgeA;
      if (isDiff) {
        const startB = edgeB + Number(level[c + 3]);
        edgeB = startB + Number(level[c + 4]);
        selfB![node] = Number(level[c + 5]);
        start[node]! += startB;
        end[node]! += edgeB;
      }
      name[node] = Number(level[c + width - 1]);
      if (levelFrom === 0) parent[node] = -1;
      else {
        // A bar without width still belongs to the parent whose edge it touches last.
        while (above < aboveTo - 1 && (end[above]! < end[node]! || (end[above]! <= start[node]! && end[node]! > start[node]!))) above++;
        parent[node] = above;
      }
      node++;
    }
    aboveFrom = levelFrom;
    aboveTo = node;
  }
  // Back to what was measured in all: every way of comparing starts from there.
  const requestsOf = (side?: { spans?: number }) => (answer.per_requests && side?.spans ? side.spans / answer.per_requests : 1);
  const [requestsA, requestsB] = [requestsOf(answer.left), requestsOf(answer.right)];
  if (selfB && (requestsA !== 1 || requestsB !== 1)) {
    for (let i = 0; i < count; i++) {
      selfA[i]! *= requestsA;
      selfB[i]! *= requestsB;
    }
  }
  const ticksA = scaledTicks(answer.leftTicks ?? answer.flamegraph?.leftTicks, requestsA);
  const ticksB = scaledTicks(answer.rightTicks ?? answer.flamegraph?.rightTicks, requestsB);
  return {
    count,
    names,
    facts: bearer?.frames ?? null,
    name,
    parent,
    selfA,
    selfB,
    ticksA,
    ticksB,
    unit: unitOf(answer, fallbackUnit),
  };
}
