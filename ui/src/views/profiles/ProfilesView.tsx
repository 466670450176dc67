// Explore profiles: by service, type and labels, over time.
import { useCallback, useMemo, useState } from 'react';
import type { Exactness } from '../../api/evidence';
import { extentOfSeries, readLabelNames, readLabelValues, selectFlame, selectionPprof, selectSeries } from '../../api/profiles';
import { CPU_TYPE, selectorOf, typeLabel, unitOfType } from '../../api/profileTypes';
import { useAnswer } from '../../api/useAnswer';
import { EvidenceStrip } from '../../app/EvidenceStrip';
import { FitToData } from '../../app/FitToData';
import { NothingHere } from '../../app/NothingHere';
import { TypeSelect } from '../../app/TypeSelect';
import { Failure, Progress, Shown } from '../../app/Waiting';
import { SeriesChart } from '../../charts/SeriesChart';
import type { LoadedFlame } from '../../flame/flameWorker';
import { FlameView } from '../../flame/FlameView';
import { formatValue } from '../../format/units';
import { useKeys } from '../../keys/keyLayer';
import { hrefOf, openView, useParam } from '../../location/urlState';
import { setRange, useTimeRange } from '../../location/useTimeRange';
import { SpanHeatmap } from './SpanHeatmap';

const MOST_NODES = 1_000_000;
const PLOT_HEIGHT = 116;

/** Nanoseconds of CPU per second. */
const formatCores = (perSecond: number) => (perSecond === 0 ? '0' : `${Number((perSecond / 1e9).toPrecision(2))} cores`);

export default function ProfilesView() {
  const { resolved } = useTimeRange();
  const [service] = useParam('service');
  const [type, setType] = useParam('type', CPU_TYPE);
  const [labels, setLabels] = useParam('labels');
  const [groupBy, setGroupBy] = useParam('by');
  const when = `${resolved.fromMs}|${resolved.toMs}`;
  const [evidence, setEvidence] = useState<Exactness | null>(null);
  const [nodes, setNodes] = useState(0);
  const services = useAnswer(`services|${when}`, (signal) => readLabelValues('service_name', [], resolved, signal));
  const chosen = service || services.value?.[0] || '';
  const selector = useMemo(() => (labels ? labels.replace(/\{/, `{service_name=${JSON.stringify(chosen)}, `).replace(/, }$/, '}') : selectorOf({ service_name: chosen })), [labels, chosen]);
  const asked = chosen ? `${type}|${selector}|${when}` : null;
  const flame = useAnswer(asked, (signal) => selectFlame({ typeId: type, selector, range: resolved }, MOST_NODES, signal));
  const step = Math.max(15, Math.round((resolved.toMs - resolved.fromMs) / 1000 / 240));
  const series = useAnswer(asked && `${asked}|${groupBy}`, (signal) => selectSeries(type, selector, resolved, step, groupBy ? [groupBy] : [], signal));
  const labelNames = useAnswer(asked && `names|${asked}`, (signal) => readLabelNames([selector], resolved, signal));
  const unit = unitOfType(type);
  const onLoaded = useCallback((loaded: LoadedFlame) => {
    setEvidence(loaded.exactness);
    setNodes(loaded.nodes);
  }, []);
  const lines = useMemo(
    () =>
      (series.value ?? []).map((line) => ({
        label: (line.labels ?? []).filter((label) => !label.name.startsWith('__')).map((label) => label.value).join(' ') || chosen,
        points: (line.points ?? []).map((point) => ({ at: Number(point.timestamp), value: point.value / step })),
      })),
    [series.value, step, chosen],
  );
  const extent = useMemo(() => extentOfSeries(series.value ?? [], step), [series.value, step]);
  useKeys('Profiles', [{ key: 'c', does: 'compare with the time before', run: () => openView(['compare'], { service: chosen, type }) }]);

  if (services.error) return <Failure error={services.error} what="profiles" retry={services.retry} />;
  if (services.value?.length === 0 && !service) return <NothingHere signal="samples" />;
  return (
    <>
      <div className="bar">
        <h1>{chosen}</h1>
        <TypeSelect value={type} set={setType} range={resolved} />
        <LabelFilter value={labels} set={(next) => setLabels(next || null)} />
        <label>
          Split by{' '}
          <select value={groupBy} onChange={(event) => setGroupBy(event.target.value || null)}>
            <option value="">nothing</option>
            {(labelNames.value ?? []).map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <span className="grow" />
        <a href={hrefOf(['traces'], { service: chosen })}>Requests</a>
        <a href={hrefOf(['compare'], { service: chosen, type })}>Compare</a>
      </div>
      <div className="view-body flush pane">
        <div className="plots">
          <div className="plot">
            <div className="plot-title">
              {typeLabel(type)} over time
              <FitToData extent={extent} range={resolved} />
            </div>
            <Shown answer={series} what={`${typeLabel(type)} over time`}>
              {() => (
                <SeriesChart
                  lines={lines}
                  fromMs={resolved.fromMs}
                  toMs={resolved.toMs}
                  height={PLOT_HEIGHT}
                  label={`${typeLabel(type)} of ${chosen}`}
                  named={groupBy !== ''}
                  format={(value) => (unit === 'nanoseconds' ? formatCores(value) : `${formatValue(value, unit)}/s`)}
                  onRange={(from, to) => setRange({ from: String(Math.round(from)), to: String(Math.round(to)) })}
                />
              )}
            </Shown>
          </div>
          {chosen && <SpanHeatmap key={`${type}|${selector}`} service={chosen} type={type} selector={selector} unit={unit} range={resolved} height={PLOT_HEIGHT} />}
        </div>
        <Progress what={`the ${typeLabel(type)} flame graph of ${chosen}`} answer={flame} />
        {flame.error && <Failure error={flame.error} what="flame graphs" retry={flame.retry} />}
        {flame.value && <FlameView bytes={flame.value} unit={unit} title={`${chosen} ${typeLabel(type)}`} onLoaded={onLoaded} whenEmpty={`${chosen} has no ${typeLabel(type)} samples${labels ? ' with these labels' : ''} in this time range. A wider time range${labels ? ', fewer labels' : ''} or another type may show some.`} pprof={(signal) => selectionPprof({ typeId: type, selector, range: resolved }, signal)} />}
      </div>
      <EvidenceStrip evidence={evidence} extra={flame.error ? 'no answer' : nodes ? `${nodes.toLocaleString('en-US')} frames · ${chosen} · ${typeLabel(type)}` : undefined} />
    </>
  );
}

/** Free text, since selectors are a language of their own; applied on Enter. */
function LabelFilter({ value, set }: { value: string; set: (value: string) => void }) {
  const [draft, setDraft] = useState<string | null>(null);
  return (
    <input
      type="search"
      className="mono"
      data-question
      aria-label="Label filter"
      placeholder='{version="1.4.2", region=~"eu.*"}'
      style={{ width: 280 }}
      value={draft ?? value}
      onChange={(event) => setDraft(event.target.value)}
      onBlur={() => setDraft(null)}
      onKeyDown={(event) => {
        if (event.key === 'Enter' && draft !== null) {
          const text = draft.trim();
          set(text && !text.startsWith('{') ? `{${text}}` : text);
        }
      }}
    />
  );
}
