// The waterfall: only visible rows exist, so a hundred thousand spans scroll like a hundred.
import './waterfall.css';
import { type ReactNode, useCallback, useEffect, useMemo, useRef, useState } from 'react';
import type { SpanProfileFacts } from '../api/profiles';
import { useElementSize } from '../app/useElementSize';
import { counted, formatDuration } from '../format/units';
import { useKeys } from '../keys/keyLayer';
import { serviceColours } from '../theme/evenPalette';
import { useTheme } from '../theme/theme';
import { criticalPath } from './criticalPath';
import { groupSiblings, indentOf, visibleRows } from './rows';
import type { DetailsOfSpans } from './spanDetails';
import { SpanDrawer } from './SpanDrawer';
import { filterSpans } from './spanFilter';
import { clampTime, timeTicks, type TimeWindow } from './TimeWindow';
import type { TraceModel } from './traceModel';
import { WaterfallBar } from './WaterfallBar';
import { WaterfallMinimap } from './WaterfallMinimap';
import { WaterfallLegend } from './WaterfallLegend';
import { GroupRow, SpanRow } from './WaterfallRow';

const ROW = 22;
const DRAWER = 240;
const SPARE = 8;
/** Rows that stay this long are being looked at. */
const REST_MS = 120;
/** Minimap, filter bar, axis and legend. */
const CHROME = 124;
/** As the sheet has it: --label. */
const namesWidth = (whole: number) => Math.min(420, Math.max(180, whole * 0.38));

interface Props {
  trace: TraceModel;
  details: DetailsOfSpans;
  facts: Readonly<Record<string, SpanProfileFacts>> | null;
  selected: number;
  onSelect: (span: number) => void;
  filter: string;
  /** Reads the attributes of all spans; null where they are here. */
  readAttributes: (() => void) | null;
  onFilter: (text: string) => void;
}

export function Waterfall({ trace, details, facts, selected, onSelect, filter, onFilter, readAttributes }: Props) {
  const theme = useTheme();
  const scroller = useRef<HTMLDivElement>(null);
  const filterField = useRef<HTMLInputElement>(null);
  const { height } = useElementSize(scroller);
  const frame = useRef<HTMLDivElement>(null);
  const { height: wholeHeight, width: wholeWidth } = useElementSize(frame);
  const [top, setTop] = useState(0);
  const [window, setWindow] = useState<TimeWindow>({ from: 0, to: trace.totalNs });
  const [collapsed, setCollapsed] = useState<ReadonlySet<number>>(new Set());
  const [openGroups, setOpenGroups] = useState<ReadonlySet<number>>(new Set());
  const [maxDepth, setMaxDepth] = useState(Infinity);
  const [onlyMatches, setOnlyMatches] = useState(true);
  const [onlyCritical, setOnlyCritical] = useState(false);
  const [drawerFor, setDrawerFor] = useState(-1);
  const [groupSelected, setGroupSelected] = useState(0);
  const [brush, setBrush] = useState<{ from: number; to: number } | null>(null);

  const grouping = useMemo(() => groupSiblings(trace), [trace]);
  const path = useMemo(() => criticalPath(trace), [trace]);
  const matched = useMemo(() => filterSpans(trace, filter), [trace, filter]);
  const deepest = useMemo(() => trace.depth.reduce((most, depth) => Math.max(most, depth), 0), [trace]);
  const colours = useMemo(() => serviceColours(trace.services, theme), [trace, theme]);
  const keep = useMemo(() => {
    if (onlyCritical) return Uint8Array.from({ length: trace.count }, (_, span) => (path.pieces.has(span) && (!matched || matched[span]) ? 1 : 0));
    return onlyMatches ? matched : null;
  }, [onlyCritical, onlyMatches, matched, path, trace.count]);
  const rows = useMemo(() => visibleRows(trace, grouping, { collapsed, openGroups, maxDepth, keep, grouped: true }), [trace, grouping, collapsed, openGroups, maxDepth, keep]);
  const hasFacts = facts !== null && Object.keys(facts).length > 0;
  const matches = useMemo(() => (matched ? matched.reduce((sum, hit) => sum + hit, 0) : 0), [matched]);

  const selectedRow = useMemo(() => rows.indexOf(groupSelected < 0 ? groupSelected : selected), [rows, selected, groupSelected]);
  // Few rows leave room: the details of the selected span then stand below them, without being asked for.
  const isDocked = rows.length * ROW + DRAWER + CHROME <= wholeHeight;
  const drawerRow = drawerFor >= 0 && !isDocked ? rows.indexOf(drawerFor) : -1;
  const yOf = (row: number) => row * ROW + (drawerRow >= 0 && row > drawerRow ? DRAWER : 0);
  const totalHeight = rows.length * ROW + (drawerRow >= 0 ? DRAWER : 0);

  // A span chosen elsewhere (a link, the URL, a key) may be folded away: unfold what hides it.
  useEffect(() => {
    if (selected < 0) return;
    setGroupSelected(0);
    const ancestors = new Set<number>();
    const groups = new Set<number>();
    for (let span = selected; span >= 0; span = trace.parent[span]!) {
      if (span !== selected) ancestors.add(span);
      if (grouping.groupOf[span]! >= 0) groups.add(grouping.groupOf[span]!);
    }
    setCollapsed((before) => ([...before].some((span) => ancestors.has(span)) ? new Set([...before].filter((span) => !ancestors.has(span))) : before));
    setOpenGroups((before) => ([...groups].every((group) => before.has(group)) ? before : new Set([...before, ...groups])));
    setMaxDepth((before) => (trace.depth[selected]! > before ? Infinity : before));
  }, [selected, trace, grouping]);

  useEffect(() => {
    const box = scroller.current;
    if (!box || selectedRow < 0) return;
    const y = selectedRow * ROW;
    if (y < box.scrollTop || y + ROW * 2 > box.scrollTop + box.clientHeight) box.scrollTop = y - box.clientHeight / 3;
  }, [selectedRow]);

  const select = useCallback(
    (row: number) => {
      if (row >= 0) onSelect(row);
      setGroupSelected(row < 0 ? row : 0);
    },
    [onSelect],
  );
  const clickRow = useCallback(
    (row: number) => {
      select(row);
      setDrawerFor((before) => (row >= 0 && before !== row && before >= 0 ? row : before));
    },
    [select],
  );
  const toggle = useCallback((row: number) => {
    const flip = (before: ReadonlySet<number>, key: number) => {
      const next = new Set(before);
      if (!next.delete(key)) next.add(key);
      return next;
    };
    if (row < 0) setOpenGroups((before) => flip(before, -1 - row));
    else setCollapsed((before) => flip(before, row));
  }, []);
  const step = (by: number) => {
    if (rows.length > 0) select(rows[Math.min(rows.length - 1, Math.max(0, selectedRow + by))]!);
  };
  const jump = (isWanted: (span: number) => boolean) => {
    for (let offset = 1; offset <= trace.count; offset++) {
      const span = (Math.max(0, selected) + offset) % trace.count;
      if (isWanted(span)) {
        onSelect(span);
        return;
      }
    }
  };
  const current = rows[selectedRow];
  useKeys('Waterfall', [
    { key: 'j', does: 'next row', run: () => step(1) },
    { key: 'k', does: 'previous row', run: () => step(-1) },
    { key: 'ArrowDown', does: 'next row', run: () => step(1) },
    { key: 'ArrowUp', does: 'previous row', run: () => step(-1) },
    { key: 'ArrowRight', does: 'unfold', run: () => current !== undefined && (current < 0 ? !openGroups.has(-1 - current) : collapsed.has(current)) && toggle(current) },
    { key: 'ArrowLeft', does: 'fold', run: () => current !== undefined && (current < 0 ? openGroups.has(-1 - current) : !collapsed.has(current)) && toggle(current) },
    { key: 'Enter', does: 'details of the row', run: () => current !== undefined && (current < 0 ? toggle(current) : setDrawerFor(drawerFor === current ? -1 : current)) },
    { key: '-', does: 'one level less', run: () => setMaxDepth((before) => Math.max(0, Math.min(before, deepest) - 1)) },
    { key: '+', does: 'one level more', run: () => setMaxDepth((before) => (before + 1 >= deepest ? Infinity : before + 1)) },
    { key: 'p', does: 'next profiled span', run: () => jump((span) => (facts?.[trace.spanId[span]!]?.samples ?? 0) > 0) },
    { key: 'x', does: 'next error', run: () => jump((span) => trace.failed[span] === 1) },
    { key: 'b', does: 'critical path only', run: () => setOnlyCritical((before) => !before) },
    { key: 'F', does: 'filter spans', run: () => filterField.current?.select() },
  ]);

  useEffect(() => {
    const box = scroller.current!;
    const onWheel = (event: WheelEvent) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const track = box.querySelector('.wf-track')?.getBoundingClientRect();
      if (!track) return;
      setWindow((before) => {
        const at = before.from + ((event.clientX - track.left) / track.width) * (before.to - before.from);
        const factor = Math.exp(Math.max(-50, Math.min(50, event.deltaY)) * 0.01);
        return clampTime({ from: at - (at - before.from) * factor, to: at + (before.to - at) * factor }, trace.totalNs);
      });
    };
    box.addEventListener('wheel', onWheel, { passive: false });
    return () => box.removeEventListener('wheel', onWheel);
  }, [trace.totalNs]);

  const drawerTop = drawerRow >= 0 ? (drawerRow + 1) * ROW : Infinity;
  const rowAt = (y: number) => Math.floor((y > drawerTop ? Math.max(drawerTop, y - DRAWER) : y) / ROW);
  const first = Math.max(0, rowAt(top) - SPARE);
  const last = Math.min(rows.length, rowAt(top + height) + 1 + SPARE);
  const { want } = details;
  // What is scrolled past need not be read: the rows on the screen are asked for when they rest.
  useEffect(() => {
    if (trace.details) return;
    const timer = setTimeout(() => want([...rows.slice(first, last).filter((row) => row >= 0), ...(selected >= 0 ? [selected] : [])]), REST_MS);
    return () => clearTimeout(timer);
  }, [trace, rows, first, last, selected, want]);
  const indent = (depth: number) => indentOf(depth, deepest, namesWidth(wholeWidth));
  let hasEvents = false;
  const shown: ReactNode[] = [];
  for (let index = first; index < last; index++) {
    const row = rows[index]!;
    const group = row < 0 ? grouping.groups[-1 - row]! : null;
    const span = group ? group.members[0]! : row;
    const colour = colours.get(trace.service[span]!)!;
    const common = { trace, window, top: yOf(index), colour, onSelect: clickRow, onToggle: toggle, row, rowIndex: index, selected: index === selectedRow };
    if (group) shown.push(<GroupRow key={row} {...common} group={group} open={openGroups.has(-1 - row)} indent={indent(trace.depth[span]!)} />);
    else {
      const events = details.of(row)?.raw.events;
      hasEvents ||= (events?.length ?? 0) > 0;
      const folded = collapsed.has(row) || trace.depth[row]! >= maxDepth;
      shown.push(
        <SpanRow
          key={row}
          {...common}
          facts={facts?.[trace.spanId[row]!]}
          traceHasProfiles={hasFacts}
          critical={path.pieces.get(row)}
          events={events}
          faded={matched !== null && !matched[row]}
          folded={folded}
          indent={indent(trace.depth[row]! + (grouping.groupOf[row]! >= 0 ? 1 : 0))}
        />,
      );
    }
  }
  const ticks = timeTicks(window, 5);
  const zoomed = window.from > 0 || window.to < trace.totalNs;
  return (
    <div className="wf" ref={frame}>
      <WaterfallMinimap trace={trace} window={window} onWindow={setWindow} />
      <WaterfallBar
        filter={filter}
        onFilter={onFilter}
        filterField={filterField}
        matches={matched && matches}
        readAttributes={readAttributes}
        onlyMatches={onlyMatches}
        setOnlyMatches={setOnlyMatches}
        onlyCritical={onlyCritical}
        setOnlyCritical={setOnlyCritical}
        levels={{ shown: maxDepth + 1, all: deepest + 1, set: (levels) => setMaxDepth(levels > deepest ? Infinity : Math.max(0, levels - 1)), unfold: () => setCollapsed(new Set()) }}
        showWhole={zoomed ? () => setWindow({ from: 0, to: trace.totalNs }) : null}
      />
      <div className="wf-axis" aria-hidden="true">
        <span style={{ paddingLeft: 8 }}>{counted(rows.length, 'row')}</span>
        <span className="ticks">
          {ticks.map((tick) => (
            <span key={tick} style={{ left: `${((tick - window.from) / (window.to - window.from)) * 100}%` }}>
              {formatDuration(tick)}
            </span>
          ))}
        </span>
      </div>
      <div
        ref={scroller}
        className="wf-rows"
        role="treegrid"
        aria-label="Spans"
        aria-rowcount={rows.length}
        aria-activedescendant={selected >= 0 ? `span-${selected}` : undefined}
        tabIndex={0}
        onScroll={(event) => setTop(event.currentTarget.scrollTop)}
        onPointerDown={(event) => {
          const track = (event.target as HTMLElement).closest('.wf-track');
          if (track && event.button === 0) setBrush({ from: event.clientX, to: event.clientX });
        }}
        onPointerMove={(event) => brush && setBrush({ ...brush, to: event.clientX })}
        onPointerUp={() => {
          if (!brush) return;
          setBrush(null);
          const track = scroller.current!.querySelector('.wf-track')!.getBoundingClientRect();
          if (Math.abs(brush.to - brush.from) < 6) return;
          const at = (x: number) => window.from + ((x - track.left) / track.width) * (window.to - window.from);
          setWindow(clampTime({ from: at(Math.min(brush.from, brush.to)), to: at(Math.max(brush.from, brush.to)) }, trace.totalNs));
        }}
        onPointerLeave={() => setBrush(null)}
      >
        <div role="presentation" style={{ height: totalHeight, position: 'relative' }}>
          {shown}
          {drawerRow >= 0 && (
            <div role="row" className="wf-drawer" style={{ top: (drawerRow + 1) * ROW, height: DRAWER }}>
              <div role="gridcell" tabIndex={0} aria-label="Details of the span">
                <SpanDrawer trace={trace} span={drawerFor} details={details.of(drawerFor)} problem={details.problem} />
              </div>
            </div>
          )}
          {brush && Math.abs(brush.to - brush.from) > 5 && (
            <div className="wf-brush" style={{ left: Math.min(brush.from, brush.to) - scroller.current!.getBoundingClientRect().left, width: Math.abs(brush.to - brush.from) }} />
          )}
        </div>
      </div>
      <WaterfallLegend hasProfiles={hasFacts} hasEvents={hasEvents} />
      {isDocked && selected >= 0 && (
        <section className="wf-drawer docked" tabIndex={0} aria-label="Details of the span">
          <SpanDrawer trace={trace} span={selected} details={details.of(selected)} problem={details.problem} />
        </section>
      )}
    </div>
  );
}
