// Flamebearer, as Pyroscope and Hotspan answer it: levels of bars, each `offset, total, self, name`, the offset counted from
// the end of the bar before; a diff doubles the first three. 64-bit integers may come as strings.
import type { Exactness } from '../api/evidence';
import { flatten, type JsonLevel, type LevelCells } from './levelCells';
import type { FrameFacts, LooseNodes } from './tree';

type Cell = number | string;

interface RawFlamebearer {
  names?: string[];
  /** Null where they were cut out of the answer and read apart. */
  levels?: JsonLevel[] | null;
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

/** Pyroscope calls nanoseconds "samples" at a rate of 1e9; people call them seconds. */
function unitOf(answer: RawAnswer, fallback: string): string {
  const { units, sampleRate } = answer.metadata ?? {};
  if (units === 'samples' && sampleRate === 1_000_000_000) return 'nanoseconds';
  return units || fallback;
}

const scaledTicks = (ticks: Cell | undefined, factor: number) => (ticks === undefined ? undefined : Number(ticks) * factor);

export function decodeFlamebearer(answer: RawAnswer, fallbackUnit: string, cut: LevelCells | null = null): LooseNodes {
  const bearer = answer.flamebearer ?? answer.flamegraph;
  const { cells, ends } = bearer?.levels === null && cut ? cut : flatten(bearer?.levels ?? []);
  const names = bearer?.names ?? [];
  if (!ends[0]) return { ...NOTHING, unit: unitOf(answer, fallbackUnit) };
  const isDiff =
    answer.metadata?.format === 'double' ||
    answer.leftTicks !== undefined ||
    answer.flamegraph?.leftTicks !== undefined ||
    (ends[0] === 7 && answer.metadata?.format !== 'single');
  const width = isDiff ? 7 : 4;
  const count = ends.reduce((sum, end, level) => sum + Math.floor((end - (ends[level - 1] ?? 0)) / width), 0);

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
  for (let level = 0; level < ends.length; level++) {
    const levelFrom = node;
    let edgeA = 0;
    let edgeB = 0;
    let above = aboveFrom;
    const levelEnd = ends[level]!;
    for (let c = ends[level - 1] ?? 0; c + width <= levelEnd; c += width) {
      const startA = edgeA + cells[c]!;
      edgeA = startA + cells[c + 1]!;
      selfA[node] = cells[c + 2]!;
      start[node] = startA;
      end[node] = edgeA;
      if (isDiff) {
        const startB = edgeB + cells[c + 3]!;
        edgeB = startB + cells[c + 4]!;
        selfB![node] = cells[c + 5]!;
        start[node]! += startB;
        end[node]! += edgeB;
      }
      name[node] = cells[c + width - 1]!;
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
