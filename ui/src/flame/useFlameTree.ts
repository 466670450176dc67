// Feeds answers to the worker and brings arranged trees back. Stale replies (the person moved on) are dropped.
import { useEffect, useRef, useState } from 'react';
import { FlameEngine } from './flameEngine';
import type { LoadedFlame } from './flameWorker';
import type { Transform } from './transforms';
import type { ChildOrder, FlameTree, SideWeights } from './tree';

export interface FlameTrees {
  loaded: LoadedFlame | null;
  tree: FlameTree | null;
  problem: string | null;
  engine: () => FlameEngine;
}

export function useFlameTree(bytes: ArrayBuffer, unit: string, transforms: Transform[], order: ChildOrder, weights: SideWeights): FlameTrees {
  const engineRef = useRef<FlameEngine | null>(null);
  const [loaded, setLoaded] = useState<LoadedFlame | null>(null);
  const [tree, setTree] = useState<FlameTree | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const engine = () => (engineRef.current ??= new FlameEngine());

  useEffect(() => {
    let current = true;
    setProblem(null);
    engine()
      .load(bytes, unit)
      .then(
        (next) => current && setLoaded(next),
        (cause: unknown) => current && setProblem(`The answer is not a flame graph: ${cause instanceof Error ? cause.message : String(cause)}`),
      );
    return () => {
      current = false;
    };
  }, [bytes, unit]);

  useEffect(() => {
    if (!loaded) return;
    let current = true;
    engine()
      .arrange(transforms, order, weights)
      .then((next) => current && setTree(next), (cause: unknown) => current && setProblem(String(cause)));
    return () => {
      current = false;
    };
  }, [loaded, transforms, order, weights]);

  useEffect(
    () => () => {
      engineRef.current?.close();
      engineRef.current = null;
    },
    [],
  );
  return { loaded, tree, problem, engine };
}
