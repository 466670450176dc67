// Every service with its operations: how much, how often it fails, how long it takes, what it costs.
import { useMemo } from 'react';
import type { OperationFacts, ServiceFacts } from '../../api/services';
import { SortHead } from '../../app/SortHead';
import { LatencyRange, latencyScale } from '../../charts/LatencyRange';
import { Spark } from '../../charts/Spark';
import type { Span, SparkLine } from '../../charts/sparkShape';
import { counted, formatCount, formatDuration, formatRate, formatShare, rateUnitFor } from '../../format/units';
import { hrefOf, openView } from '../../location/urlState';
import { serviceColours } from '../../theme/evenPalette';
import { useTheme } from '../../theme/theme';
import { slowestOf, spansOf } from '../../traceql/narrow';
import type { Column, Order, Row } from './serviceRows';

export const requestsOf = ({ service, operation }: Row) => ({ service: service.service, q: spansOf(service.service, operation?.operation ?? null) });

/** The slowest twentieth of a row against the rest. */
export const explanationOf = ({ service, operation }: Row) => ({ service: service.service, target: slowestOf(service.service, operation?.operation ?? null, (operation ?? service).p95_ns) });

/** The tail is the strong line; all three differ by more than colour. */
const latencyLines = (facts: Partial<OperationFacts>): SparkLine[] => [
  { label: 'P50', values: facts.p50_series ?? [], colour: 'var(--muted)', width: 1 },
  { label: 'P95', values: facts.p95_series ?? [], colour: 'var(--accent)', width: 1, dash: '2.5 2.5' },
  { label: 'P99', values: facts.p99_series ?? [], colour: 'var(--accent)', width: 1.5 },
];
const oneLine = (label: string, values: SparkLine['values'] | undefined, colour: string): SparkLine[] => [{ label, values: values ?? [], colour }];

interface Props {
  services: readonly ServiceFacts[];
  /** The time that the plots cover. */
  span: Span;
  rows: readonly Row[];
  open: ReadonlySet<string>;
  toggle: (service: string) => void;
  order: Order;
  setOrder: (order: Order) => void;
  at: number;
  setAt: (row: number) => void;
}

export function ServicesTable({ services, span, rows, open, toggle, order, setOrder, at, setAt }: Props) {
  const theme = useTheme();
  const colours = useMemo(() => serviceColours(services.map((service) => service.service), theme), [services, theme]);
  const all = useMemo(() => services.flatMap((service) => [service, ...service.operations]), [services]);
  const scale = useMemo(() => latencyScale(all.flatMap((facts) => [facts.p50_ns, facts.p99_ns])), [all]);
  const rateUnit = useMemo(() => rateUnitFor(all.map((facts) => facts.rate)), [all]);
  const hasCpu = services.some((service) => service.cpu_ns_per_request !== null && service.cpu_ns_per_request !== undefined);
  const head = (column: Column, label: string) => <SortHead column={column} label={label} isText={column === 'name'} order={order} setOrder={setOrder} />;
  return (
    <table>
      <thead>
        <tr>
          {head('name', 'Service')}
          {head('rate', 'Requests')}
          {head('errors', 'Failed')}
          <th className="range">
            <span className="latency-scale" aria-hidden="true">
              <span>{formatDuration(scale.lowNs)}</span>
              <span>{formatDuration(scale.highNs)}</span>
            </span>
            <span className="sr-only">Latency</span>
          </th>
          <th>
            <span className="latency-key" aria-hidden="true">
              <i className="p99" /> P99 <i className="p95" /> P95 <i className="p50" /> P50
            </span>
            <span className="sr-only">Latency over time</span>
          </th>
          {head('p50_ns', 'P50')}
          {head('p95_ns', 'P95')}
          {head('p99_ns', 'P99')}
          {hasCpu && head('cpu', 'CPU per request')}
          <th>Code</th>
        </tr>
      </thead>
      <tbody>
        {rows.length === 0 && (
          <tr>
            <td colSpan={10} className="muted">
              No service or operation has this in its name.
            </td>
          </tr>
        )}
        {rows.map((row, index) => {
          const facts = row.operation ?? row.service;
          const name = row.service.service;
          return (
            <tr key={`${name} ${row.operation?.operation ?? ''}`} className={row.operation ? 'op' : ''} aria-selected={index === at} onClick={() => setAt(index)} onDoubleClick={() => openView(['traces'], requestsOf(row))}>
              <td>
                {row.operation?.isRest ? (
                  <span className="muted" title="Names that hold an id have no end: only the first of each service are told apart">
                    all other operations
                  </span>
                ) : row.operation ? (
                  <a href={hrefOf(['traces'], requestsOf(row))}>{row.operation.operation}</a>
                ) : (
                  <>
                    <button className="twist" aria-label={`Operations of ${name}`} aria-expanded={open.has(name)} onClick={() => toggle(name)}>
                      {open.has(name) ? '▾' : '▸'}
                    </button>
                    <span className="service-mark" style={{ background: colours.get(name) }} />
                    <a href={hrefOf(['traces'], requestsOf(row))}>{name}</a> <span className="muted" title={counted(row.service.operations.length, 'operation')}>{row.service.operations.length || ''}</span>
                  </>
                )}
              </td>
              <td className="number">
                <Spark what="Requests" lines={oneLine('requests', facts.rate_series, 'var(--muted)')} format={(rate) => formatRate(rate, rateUnit)} span={span} /> <span className="plotted">{formatRate(facts.rate, rateUnit)}</span>
              </td>
              <td className="number">
                {facts.errors > 0 && <Spark what="Failures" lines={oneLine('failed', facts.errors_series, 'var(--error)')} format={formatCount} span={span} />} <span className={`plotted ${facts.errors > 0.005 ? 'error-text' : ''}`}>{formatShare(facts.errors)}</span>
              </td>
              <td className="range">
                <LatencyRange p50={facts.p50_ns} p95={facts.p95_ns} p99={facts.p99_ns} scale={scale} />
              </td>
              <td>
                <Spark what="Latency" lines={latencyLines(facts)} format={formatDuration} span={span} width={120} height={22} />
              </td>
              <td className="number">{formatDuration(facts.p50_ns)}</td>
              <td className="number">{formatDuration(facts.p95_ns)}</td>
              <td className="number">{formatDuration(facts.p99_ns)}</td>
              {hasCpu && (
                <td className="number">
                  <Spark what="CPU per request" lines={oneLine('CPU per request', facts.cpu_ns_per_request_series, 'var(--cpu)')} format={formatDuration} span={span} /> <span className="plotted">{facts.cpu_ns_per_request === null || facts.cpu_ns_per_request === undefined ? '' : formatDuration(facts.cpu_ns_per_request)}</span>
                </td>
              )}
              <td className="links">
                {row.operation?.isRest || (
                  <>
                    <a href={row.operation ? hrefOf(['traces'], requestsOf(row)) : hrefOf(['profiles'], { service: name })}>flame</a>
                    {' · '}
                    <a href={hrefOf(['explain'], explanationOf(row))}>explain</a>
                  </>
                )}
              </td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}
