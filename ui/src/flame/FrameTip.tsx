import { formatShare, formatValue } from '../format/units';
import { beyondNoise, describeChange, type DiffMode, type SideSizes } from './diff';
import type { FlameTree, SideWeights } from './tree';

interface Props {
  tree: FlameTree;
  node: number;
  viewTotal: number;
  /** What one sample stands for on each side, in the tree's unit; zero if unknown. */
  perSample: SideWeights;
  weights: SideWeights;
  mode: DiffMode;
  sizes: SideSizes;
}

const countOf = (value: number, size: number) => Math.round(value / size).toLocaleString('en-US');

export function FrameTip({ tree, node, viewTotal, perSample, weights, mode, sizes }: Props) {
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
            {perSample.a > 0 && perSample.b > 0 && (
              <>
                <dt>samples</dt>
                <dd>
                  {countOf(sides.totalA[node]!, perSample.a)} → {countOf(sides.totalB[node]!, perSample.b)}
                  {beyondNoise(sides.totalA[node]!, sides.totalB[node]!, weights, perSample) ? '' : ' · may be chance'}
                </dd>
              </>
            )}
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
            {perSample.a > 0 && (
              <>
                <dt>samples</dt>
                <dd>
                  {countOf(total, perSample.a)} of {formatValue(perSample.a, tree.unit)} each on average
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
