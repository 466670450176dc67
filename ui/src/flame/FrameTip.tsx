import { formatShare, formatValue } from '../format/units';
import { describeChange, type DiffMode, type SideSizes } from './diff';
import type { FlameTree, SideWeights } from './tree';

interface Props {
  tree: FlameTree;
  node: number;
  viewTotal: number;
  /** What one sample stands for, in the tree's unit; zero if unknown. */
  interval: number;
  weights: SideWeights;
  mode: DiffMode;
  sizes: SideSizes;
}

export function FrameTip({ tree, node, viewTotal, interval, weights, mode, sizes }: Props) {
  const name = tree.names[tree.name[node]!]!;
  const facts = tree.facts?.[tree.name[node]!];
  const total = tree.total[node]!;
  const self = tree.self[node]!;
  const { sides } = tree;
  return (
    <>
      <div className="name">{name}</div>
      {facts?.file && <div className="mono muted">{`${facts.file}${facts.line ? `:${facts.line}` : ''}`}</div>}
      <dl>
        {sides ? (
          <>
            <dt>total</dt>
            <dd>{describeChange(sides.totalA[node]! * weights.a, sides.totalB[node]! * weights.b, mode, tree.unit, sizes)}</dd>
            <dt>self</dt>
            <dd>{describeChange(sides.selfA[node]! * weights.a, sides.selfB[node]! * weights.b, mode, tree.unit, sizes)}</dd>
          </>
        ) : (
          <>
            <dt>total</dt>
            <dd>
              {formatValue(total, tree.unit)} · {formatShare(Math.min(1, total / (viewTotal || 1)))} of view · {formatShare(total / (tree.total[0] || 1))} of all
            </dd>
            <dt>self</dt>
            <dd>
              {formatValue(self, tree.unit)} · {formatShare(self / (tree.total[0] || 1))} of all
            </dd>
            {interval > 0 && (
              <>
                <dt>samples</dt>
                <dd>
                  {Math.round(total / interval).toLocaleString('en-US')} at {formatValue(interval, tree.unit)} each
                </dd>
              </>
            )}
          </>
        )}
        {facts?.module && (
          <>
            <dt>in</dt>
            <dd>{facts.module}</dd>
          </>
        )}
      </dl>
    </>
  );
}
