// Where to start: every service with what hurts first, or who calls whom.
import './services.css';
import { useMemo, useState } from 'react';
import { activeTime, readServices } from '../../api/services';
import { useAnswer } from '../../api/useAnswer';
import { EvidenceStrip } from '../../app/EvidenceStrip';
import { FitToData } from '../../app/FitToData';
import { NothingHere } from '../../app/NothingHere';
import { Failure, Progress } from '../../app/Waiting';
import { dateAndTime } from '../../format/clock';
import { counted } from '../../format/units';
import { useKeys } from '../../keys/keyLayer';
import { openView, useParam } from '../../location/urlState';
import { useTimeRange } from '../../location/useTimeRange';
import { OpenTrace } from './OpenTrace';
import { ServiceGraph } from './ServiceGraph';
import { type Order, serviceRows, unfolded } from './serviceRows';
import { explanationOf, requestsOf, ServicesTable } from './ServicesTable';

export default function ServicesView() {
  const { resolved } = useTimeRange();
  const [shape, setShape] = useParam('as', 'table');
  const [opened, setOpened] = useParam('open');
  const [find, setFind] = useParam('find');
  const [order, setOrder] = useState<Order>({ column: 'p99_ns', descending: true });
  const [at, setAt] = useState(0);
  const answer = useAnswer(`services|${resolved.fromMs}|${resolved.toMs}`, (signal) => readServices(resolved, signal));
  const services = useMemo(() => answer.value?.services ?? [], [answer.value]);
  const isEmpty = answer.value !== null && services.length === 0;
  const open = useMemo(() => unfolded(services, opened), [services, opened]);
  const rows = useMemo(() => serviceRows(services, open, find, order), [services, open, find, order]);
  const toggle = (service: string) => {
    const next = new Set(open);
    if (!next.delete(service)) next.add(service);
    setOpened([...next].join(',') || 'none', 'replace');
  };
  const current = rows[Math.min(at, rows.length - 1)];
  useKeys('Services', [
    { key: 'j', does: 'next row', run: () => setAt(Math.min(rows.length - 1, at + 1)) },
    { key: 'k', does: 'previous row', run: () => setAt(Math.max(0, at - 1)) },
    { key: 'Enter', does: 'requests of the row', run: () => current && !current.operation?.isRest && openView(['traces'], requestsOf(current)) },
    { key: 'o', does: 'operations of the service', run: () => current && toggle(current.service.service) },
    { key: 'f', does: 'flame graph of the service', run: () => current && openView(['profiles'], { service: current.service.service }) },
    { key: 'e', does: 'explain what is slow', run: () => current && openView(['explain'], explanationOf(current)) },
    { key: 'g', does: 'table or graph', run: () => setShape(shape === 'graph' ? null : 'graph') },
  ]);
  if (answer.error) {
    return (
      <>
        <Failure error={answer.error} what="a list of services" retry={answer.retry} />
        {answer.error.kind !== 'unreachable' && <OpenTrace />}
      </>
    );
  }
  if (isEmpty) return <NothingHere signal="spans" />;
  const operations = services.reduce((sum, service) => sum + service.operations.length, 0);
  const costsFromMs = answer.value?.costsFromMs;
  return (
    <>
      <div className="bar">
        <h1>Services</h1>
        <input type="search" data-question aria-label="Find a service or operation" placeholder="find a service or operation" style={{ width: 240 }} value={find} onChange={(event) => setFind(event.target.value || null, 'replace')} />
        <FitToData extent={activeTime(services, resolved)} range={resolved} />
        {costsFromMs && <span className="warn-text">CPU of operations since {dateAndTime(costsFromMs)} only: before that there are too many samples</span>}
        <span className="grow" />
        <span className="buttons">
          <button aria-pressed={shape === 'table'} onClick={() => setShape(null)}>
            Table
          </button>
          <button aria-pressed={shape === 'graph'} onClick={() => setShape('graph')}>
            Graph
          </button>
        </span>
      </div>
      <Progress what="services" answer={answer} />
      {shape === 'graph' ? (
        <div className="view-body flush pane">
          <ServiceGraph range={resolved} services={services.map((service) => service.service)} />
        </div>
      ) : (
        <div className="view-body services pane" tabIndex={0} role="region" aria-label="Services table">
          {answer.value && <ServicesTable services={services} span={answer.value.span ?? resolved} rows={rows} open={open} toggle={toggle} order={order} setOrder={setOrder} at={at} setAt={setAt} />}
        </div>
      )}
      <EvidenceStrip evidence={null} extra={answer.value ? `${counted(services.length, 'service')}, ${counted(operations, 'operation')}; rates, errors and percentiles from stored spans` : 'reading'} />
    </>
  );
}
