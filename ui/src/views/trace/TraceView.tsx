// One trace: the waterfall left, the code of the selected span right.
import { useCallback, useMemo, useState } from 'react';
import { address, getJson } from '../../api/request';
import { readTraceProfileSummary } from '../../api/profiles';
import { readTrace } from '../../api/traces';
import { useAnswer } from '../../api/useAnswer';
import { CopyButton } from '../../app/CopyButton';
import { EvidenceStrip } from '../../app/EvidenceStrip';
import { SplitPanes } from '../../app/SplitPanes';
import { Empty, Failure, Progress } from '../../app/Waiting';
import type { Exactness } from '../../api/evidence';
import { dateAndTime, utc } from '../../format/clock';
import { counted, formatDuration } from '../../format/units';
import { useKeys } from '../../keys/keyLayer';
import { hrefOf, openView, useParam } from '../../location/urlState';
import { clockSkews } from '../../waterfall/clockSkew';
import { useSpanDetails } from '../../waterfall/spanDetails';
import { asksForAttributes } from '../../waterfall/spanFilter';
import { type TraceOutline, traceOfOutline, traceOfWindow, type TraceWindow } from '../../waterfall/traceOutline';
import { Waterfall } from '../../waterfall/Waterfall';
import { buildTrace } from '../../waterfall/traceModel';
import { SpanCode } from './SpanCode';

/** Longer traces come without what their spans carry; their first rows are shown before all are here. */
const LONG_TRACE = 5000;
const FIRST_ROWS = 2000;

const readWhole = async (traceId: string, signal: AbortSignal) => buildTrace(await readTrace(traceId, signal)) ?? 'absent';
const readOutline = async (traceId: string, signal: AbortSignal) => traceOfOutline(await getJson<TraceOutline>(address(`/api/v1/trace/${traceId}/outline`), signal)) ?? 'absent';

export default function TraceView({ traceId }: { traceId: string }) {
  const [filter, setFilter] = useParam('spans');
  const opening = useAnswer(`opening|${traceId}`, (signal) => getJson<TraceWindow>(address(`/api/v1/trace/${traceId}/spans`, { limit: FIRST_ROWS }), signal));
  const isLong = (opening.value?.total_spans ?? 0) > LONG_TRACE;
  // A filter by attributes needs those of all spans. What was read whole once stays; a link asks for the same.
  const [attributes, setAttributes] = useParam('attributes');
  const [readsAll, setReadsAll] = useState(false);
  if (isLong && !readsAll && (attributes === 'all' || asksForAttributes(filter))) setReadsAll(true);
  const isOutline = isLong && !readsAll;
  const answer = useAnswer(opening.value ? `${traceId}|${isOutline ? 'outline' : 'whole'}` : null, (signal) => (isOutline ? readOutline : readWhole)(traceId, signal));
  const summary = useAnswer(traceId, (signal) => readTraceProfileSummary(traceId, signal));
  const [spanId, setSpanId] = useParam('span');
  const [evidence, setEvidence] = useState<Exactness | null>(null);
  const firstRows = useMemo(() => (opening.value && isLong ? traceOfWindow(opening.value) : null), [opening.value, isLong]);
  const trace = answer.value === 'absent' ? null : (answer.value ?? firstRows);
  const details = useSpanDetails(traceId, trace);
  const facts = summary.value;
  const skews = useMemo(() => (trace ? clockSkews(trace) : []), [trace]);
  const longestOwn = useMemo(() => {
    if (!trace) return 0;
    // Without a choice in the URL, begin where the samples are; else at the root.
    let best = 0;
    for (let span = 0; span < trace.count; span++) if ((facts?.[trace.spanId[span]!]?.cpu_ns ?? 0) > (facts?.[trace.spanId[best]!]?.cpu_ns ?? 0)) best = span;
    return best;
  }, [trace, facts]);
  const selected = useMemo(() => {
    if (!trace) return -1;
    const at = spanId ? trace.spanId.indexOf(spanId) : -1;
    return at >= 0 ? at : spanId ? 0 : longestOwn;
  }, [trace, spanId, longestOwn]);
  const onSelect = useCallback((span: number) => trace && setSpanId(trace.spanId[span]!, 'replace'), [trace, setSpanId]);
  const onFilter = useCallback((text: string) => setFilter(text || null, 'replace'), [setFilter]);
  useKeys('Trace', [{ key: 'e', does: 'explain this trace', run: () => openView(['explain'], { target: traceId }) }]);

  const failed = opening.error ?? answer.error;
  const retry = opening.error ? opening.retry : answer.retry;
  if (failed && failed.status !== 404) return <Failure error={failed} what={`trace ${traceId}`} retry={retry} />;
  if (answer.value === 'absent' || failed) {
    return (
      <Empty title="This trace is not stored here">
        <p className="mono">{traceId}</p>
        <p>It may have been dropped by sampling, be past its retention, or still be on its way: late spans appear within a second of their arrival.</p>
        <button onClick={retry}>Look again</button>
      </Empty>
    );
  }
  if (!trace) return <Progress what={`trace ${traceId.slice(0, 8)}`} answer={opening.loading ? opening : answer} />;
  const errors = trace.failed.reduce((sum, flag) => sum + flag, 0);
  return (
    <>
      <div className="bar">
        <h1 className="ellipsis">
          {trace.service[0]} {trace.name[0]}
        </h1>
        <b>{formatDuration(trace.totalNs)}</b>
        <span className="muted" title={utc(trace.originMs)}>
          {dateAndTime(trace.originMs)}
        </span>
        <span>
          {counted(trace.count, 'span')}, {counted(trace.services.length, 'service')}
        </span>
        {errors > 0 && <span className="error-text">✕ {counted(errors, 'error')}</span>}
        {trace.orphans > 0 && <span className="warn-text">{trace.orphans} {trace.orphans === 1 ? 'span without its parent' : 'spans without their parents'}</span>}
        {skews.slice(0, 1).map((skew) => (
          <span key={skew.callee} className="warn-text" title="Times of different machines can't be compared closer than this">
            clock of {skew.callee} {formatDuration(Math.abs(skew.ns))} {skew.ns < 0 ? 'behind' : 'ahead of'} {skew.caller}
          </span>
        ))}
        {trace.partial && <span className="warn-text">{trace.partial}</span>}
        {answer.loading && <Progress what={isOutline ? 'the whole trace' : 'the attributes of all its spans'} answer={answer} />}
        <span className="grow" />
        <CopyButton text={traceId} label="Copy id" />
        <a href={hrefOf(['explain'], { target: traceId })}>Explain</a>
      </div>
      <div className="view-body flush">
        <SplitPanes
          left={<Waterfall trace={trace} details={details} facts={facts} selected={selected} onSelect={onSelect} filter={filter} onFilter={onFilter} readAttributes={isOutline ? () => setAttributes('all', 'replace') : null} />}
          right={selected >= 0 && <SpanCode trace={trace} traceId={traceId} span={selected} facts={facts} onEvidence={setEvidence} />}
        />
      </div>
      <EvidenceStrip evidence={evidence} extra={summary.error?.kind === 'missing' ? 'this server does not have per-span profile summaries yet: bars show durations only' : undefined} />
    </>
  );
}
