// Callers and callees of one function, asked of the worker whenever the graph or the function changes.
import { useEffect, useState } from 'react';
import type { FlameEngine } from './flameEngine';
import type { LoadedFlame } from './flameWorker';
import type { Transform } from './transforms';
import type { FlameTree, SideWeights } from './tree';

export interface SandwichHalves {
  callers: FlameTree;
  callees: FlameTree;
}

/** An empty name asks nothing. */
export function useSandwich(engine: () => FlameEngine, loaded: LoadedFlame | null, functionName: string, transforms: Transform[], weights: SideWeights): SandwichHalves | null {
  const [halves, setHalves] = useState<SandwichHalves | null>(null);
  useEffect(() => {
    if (!functionName || !loaded) {
      setHalves(null);
      return;
    }
    let current = true;
    void engine()
      .sandwich(transforms, functionName, weights)
      .then((next) => current && setHalves(next));
    return () => {
      current = false;
    };
    // The engine is one per view and never changes.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [functionName, loaded, transforms, weights]);
  return halves;
}
