// How much single spans took of this profile: a box over the heavy ones leads to their traces.
import { useMemo, useState } from 'react';
import { selectSpanHeatmap } from '../../api/profiles';
import { typeLabel } from '../../api/profileTypes';
import { useAnswer } from '../../api/useAnswer';
import { Empty, Failure, Progress } from '../../app/Waiting';
import { formatCount, formatValue } from '../../format/units';
import { countIn, gridOfSlots, type HeatBox } from '../../heatmap/grid';
import { Heatmap } from '../../heatmap/Heatmap';
import type { ResolvedRange } from '../../location/timeRange';
import { hrefOf, openView } from '../../location/urlState';
import { durationLiteral } from '../../traceql/narrow';

const COLUMNS = 48;

export function SpanHeatmap({ service, type, selector, unit, range, height }: { service: string; type: string; selector: string; unit: string; range: ResolvedRange; height: number }) {
  const step = Math.max(1, Math.round((range.toMs - range.fromMs) / 1000 / COLUMNS));
  const answer = useAnswer(`heat|${type}|${selector}|${range.fromMs}|${range.toMs}`, (signal) => selectSpanHeatmap(type, selector, range, step, signal));
  const grid = useMemo(() => (answer.value ? gridOfSlots(answer.value.slots, range.fromMs, range.toMs, COLUMNS) : null), [answer.value, range]);
  const [box, setBox] = useState<HeatBox | null>(null);
  const isTime = unit === 'nanoseconds';
  const openTraces = () =>
    box &&
    openView(['traces'], {
      service,
      q: `{ resource.service.name = ${JSON.stringify(service)} && profile.${type.startsWith('process_cpu') ? 'cpu' : typeLabel(type).replace(/ .*/, '')} >= ${durationLiteral(box.lowNs)} }`,
      from: String(Math.floor(box.fromMs)),
      to: String(Math.ceil(box.toMs)),
    });
  return (
    <div className="plot">
      <div className="plot-title">
        {box && grid ? (
          <>
            <b>{formatCount(countIn(grid, box))}</b> spans with {formatValue(box.lowNs, unit)} or more {isTime && <button onClick={openTraces}>their traces</button>} <button onClick={() => setBox(null)}>clear</button>
          </>
        ) : (
          <>
            {typeLabel(type)} per span
            {(answer.value?.exemplars ?? []).slice(0, 1).map((exemplar) =>
              exemplar.traceId ? (
                <a key={exemplar.spanId} href={hrefOf(['trace', exemplar.traceId], { span: exemplar.spanId ?? null })}>
                  heaviest span {exemplar.value === undefined ? '' : formatValue(Number(exemplar.value), unit)}
                </a>
              ) : null,
            )}
          </>
        )}
      </div>
      <Progress what="spans of this profile" answer={answer} />
      {answer.error && <Failure error={answer.error} what="heatmaps of spans" retry={answer.retry} />}
      {grid && grid.total > 0 && <Heatmap grid={grid} box={box} onBox={setBox} height={height} label={`${typeLabel(type)} per span`} format={(value) => formatValue(value, unit)} />}
      {answer.value && (!grid || grid.total === 0) && (
        <Empty title="No span has samples of this type">
          <p className="muted">Samples name no span here, or none of this type did.</p>
        </Empty>
      )}
    </div>
  );
}
