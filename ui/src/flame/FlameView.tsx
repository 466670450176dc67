// The flame graph with everything around it. Used by every view; its state lives in the URL.
import './flame.css';
import { useCallback, useDeferredValue, useEffect, useId, useMemo, useRef, useState } from 'react';
import { useAnswer } from '../api/useAnswer';
import { Menu, type MenuItem } from '../app/Menu';
import { useElementSize } from '../app/useElementSize';
import { Empty, Failure, Progress } from '../app/Waiting';
import { type KeyBinding, useKeys } from '../keys/keyLayer';
import { useTheme } from '../theme/theme';
import { diffColours, flamePalette, nameColours, threadColours } from './colours';
import { type DiffMode, type SideSizes, weightsFor } from './diff';
import { FlameCanvas, ROW_HEIGHT, type SceneLook } from './FlameCanvas';
import { FlameMinimap } from './FlameMinimap';
import { FlameCrumbs } from './FlameCrumbs';
import { FlameToolbar } from './FlameToolbar';
import type { LoadedFlame } from './flameWorker';
import { download } from './exports';
import { frameMenu } from './frameMenu';
import { FrameTip } from './FrameTip';
import { FunctionTable } from './FunctionTable';
import { CallTree } from './CallTree';
import { graphMenu } from './graphMenu';
import { windowOf } from './geometry';
import { SandwichStage } from './SandwichStage';
import { SourceLines } from './SourceLines';
import { SpansOfFunction } from './SpansOfFunction';
import { TimelineAxis } from './TimelineAxis';
import { neighbour, TreeMirror } from './TreeMirror';
import { type TimedSource, useTimedSamples, useTimeline } from './timedSamples';
import type { Transform } from './transforms';
import { findByPath, type FlameTree, heaviestNamed, levelCount } from './tree';
import { FLAME_VIEWS, type FlameViewName, useFlameState } from './useFlameState';
import { useFlameTree } from './useFlameTree';
import { useFlameWindow } from './useFlameWindow';
import { useSandwich } from './useSandwich';
import { useSearch } from './useSearch';

export interface FlameViewProps {
  bytes: ArrayBuffer;
  unit: string;
  title: string;
  prefix?: string;
  diffMode?: DiffMode;
  sizes?: Partial<SideSizes>;
  /** Single samples with times and threads; without them there is no timeline and no colour by thread. */
  timed?: TimedSource;
  /** The whole of it, with addresses and labels, as a file: only the server can write that. */
  pprof?: (signal: AbortSignal) => Promise<ArrayBuffer>;
  onLoaded?: (loaded: LoadedFlame) => void;
  /** Why there may be no samples, and what to try. */
  whenEmpty?: string;
  /** A second graph on the page leaves the keys to the first. */
  keys?: boolean;
}

/** Toolbar, breadcrumb and minimap together; and the least height in which a table is of use. */
const CHROME_HEIGHT = 104;
const LEAST_TABLE = 140;

const NO_SAMPLES_OF_SPANS = 'The selection holds no sample of this type. It may be shorter than the sampling interval, not profiled, or its samples carry no span id. A wider scope (trace, process) or another type may show more.';

export function FlameView({ bytes, unit, title, prefix = '', diffMode: wantedMode = 'share', sizes: knownSizes, timed, pprof, onLoaded, whenEmpty = NO_SAMPLES_OF_SPANS, keys = true }: FlameViewProps) {
  const theme = useTheme();
  const id = useId();
  const [state, change] = useFlameState(prefix);
  const [loadedSizes, setLoadedSizes] = useState<SideSizes>({ ticksA: 1, ticksB: 1 });
  const sizes = useMemo<SideSizes>(() => ({ ...loadedSizes, ...knownSizes }), [loadedSizes, knownSizes]);
  // A share of nothing is not a number: with one side empty only absolute values mean something.
  const emptySide = loadedSizes.ticksA === 0 ? 'A' : loadedSizes.ticksB === 0 ? 'B' : null;
  const diffMode = emptySide ? 'absolute' : wantedMode;
  // By value, not by object: a new object would lay out a million nodes again for nothing.
  const weightB = weightsFor(diffMode, sizes)?.b ?? 1;
  const weights = useMemo(() => ({ a: 1, b: weightB }), [weightB]);
  const order = state.view === 'left-heavy' || state.view === 'tree' ? 'weight' : 'given';
  const isTimeline = state.view === 'timeline' && timed !== undefined;
  const wantsThreads = state.colourBy === 'thread' && timed !== undefined;
  const singles = useTimedSamples(timed, isTimeline || wantsThreads);
  const { loaded, tree: arranged, problem, engine } = useFlameTree(wantsThreads && singles.value ? singles.value : bytes, unit, state.transforms, order, weights);
  const { timeline, problem: timelineProblem } = useTimeline(engine, singles.value, isTimeline);
  const halves = useSandwich(engine, loaded, state.view === 'sandwich' ? state.functionName : '', state.transforms, weights);
  const [saves, setSaves] = useState(0);
  const file = useAnswer(saves > 0 && pprof ? `pprof|${saves}` : null, async (signal) => download(`${title}.pb.gz`, new Blob([await pprof!(signal)])));
  const [menu, setMenu] = useState<{ x: number; y: number; title: string; items: MenuItem[] } | null>(null);
  const [spansOf, setSpansOf] = useState<string | null>(null);
  const [source, setSource] = useState<{ file: string; line: number; functionName: string } | null>(null);
  const [hit, setHit] = useState(0);
  const searchField = useRef<HTMLInputElement>(null);
  const stage = useRef<HTMLDivElement>(null);
  const section = useRef<HTMLElement>(null);
  const { height: sectionHeight } = useElementSize(section);
  const tree = isTimeline ? (timeline?.tree ?? null) : arranged;

  useEffect(() => {
    if (!loaded) return;
    if (loaded.isDiff) setLoadedSizes((before) => (before.ticksA === loaded.ticksA && before.ticksB === loaded.ticksB ? before : { ticksA: loaded.ticksA, ticksB: loaded.ticksB }));
    onLoaded?.(loaded);
  }, [loaded, onLoaded]);

  const find = useDeferredValue(state.find);
  const search = useSearch(tree, find);
  const palette = useMemo(() => flamePalette(theme), [theme]);
  const colourBy = state.colourBy;
  const lookOf = useCallback(
    (of: FlameTree, growsUp: boolean, selectedNode: number): SceneLook => {
      const nameColour = nameColours(of, colourBy, theme);
      const nodeColour = of.sides ? diffColours(of, weights, theme) : colourBy === 'thread' ? threadColours(of, nameColour, theme) : null;
      return { tree: of, growsUp, nameColour, nodeColour, weights, search: null, selectedName: -1, selectedNode, palette };
    },
    [colourBy, theme, weights, palette],
  );
  const selectedNode = useMemo(() => (tree && state.selected && !isTimeline ? findByPath(tree, parseInt(state.selected, 16)) : -1), [tree, state.selected, isTimeline]);
  const base = useMemo(() => (tree && tree.count > 0 ? lookOf(tree, state.view === 'flame', -1) : null), [tree, lookOf, state.view]);
  const selectedName = useMemo(() => (tree && state.functionName ? tree.names.indexOf(state.functionName) : -1), [tree, state.functionName]);
  const look = useMemo<SceneLook | null>(() => base && { ...base, search, selectedNode, selectedName }, [base, search, selectedNode, selectedName]);

  const { shown: shownWindow, move: onWindow } = useFlameWindow(tree, state, change, isTimeline);

  const hashOf = (node: number) => tree!.pathHash[node]!.toString(16);
  const zoomTo = (node: number) => {
    if (!tree) return;
    if (isTimeline) onWindow(windowOf(tree, node));
    else change({ zoom: node > 0 ? hashOf(node) : '', window: '', selected: hashOf(node), functionName: node > 0 ? tree.names[tree.name[node]!]! : '' });
  };
  const selectNode = (node: number) => tree && !isTimeline && change({ selected: hashOf(node), functionName: tree.names[tree.name[node]!]! }, 'replace');
  const addTransform = (transform: Transform) => change({ transforms: [...state.transforms, transform], zoom: '', window: '' });
  const openMenu = (functionName: string, node: number, x: number, y: number) =>
    tree &&
    setMenu({
      x,
      y,
      title: functionName,
      items: frameMenu(tree, functionName, node, {
        add: addTransform,
        sandwich: (name) => change({ view: 'sandwich', functionName: name }),
        zoom: zoomTo,
        spansOf: setSpansOf,
        sourceOf: (file, line) => setSource({ file, line, functionName }),
      }),
    });
  const stepHit = (direction: 1 | -1) => {
    if (!search || search.hits.length === 0) return;
    const next = (hit + direction + search.hits.length) % search.hits.length;
    setHit(next);
    selectNode(search.hits[next]!);
  };
  useEffect(() => setHit(0), [search]);
  const saved = () => ({ title, tree: tree!, look, window: shownWindow, canvas: () => stage.current?.querySelector<HTMLCanvasElement>('.flame-canvas'), savePprof: pprof && (() => setSaves((count) => count + 1)) });
  const openMore = (x: number, y: number) => tree && setMenu({ x, y, title: 'Graph', items: graphMenu(saved(), addTransform) });

  const current = tree ? Math.max(0, selectedNode >= 0 ? selectedNode : state.zoom ? findByPath(tree, parseInt(state.zoom, 16)) : heaviestNamed(tree, selectedName)) : 0;
  const undo = () => change({ transforms: state.transforms.slice(0, -1), zoom: '', window: '' });
  const bindings: KeyBinding[] = [
    ...FLAME_VIEWS.map((view: FlameViewName, index) => ({ key: String(index + 1), does: view, run: () => change({ view }) })),
    { key: 's', does: 'search in the graph', run: () => searchField.current?.select() },
    { key: 'n', does: 'next hit', run: () => stepHit(1) },
    { key: 'N', does: 'previous hit', run: () => stepHit(-1) },
    { key: 'u', does: 'undo transform', run: undo },
    { key: 'm', does: 'menu of the selected frame', run: () => {
        const bounds = stage.current?.getBoundingClientRect();
        if (tree && bounds && current > 0) openMenu(tree.names[tree.name[current]!]!, current, bounds.left + 60, bounds.top + 40);
      } },
    { key: 'l', does: 'source of the selected frame', run: () => {
        const facts = tree?.facts?.[tree.name[current]!];
        if (source) setSource(null);
        else if (tree && facts?.file) setSource({ file: facts.file, line: facts.line ?? 1, functionName: tree.names[tree.name[current]!]! });
      } },
    { key: 'r', does: 'collapse recursion', run: () => addTransform({ do: 'collapse-all-recursion' }) },
    { key: 'i', does: 'invert', run: () => addTransform({ do: 'invert' }) },
    { key: '0', does: 'whole graph', run: () => change({ zoom: '', window: '' }) },
  ];
  useKeys('Flame graph', keys ? bindings : []);

  if (problem) return <Empty title="This flame graph cannot be shown">{problem}</Empty>;
  if (isTimeline && (timelineProblem || singles.error)) {
    return (
      <Empty title="No timeline">
        {singles.error ? <Failure error={singles.error} what="the single samples" retry={singles.retry} /> : <p>{timelineProblem}</p>}
        <button onClick={() => change({ view: 'icicle' })}>Back to the icicle</button>
      </Empty>
    );
  }
  if (!tree || !loaded) {
    return (
      <section ref={section} className="flame" aria-busy="true">
        <Progress what="the single samples" answer={singles} />
      </section>
    );
  }
  if (tree.count === 0 || tree.total[0] === 0) {
    return (
      <Empty title={state.transforms.length > 0 ? 'Nothing is left after the transforms' : 'No samples here'}>
        {state.transforms.length > 0 ? (
          <button onClick={undo}>Undo the last one</button>
        ) : (
          <p>{whenEmpty}</p>
        )}
      </Empty>
    );
  }
  const tip = (of: FlameTree) => (node: number) => (
    <FrameTip tree={of} node={node} viewTotal={shownWindow ? shownWindow.to - shownWindow.from : 0} perSample={loaded.perSample} weights={weights} mode={diffMode} sizes={sizes} />
  );
  const functions = (
    <FunctionTable
      tree={tree}
      weights={weights}
      search={search}
      perSample={loaded.perSample}
      mode={diffMode}
      sizes={sizes}
      selected={state.functionName}
      onSelect={(name) => change({ functionName: name, selected: '' }, 'replace')}
      onOpen={(name) => change({ view: 'sandwich', functionName: name })}
      onMenu={(name, x, y) => openMenu(name, -1, x, y)}
    />
  );
  const isGraph = state.view === 'flame' || state.view === 'icicle' || state.view === 'left-heavy' || state.view === 'timeline';
  // A shallow graph leaves room: the top functions stand under it, instead of nothing.
  const graphHeight = levelCount(tree) * ROW_HEIGHT + 4;
  const hasRoom = isGraph && !isTimeline && source === null && sectionHeight - graphHeight - CHROME_HEIGHT >= LEAST_TABLE;
  return (
    <section ref={section} className="flame" aria-label={title}>
      <FlameToolbar state={state} change={change} tree={tree} search={search} hit={hit} stepHit={stepHit} searchField={searchField} hasTimeline={timed !== undefined} openMore={openMore} />
      <FlameCrumbs tree={tree} state={state} change={change} zoomTo={zoomTo} weights={weights} mode={diffMode} sizes={sizes} theme={theme} />
      <Progress what="the single samples" answer={singles} />
      <Progress what="the pprof file" answer={file} />
      {file.error && (
        <p className="flame-note" role="alert">
          {file.error.kind === 'cancelled' ? 'No file was saved: cancelled.' : `No pprof: ${file.error.message}`} <button onClick={file.retry}>Try again</button> <button onClick={() => setSaves(0)}>Close</button>
        </p>
      )}
      {emptySide && loaded.isDiff && (
        <p className="flame-note" role="status">
          Side {emptySide} has no samples: what follows is the other side alone, in absolute values. Choose another time or other labels for {emptySide}.
        </p>
      )}
      {state.view === 'sandwich' && !state.functionName && (
        <p className="flame-note plain" role="status">
          Which function? Its callers will stand above, its callees below.
        </p>
      )}
      {(state.view === 'table' || (state.view === 'sandwich' && !state.functionName)) && functions}
      {state.view === 'tree' && <CallTree tree={tree} search={search} selected={selectedNode} onSelect={selectNode} onMenu={(node, x, y) => openMenu(tree.names[tree.name[node]!]!, node, x, y)} />}
      {state.view === 'sandwich' && state.functionName && (
        <SandwichStage functionName={state.functionName} halves={halves} lookOf={lookOf} tip={tip} onName={(name) => change({ functionName: name })} onMenu={(name, x, y) => openMenu(name, -1, x, y)} />
      )}
      {look && shownWindow && isGraph && (
        <>
          <FlameMinimap look={base!} window={shownWindow} onWindow={onWindow} />
          <div
            ref={stage}
            className="flame-stage"
            style={hasRoom ? { flex: 'none', height: graphHeight } : undefined}
            role="tree"
            tabIndex={0}
            aria-label={`${title}, ${tree.count.toLocaleString('en-US')} frames. Arrows walk, Enter zooms.`}
            aria-activedescendant={`${id}-${current}`}
            onKeyDown={(event) => {
              if (event.key === 'Enter') zoomTo(current);
              else if (event.key === 'Escape' && (state.zoom || state.window)) change({ zoom: '', window: '' });
              else {
                const next = neighbour(tree, current, event.key, state.view === 'flame');
                if (!event.key.startsWith('Arrow')) return;
                if (next >= 0) selectNode(next);
              }
              event.preventDefault();
              event.stopPropagation();
            }}
          >
            <TreeMirror tree={tree} node={Math.min(current, tree.count - 1)} id={id} />
            <FlameCanvas look={look} window={shownWindow} onWindow={onWindow} onNode={zoomTo} onMenu={(node, x, y) => openMenu(tree.names[tree.name[node]!]!, node, x, y)} tip={tip(tree)} follow={selectedNode} />
          </div>
          {isTimeline && timeline && <TimelineAxis originMs={timeline.originMs} window={shownWindow} />}
          {hasRoom && functions}
        </>
      )}
      {menu && <Menu {...menu} close={() => setMenu(null)} />}
      {source && <SourceLines {...source} close={() => setSource(null)} />}
      {spansOf && <SpansOfFunction name={spansOf} close={() => setSpansOf(null)} />}
    </section>
  );
}
