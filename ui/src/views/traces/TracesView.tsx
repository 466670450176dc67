// What is slow: question, heatmap, spans; and beside it the code of whatever is chosen.
import './traces.css';
import { useMemo, useState } from 'react';
import type { Exactness } from '../../api/evidence';
import { type MetricSeries, queryMetricRange } from '../../api/traces';
import { useAnswer } from '../../api/useAnswer';
import { EvidenceStrip } from '../../app/EvidenceStrip';
import { FitToData } from '../../app/FitToData';
import { NothingHere } from '../../app/NothingHere';
import { SplitPanes } from '../../app/SplitPanes';
import { Empty, Failure, Progress, Shown } from '../../app/Waiting';
import { type Line, SeriesChart } from '../../charts/SeriesChart';
import { seriesNames } from '../../charts/seriesNames';
import { dateAndTime } from '../../format/clock';
import { counted, formatCount, formatDuration } from '../../format/units';
import { countIn, extentOf, formatBox, type HeatBox, type HeatGrid, parseBox } from '../../heatmap/grid';
import { Heatmap } from '../../heatmap/Heatmap';
import { useKeys } from '../../keys/keyLayer';
import { changeParams, openView, useParam } from '../../location/urlState';
import { useTimeRange } from '../../location/useTimeRange';
import { durationLiteral, narrow, spansOf } from '../../traceql/narrow';
import { QueryEditor } from '../../traceql/QueryEditor';
import { isMetricsQuery } from '../../traceql/tokens';
import { CohortCode } from './CohortCode';
import { keyOf, ResultsTable } from './ResultsTable';
import { type FoundSpans, inBox, LIMIT, stepSeconds, useFoundSpans } from './useFoundSpans';

/** Questions that most stores can answer; the widest first. */
const examplesFor = (service: string) => ['{ }', ...(service ? [`{ resource.service.name = ${JSON.stringify(service)} }`] : []), '{ duration > 500ms }', '{ status = error }', '{ profile.cpu > 200ms }', '{ } | quantile_over_time(duration, .99) by (resource.service.name)'];

const namedLines = (series: readonly MetricSeries[]): Line[] => {
  const names = seriesNames(series);
  return series.map((line, index) => ({ label: names[index]!, points: (line.samples ?? []).map((sample) => ({ at: Number(sample.timestampMs), value: sample.value ?? 0 })) }));
};

/** What the list holds of what was found. */
function describeList(count: number, listed: FoundSpans['listed'], grid: HeatGrid | null): string {
  const spans = `${counted(count, 'span')} listed`;
  if (listed === 'all' || (listed === 'in the box' && count < LIMIT)) return spans;
  const others = grid?.sampled ? '; more match, which the heatmap does not count' : ` of ${formatCount(grid?.total ?? 0)}`;
  return `${spans}: the ${listed === 'in the box' ? 'newest in the box' : listed}${others}`;
}

export default function TracesView() {
  const { resolved } = useTimeRange();
  const [service] = useParam('service');
  const [asked] = useParam('q');
  const query = asked || (service ? spansOf(service) : '{ kind = server }');
  const [boxText] = useParam('box');
  const [selectedKey, setSelectedKey] = useParam('pick');
  const [compare, setCompare] = useParam('cmp');
  const [evidence, setEvidence] = useState<Exactness | null>(null);
  const when = `${resolved.fromMs}|${resolved.toMs}`;
  const isMetrics = isMetricsQuery(query);
  const box = useMemo(() => parseBox(boxText), [boxText]);
  const metrics = useAnswer(isMetrics ? `metrics|${query}|${when}` : null, (signal) => queryMetricRange(query, resolved, stepSeconds(resolved), signal));
  const { rows, listed, grid, costs, answer: found } = useFoundSpans(isMetrics ? null : query, resolved, box);
  const boxQuery = box ? inBox(query, box) : query;
  const restQuery = box ? narrow(query, `duration < ${durationLiteral(box.lowNs)}`) : null;
  const boxRange = useMemo(() => (box ? { fromMs: box.fromMs, toMs: box.toMs } : resolved), [box, resolved]);
  const picked = rows?.find((row) => keyOf(row) === selectedKey);
  const setBox = (next: HeatBox | null) => changeParams({ box: next ? formatBox(next) : null, pick: null, cmp: null });
  const explainHref = { target: boxQuery, baseline: restQuery, from: String(Math.round(boxRange.fromMs)), to: String(Math.round(boxRange.toMs)) };
  const explain = () => openView(['explain'], picked && !box ? { target: picked.traceId } : explainHref);
  useKeys('Traces', [
    { key: 'e', does: 'explain the selection', run: explain },
    { key: 'c', does: 'compare the selection with the rest', run: () => box && setCompare(compare ? null : '1') },
    { key: 'f', does: 'to the flame graph', run: () => document.querySelector<HTMLElement>('.flame-stage')?.focus() },
    { key: 'h', does: 'to the heatmap', run: () => document.querySelector<HTMLElement>('[role="application"]')?.focus() },
  ]);
  // A grid counted from the list rounds to cells; the list itself does not.
  const boxed = grid && box ? (grid.sampled || (listed === 'in the box' && (rows?.length ?? 0) < LIMIT) ? (rows?.length ?? 0) : countIn(grid, box)) : 0;
  const cohortQuery = picked ? `{ trace:id = "${picked.traceId}" && span:id = "${picked.spanId}" }` : boxQuery;
  const subject = picked ? `${picked.name} ${formatDuration(picked.durationNs)}` : box ? 'the selected spans' : 'all found spans';
  const error = found.error ?? metrics.error;
  const noSpan = (
    <Empty title={box ? 'No span lies in the box' : 'No span answers this question'}>
      {!box && (
        <div>
          <p>Try a wider time range, or one of these:</p>
          <div className="examples">
            {examplesFor(service).map((example) => (
              <button key={example} onClick={() => changeParams({ q: example })}>
                {example}
              </button>
            ))}
          </div>
        </div>
      )}
    </Empty>
  );
  return (
    <>
      <div className="bar">
        <QueryEditor value={query} range={resolved} error={error} onRun={(next) => (/^[0-9a-f]{16,32}$/i.test(next) ? openView(['trace', next.toLowerCase()]) : changeParams({ q: next, box: null, pick: null, cmp: null }))} />
      </div>
      <div className="view-body flush">
        {isMetrics ? (
          <div className="pane" style={{ height: '100%', padding: 12 }}>
            <Shown answer={metrics} what="metrics">
              {(series) => (
                <SeriesChart
                  lines={namedLines(series)}
                  fromMs={resolved.fromMs}
                  toMs={resolved.toMs}
                  height={320}
                  label={query}
                  format={(value) => (/duration/.test(query) ? formatDuration(value * 1e9) : String(Number(value.toPrecision(3))))}
                />
              )}
            </Shown>
          </div>
        ) : (
          <SplitPanes
            left={
              <>
                <Progress what="spans" answer={found} over={rows !== null} />
                {found.error && found.error.position === null && <Failure error={found.error} what="trace search" retry={found.retry} />}
                {grid && grid.total > 0 && (
                  <Heatmap grid={grid} box={box} onBox={setBox}>
                    <FitToData extent={extentOf(grid)} range={resolved} />
                  </Heatmap>
                )}
                {box && (
                  <div className="choice">
                    <span>
                      <b>{formatCount(boxed)}</b> {boxed === 1 ? 'request' : 'requests'} of {formatDuration(box.lowNs)} to {formatDuration(box.highNs)}, {dateAndTime(box.fromMs)} – {dateAndTime(box.toMs)}:
                    </span>
                    <button className="primary" onClick={explain} title="e">
                      Explain
                    </button>
                    <button aria-pressed={compare === '1'} onClick={() => setCompare(compare ? null : '1')} title="c">
                      Compare with the rest
                    </button>
                    <button onClick={() => changeParams({ q: boxQuery, box: null, from: explainHref.from, to: explainHref.to })}>Only these</button>
                    <button onClick={() => setBox(null)}>Clear</button>
                  </div>
                )}
                {rows && rows.length > 0 && (
                  <div className="results" tabIndex={0} role="region" aria-label="Found spans">
                    <ResultsTable rows={rows} costs={costs} selected={selectedKey} onSelect={(row) => setSelectedKey(keyOf(row), 'replace')} />
                  </div>
                )}
                {rows?.length === 0 && (asked || service || box ? !found.loading && noSpan : <NothingHere signal="spans" inRange={noSpan} />)}
              </>
            }
            right={grid && grid.total > 0 && <CohortCode query={cohortQuery} baseline={compare && restQuery && !picked ? restQuery : null} range={boxRange} subject={subject} onEvidence={setEvidence} />}
          />
        )}
      </div>
      <EvidenceStrip
        evidence={isMetrics ? null : evidence}
        extra={error ? 'no answer' : isMetrics ? metrics.value ? `${counted(metrics.value.length, 'series', 'series')}, counted from all spans that match` : undefined : rows ? describeList(rows.length, listed, grid) : undefined}
      />
    </>
  );
}
