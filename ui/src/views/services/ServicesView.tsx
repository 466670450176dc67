// Where to start: every service with what hurts first.
import './services.css';
import { useEffect, useMemo, useState } from 'react';
import { type OperationFacts, readServices, type ServiceFacts } from '../../api/services';
import { useAnswer } from '../../api/useAnswer';
import { EvidenceStrip } from '../../app/EvidenceStrip';
import { Failure, Progress } from '../../app/Waiting';
import { LatencyRange, latencyScale } from '../../charts/LatencyRange';
import { Spark } from '../../charts/Spark';
import { formatCount, formatDuration, formatRate, formatShare } from '../../format/units';
import { useKeys } from '../../keys/keyLayer';
import { hrefOf, openView, useParam } from '../../location/urlState';
import { refreshNow, useTimeRange } from '../../location/useTimeRange';
import { serviceColours } from '../../theme/evenPalette';
import { useTheme } from '../../theme/theme';
import { durationLiteral, narrow } from '../../traceql/narrow';
import { FirstSteps } from './FirstSteps';
import { ServiceGraph } from './ServiceGraph';

type Column = 'name' | 'rate' | 'errors' | 'p50_ns' | 'p95_ns' | 'p99_ns' | 'cpu';

interface Row {
  service: ServiceFacts;
  operation: OperationFacts | null;
}

/** A handful of operations is read at a glance: no need to ask for them one by one. */
const unfoldedAtFirst = (services: readonly ServiceFacts[]) => (services.reduce((sum, service) => sum + 1 + service.operations.length, 0) <= 28 ? services.map((service) => service.service).join(',') : 'none');

const tracesOf = (row: Row) => ({
  service: row.service.service,
  q: row.operation ? `{ resource.service.name = ${JSON.stringify(row.service.service)} && name = ${JSON.stringify(row.operation.operation)} }` : `{ resource.service.name = ${JSON.stringify(row.service.service)} && kind = server }`,
});

/** The slowest twentieth of a row against the rest. */
const explainOf = (row: Row) =>
  hrefOf(['explain'], { service: row.service.service, target: narrow(tracesOf(row).q, `duration > ${durationLiteral((row.operation ?? row.service).p95_ns)}`) });

export default function ServicesView() {
  const theme = useTheme();
  const { resolved } = useTimeRange();
  const [shape, setShape] = useParam('as', 'table');
  const [opened, setOpened] = useParam('open');
  const [filter, setFilter] = useParam('find');
  const [column, setColumn] = useState<Column>('p99_ns');
  const [descending, setDescending] = useState(true);
  const [at, setAt] = useState(0);
  const answer = useAnswer(`services|${resolved.fromMs}|${resolved.toMs}`, (signal) => readServices(resolved, signal));
  const isEmpty = answer.value !== null && answer.value.length === 0;
  useEffect(() => {
    if (!isEmpty) return;
    const timer = setInterval(refreshNow, 3000);
    return () => clearInterval(timer);
  }, [isEmpty]);
  const rows = useMemo<Row[]>(() => {
    const read = (facts: OperationFacts | ServiceFacts) => (column === 'cpu' ? (facts.cpu_ns_per_request ?? -1) : column === 'name' ? 0 : facts[column]);
    const nameOf = (facts: OperationFacts | ServiceFacts) => ('service' in facts ? facts.service : facts.operation);
    const compare = (a: OperationFacts | ServiceFacts, b: OperationFacts | ServiceFacts) => (column === 'name' ? (nameOf(a) < nameOf(b) ? -1 : 1) : read(a) - read(b)) * (descending ? -1 : 1);
    const open = new Set((opened || unfoldedAtFirst(answer.value ?? [])).split(','));
    return [...(answer.value ?? [])]
      .filter((service) => !filter || service.service.includes(filter) || service.operations.some((operation) => operation.operation.includes(filter)))
      .sort(compare)
      .flatMap((service) => [{ service, operation: null }, ...(open.has(service.service) || filter ? [...service.operations].sort(compare).map((operation) => ({ service, operation })) : [])]);
  }, [answer.value, column, descending, opened, filter]);
  const toggle = (service: string) => {
    const open = new Set((opened || unfoldedAtFirst(answer.value ?? [])).split(',').filter(Boolean));
    if (!open.delete(service)) open.add(service);
    setOpened([...open].join(',') || 'none', 'replace');
  };
  const current = rows[Math.min(at, rows.length - 1)];
  const colours = useMemo(() => serviceColours((answer.value ?? []).map((service) => service.service), theme), [answer.value, theme]);
  const scale = useMemo(() => latencyScale((answer.value ?? []).flatMap((service) => [service, ...service.operations].flatMap((facts) => [facts.p50_ns, facts.p99_ns]))), [answer.value]);
  useKeys('Services', [
    { key: 'j', does: 'next row', run: () => setAt(Math.min(rows.length - 1, at + 1)) },
    { key: 'k', does: 'previous row', run: () => setAt(Math.max(0, at - 1)) },
    { key: 'Enter', does: 'requests of the row', run: () => current && openView(['traces'], tracesOf(current)) },
    { key: 'o', does: 'operations of the service', run: () => current && toggle(current.service.service) },
    { key: 'f', does: 'flame graph of the service', run: () => current && openView(['profiles'], { service: current.service.service }) },
    { key: 'e', does: 'explain what is slow', run: () => current && (location.hash = explainOf(current)) },
    { key: 'g', does: 'table or graph', run: () => setShape(shape === 'graph' ? null : 'graph') },
  ]);
  if (answer.error) {
    return (
      <>
        <Failure error={answer.error} what="a list of services" retry={answer.retry} />
        <OpenTrace />
      </>
    );
  }
  if (isEmpty) return <FirstSteps />;
  const head = (name: Column, label: string) => (
    <th className={name === 'name' ? '' : 'number'} aria-sort={column === name ? (descending ? 'descending' : 'ascending') : 'none'}>
      <button
        onClick={() => {
          setDescending(column === name ? !descending : name !== 'name');
          setColumn(name);
        }}
      >
        {label} {column === name ? (descending ? '↓' : '↑') : ''}
      </button>
    </th>
  );
  const hasCpu = (answer.value ?? []).some((service) => service.cpu_ns_per_request !== null && service.cpu_ns_per_request !== undefined);
  return (
    <>
      <div className="bar">
        <h1>Services</h1>
        <input type="search" data-question aria-label="Find a service or operation" placeholder="find a service or operation" style={{ width: 240 }} value={filter} onChange={(event) => setFilter(event.target.value || null, 'replace')} />
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
          <ServiceGraph range={resolved} services={(answer.value ?? []).map((service) => service.service)} />
        </div>
      ) : (
        <div className="view-body services pane" tabIndex={0} role="region" aria-label="Services table" style={{ overflow: 'auto' }}>
          <table>
            <thead>
              <tr>
                {head('name', 'Service')}
                {head('rate', 'Requests')}
                {head('errors', 'Failed')}
                <th>
                  <span className="latency-scale" aria-hidden="true">
                    <span>{formatDuration(scale.lowNs)}</span>
                    <span>{formatDuration(scale.highNs)}</span>
                  </span>
                  <span className="sr-only">Latency</span>
                </th>
                {head('p50_ns', 'P50')}
                {head('p95_ns', 'P95')}
                {head('p99_ns', 'P99')}
                {hasCpu && head('cpu', 'CPU per request')}
                <th>Code</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row, index) => {
                const facts = row.operation ?? row.service;
                const { service } = row;
                const isService = row.operation === null;
                const open = (opened || unfoldedAtFirst(answer.value ?? [])).split(',').includes(service.service);
                return (
                  <tr key={`${service.service} ${row.operation?.operation ?? ''}`} aria-selected={index === at} onClick={() => setAt(index)} onDoubleClick={() => openView(['traces'], tracesOf(row))}>
                    <td className={isService ? '' : 'op'}>
                      {isService && (
                        <button className="twist" aria-label={`Operations of ${service.service}`} aria-expanded={open} onClick={() => toggle(service.service)}>
                          {open ? '▾' : '▸'}
                        </button>
                      )}
                      {isService && <span style={{ display: 'inline-block', width: 3, height: 14, verticalAlign: -2, marginRight: 6, background: colours.get(service.service) }} />}
                      <a href={hrefOf(['traces'], tracesOf(row))}>{isService ? service.service : row.operation!.operation}</a>
                      {isService && <span className="muted"> {service.operations.length || ''}</span>}
                    </td>
                    <td className="number">
                      {isService && <Spark values={service.rate_series} label="requests over time" colour="var(--muted)" width={96} />} <span className="plotted">{formatRate(facts.rate)}</span>
                    </td>
                    <td className="number">
                      {isService && facts.errors > 0 && <Spark values={service.errors_series} label="failed share over time" colour="var(--error)" />} <span className={`plotted ${facts.errors > 0.005 ? 'error-text' : ''}`}>{formatShare(facts.errors)}</span>
                    </td>
                    <td>
                      <LatencyRange p50={facts.p50_ns} p95={facts.p95_ns} p99={facts.p99_ns} scale={scale} />
                    </td>
                    <td className="number">{formatDuration(facts.p50_ns)}</td>
                    <td className="number">{formatDuration(facts.p95_ns)}</td>
                    <td className="number">
                      <Spark values={facts.p99_series} label="P99 over time" /> <span className="plotted">{formatDuration(facts.p99_ns)}</span>
                    </td>
                    {hasCpu && (
                      <td className="number">
                        {isService && <Spark values={service.cpu_series} label="CPU over time" colour="var(--cpu)" />} <span className="plotted">{facts.cpu_ns_per_request === null || facts.cpu_ns_per_request === undefined ? '' : formatDuration(facts.cpu_ns_per_request)}</span>
                      </td>
                    )}
                    <td className="links">
                      <a href={isService ? hrefOf(['profiles'], { service: service.service }) : hrefOf(['traces'], tracesOf(row))}>flame</a>
                      {' · '}
                      <a href={explainOf(row)}>explain</a>
                    </td>
                  </tr>
                );
              })}
            </tbody>
          </table>
        </div>
      )}
      <EvidenceStrip evidence={null} extra={answer.value ? `${formatCount(answer.value.length)} services, ${formatCount(answer.value.reduce((sum, service) => sum + service.operations.length, 0))} operations; rates, errors and percentiles from stored spans` : 'reading'} />
    </>
  );
}

/** A way on for servers without a list of services. */
function OpenTrace() {
  const [id, setId] = useState('');
  return (
    <form
      className="notice row"
      onSubmit={(event) => {
        event.preventDefault();
        if (id.trim()) openView(['trace', id.trim().toLowerCase()]);
      }}
    >
      <label>
        Open a trace by id <input type="text" className="mono" style={{ width: 300 }} value={id} onChange={(event) => setId(event.target.value)} />
      </label>
      <button className="primary">Open</button>
      <span className="muted">
        or look at <a href={hrefOf(['traces'])}>traces</a>, <a href={hrefOf(['profiles'])}>profiles</a>, <a href={hrefOf(['status'])}>status</a>.
      </span>
    </form>
  );
}
