// The two halves of a sandwich: callers grow up from the function, callees hang down from it.
import { useMemo, useState } from 'react';
import { FlameCanvas, type SceneLook } from './FlameCanvas';
import { type ValueWindow, wholeWindow } from './geometry';
import type { FlameTree } from './tree';
import type { SandwichHalves } from './useSandwich';

interface SandwichProps {
  functionName: string;
  halves: SandwichHalves | null;
  lookOf: (tree: FlameTree, growsUp: boolean, selected: number) => SceneLook;
  tip: (tree: FlameTree) => (node: number) => React.ReactNode;
  onName: (name: string) => void;
  onMenu: (name: string, x: number, y: number) => void;
}

export function SandwichStage({ functionName, halves, lookOf, tip, onName, onMenu }: SandwichProps) {
  if (!halves) return null;
  return (
    <>
      <SandwichHalf label={`callers of ${functionName}`} tree={halves.callers} growsUp lookOf={lookOf} tip={tip} onName={onName} onMenu={onMenu} />
      <SandwichHalf label={`callees of ${functionName}`} tree={halves.callees} growsUp={false} lookOf={lookOf} tip={tip} onName={onName} onMenu={onMenu} />
    </>
  );
}

function SandwichHalf({ label, tree, growsUp, lookOf, tip, onName, onMenu }: { label: string; tree: FlameTree; growsUp: boolean } & Pick<SandwichProps, 'lookOf' | 'tip' | 'onName' | 'onMenu'>) {
  const look = useMemo(() => lookOf(tree, growsUp, -1), [tree, growsUp, lookOf]);
  const [window, setWindow] = useState<{ tree: FlameTree; window: ValueWindow } | null>(null);
  const shown = useMemo(() => (window?.tree === tree ? window.window : wholeWindow(tree)), [window, tree]);
  return (
    <div className="flame-half">
      <h3 className="ellipsis">{label}</h3>
      {tree.count > 0 && (
        <FlameCanvas
          look={look}
          window={shown}
          onWindow={(next) => setWindow({ tree, window: next })}
          onNode={(node) => (node === 0 ? setWindow(null) : onName(tree.names[tree.name[node]!]!))}
          onMenu={(node, x, y) => onMenu(tree.names[tree.name[node]!]!, x, y)}
          tip={tip(tree)}
          follow={-1}
        />
      )}
    </div>
  );
}
