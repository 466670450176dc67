// How one came here: the whole, each transform, the frames zoomed into. Every step leads back to itself.
import { formatValue } from '../format/units';
import type { Theme } from '../theme/theme';
import { describeChange, type DiffMode, type SideSizes } from './diff';
import { FlameLegend } from './FlameToolbar';
import { describeTransform, type Transform } from './transforms';
import { findByPath, type FlameTree, type SideWeights, stackOf } from './tree';
import type { ChangeFlame, FlameState } from './useFlameState';

/** Deeper zooms show their last frames: the nearest ones are those one goes back to. */
const MOST_FRAMES = 4;

interface Props {
  tree: FlameTree;
  state: FlameState;
  change: ChangeFlame;
  zoomTo: (node: number) => void;
  weights: SideWeights;
  mode: DiffMode;
  sizes: SideSizes;
  theme: Theme;
}

export function FlameCrumbs({ tree, state, change, zoomTo, weights, mode, sizes, theme }: Props) {
  const zoomNode = state.zoom ? findByPath(tree, parseInt(state.zoom, 16)) : -1;
  const keep = (transforms: readonly Transform[]) => change({ transforms, zoom: '', window: '' });
  const { sides } = tree;
  return (
    <div className="flame-crumbs">
      <button onClick={() => keep([])} title="All frames, no transforms">
        all {sides ? describeChange(sides.totalA[0]! * weights.a, sides.totalB[0]! * weights.b, mode, tree.unit, sizes) : formatValue(tree.total[0]!, tree.unit)}
      </button>
      {state.transforms.map((transform, index) => (
        <span key={index}>
          ›{' '}
          <button title="Back to this step" onClick={() => keep(state.transforms.slice(0, index + 1))}>
            {describeTransform(transform)}
          </button>
        </span>
      ))}
      {zoomNode > 0 &&
        stackOf(tree, zoomNode)
          .slice(1)
          .slice(-MOST_FRAMES)
          .map((node) => (
            <span key={node}>
              ›{' '}
              <button title="Zoom to this frame" onClick={() => zoomTo(node)}>
                {tree.names[tree.name[node]!]}
              </button>
            </span>
          ))}
      {state.transforms.length > 0 && (
        <button onClick={() => keep(state.transforms.slice(0, -1))} title="u">
          undo
        </button>
      )}
      <span className="grow" />
      <FlameLegend isDiff={sides !== null} colourBy={state.colourBy} theme={theme} />
    </div>
  );
}
