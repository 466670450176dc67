// Decoding, transforms and layout of flame graphs, off the main thread.
import type { Exactness } from '../api/evidence';
import { decodeFlamebearer, type RawAnswer } from './flamebearer';
import { decodePacked, isPacked } from './packedFlame';
import { sandwich } from './sandwich';
import { byThread, type TimedSample, timeline, type Timeline } from './timeline';
import { applyTransforms, type Transform } from './transforms';
import { assemble, type ChildOrder, type FlameTree, type LooseNodes, type SideWeights } from './tree';

export interface LoadedFlame {
  nodes: number;
  unit: string;
  ticksA: number;
  ticksB: number;
  isDiff: boolean;
  /** What one sample stands for on average, on each side; zero where the answer does not say. A single graph has side A alone. */
  perSample: SideWeights;
  exactness: Exactness | null;
  baseline: Exactness | null;
}

export type FlameRequest =
  | { ask: 'load'; bytes: ArrayBuffer; unit: string }
  | { ask: 'arrange'; transforms: Transform[]; order: ChildOrder; weights: SideWeights }
  | { ask: 'sandwich'; transforms: Transform[]; functionName: string; weights: SideWeights }
  | { ask: 'timeline'; bytes: ArrayBuffer };

export type FlameReply = LoadedFlame | FlameTree | { callers: FlameTree; callees: FlameTree } | Timeline | null;

let base: LooseNodes | null = null;

function sum(values: Float64Array | null): number {
  let total = 0;
  for (let i = 0; values && i < values.length; i++) total += values[i]!;
  return total;
}

/** Answers are JSON and may be tens of megabytes; parsing them here keeps the page responsive. */
function parse<T>(bytes: ArrayBuffer): T {
  return JSON.parse(new TextDecoder().decode(bytes)) as T;
}

function decode(bytes: ArrayBuffer, unit: string): { answer: RawAnswer; nodes: LooseNodes } {
  if (isPacked(bytes)) return decodePacked(bytes, unit);
  const answer = parse<RawAnswer & { samples?: TimedSample[] }>(bytes);
  // Single samples instead of a graph: they know their threads.
  return { answer, nodes: answer.samples ? byThread(answer.samples, unit) : decodeFlamebearer(answer, unit) };
}

function load(bytes: ArrayBuffer, unit: string): LoadedFlame {
  const { answer, nodes } = decode(bytes, unit);
  base = nodes;
  const ticksA = base.ticksA ?? sum(base.selfA);
  const ticksB = base.ticksB ?? sum(base.selfB);
  const isDiff = base.selfB !== null;
  const meanOf = (ticks: number, samples: number | undefined) => (samples ? ticks / samples : 0);
  return {
    nodes: base.count,
    unit: base.unit,
    ticksA,
    ticksB,
    isDiff,
    perSample: { a: meanOf(ticksA, (isDiff ? answer.baseline_exactness : answer.exactness)?.samples), b: meanOf(ticksB, answer.exactness?.samples) },
    exactness: answer.exactness ?? null,
    baseline: answer.baseline_exactness ?? null,
  };
}

function arrange(transforms: Transform[], order: ChildOrder, weights: SideWeights): FlameTree {
  const loose = base ?? decodeFlamebearer({}, '');
  if (transforms.length === 0 || loose.count === 0) return assemble(loose, order, weights);
  // Merging leaves children in order of discovery; names restore one that stays comparable by eye.
  return applyTransforms(assemble(loose, 'given'), transforms, order === 'given' ? 'name' : order, weights);
}

function answerTo(request: FlameRequest): FlameReply {
  switch (request.ask) {
    case 'load':
      return load(request.bytes, request.unit);
    case 'arrange':
      return arrange(request.transforms, request.order, request.weights);
    case 'sandwich': {
      const { callers, callees } = sandwich(arrange(request.transforms, 'given', { a: 1, b: 1 }), request.functionName);
      return { callers: assemble(callers, 'weight', request.weights), callees: assemble(callees, 'weight', request.weights) };
    }
    case 'timeline': {
      const body = parse<{ samples?: TimedSample[] } | TimedSample[]>(request.bytes);
      return timeline(Array.isArray(body) ? body : (body.samples ?? []));
    }
  }
}

function buffersOf(value: unknown, found: ArrayBuffer[] = []): ArrayBuffer[] {
  if (ArrayBuffer.isView(value)) found.push(value.buffer as ArrayBuffer);
  else if (value && typeof value === 'object' && !Array.isArray(value)) Object.values(value).forEach((inner) => buffersOf(inner, found));
  return found;
}

self.onmessage = ({ data }: MessageEvent<{ id: number; request: FlameRequest }>) => {
  try {
    const reply = answerTo(data.request);
    self.postMessage({ id: data.id, reply }, { transfer: [...new Set(buffersOf(reply))] });
  } catch (cause) {
    self.postMessage({ id: data.id, problem: cause instanceof Error ? cause.message : String(cause) });
  }
};
