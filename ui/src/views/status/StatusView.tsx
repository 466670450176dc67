// What the server holds and does, whether anything was lost, and how well its data can answer.
import './status.css';
import { useEffect, useRef, useState } from 'react';
import { parseMetrics } from '../../api/prometheus';
import { address, getText } from '../../api/request';
import { readStatus, readTargets, type ServerStatus } from '../../api/status';
import { useAnswer } from '../../api/useAnswer';
import { Shown } from '../../app/Waiting';
import { Spark } from '../../charts/Spark';
import { formatBytes, formatCount, formatDuration, formatRate, formatShare } from '../../format/units';
import { useTimeRange } from '../../location/useTimeRange';
import { readCoverage } from './coverage';
import { CoveragePanel } from './CoveragePanel';
import { StoreTable } from './StoreTable';
import { TargetsTable } from './TargetsTable';

const POLL_MS = 2000;
const KEPT_POLLS = 60;

/** Counters of one look at the server. */
interface Look {
  at: number;
  counters: Readonly<Record<string, number>>;
}

const numbersOf = (facts: Record<string, unknown> | undefined): Record<string, number> => Object.fromEntries(Object.entries(facts ?? {}).filter((entry): entry is [string, number] => typeof entry[1] === 'number'));

/** Growth per second between looks, oldest first. */
function ratesOf(looks: readonly Look[], counter: string): number[] {
  return looks.slice(1).map((look, index) => Math.max(0, ((look.counters[counter] ?? 0) - (looks[index]!.counters[counter] ?? 0)) / ((look.at - looks[index]!.at) / 1000)));
}

export default function StatusView() {
  const [round, setRound] = useState(0);
  const { resolved } = useTimeRange();
  const answer = useAnswer(`status|${round}`, readStatus);
  const metrics = useAnswer(`metrics|${round}`, (signal) => getText(address('/metrics'), signal));
  const targets = useAnswer(`targets|${round}`, (signal) => readTargets(signal).catch(() => []));
  const coverage = useAnswer(`coverage|${resolved.fromMs}|${resolved.toMs}`, (signal) => readCoverage(resolved, signal));
  const [looks, setLooks] = useState<readonly Look[]>([]);
  const seen = useRef<ServerStatus | null>(null);
  useEffect(() => {
    const timer = setInterval(() => !document.hidden && setRound((count) => count + 1), POLL_MS);
    return () => clearInterval(timer);
  }, []);
  useEffect(() => {
    if (!answer.value || answer.value === seen.current) return;
    seen.current = answer.value;
    const look = { at: performance.now(), counters: numbersOf(answer.value.ingest) };
    setLooks((before) => [...before.slice(-KEPT_POLLS), look]);
  }, [answer.value]);
  return (
    <div className="view-body" tabIndex={0} role="region" aria-label="Status">
      <Shown answer={answer} what="the status">
        {(status) => (
          <div className="status">
            <Headline status={status} />
            <div className="tiles">
              <RateTile title="spans in" looks={looks} counter="spans" status={status} />
              <RateTile title="samples in" looks={looks} counter="samples" status={status} />
              <RateTile title="bytes written" looks={looks} counter="bytes" status={status} bytes />
              <Lost status={status} metrics={metrics.value ?? ''} />
              <Queries queries={status.queries} />
            </div>
            <CoveragePanel answer={coverage} />
            <TargetsTable targets={targets.value ?? []} />
            <StoreTable tables={status.store?.tables ?? []} path={typeof status.store?.path === 'string' ? status.store.path : ''} />
            <Others status={status} />
          </div>
        )}
      </Shown>
    </div>
  );
}

function Headline({ status }: { status: ServerStatus }) {
  const nodes = Array.isArray(status.nodes) ? status.nodes.length : 1;
  return (
    <div className="row">
      <h1>Hotspan {status.version}</h1>
      <b className={status.ready ? 'good-text' : 'error-text'}>{status.ready ? '● ready' : '✕ not ready'}</b>
      {status.uptime_s !== undefined && <span className="muted">up {formatDuration(status.uptime_s * 1e9)}</span>}
      <span className="muted">
        {nodes === 1 ? 'one node' : `${nodes} nodes`}, tenant {status.tenant ?? 'anonymous'}
      </span>
      <span className="grow" />
      {(status.listeners ?? []).map((listener) => (
        <span key={listener.name + listener.address} className="muted">
          {listener.name} <code>{listener.address}</code>
        </span>
      ))}
    </div>
  );
}

function RateTile({ title, looks, counter, status, bytes = false }: { title: string; looks: readonly Look[]; counter: string; status: ServerStatus; bytes?: boolean }) {
  const rates = ratesOf(looks, counter);
  const recent = rates.slice(-5);
  const rate = recent.length > 0 ? recent.reduce((sum, value) => sum + value, 0) / recent.length : null;
  const total = Number(status.ingest?.[counter] ?? 0);
  return (
    <section className="panel tile">
      <h2>{title}</h2>
      <b>{rate === null ? '…' : bytes ? `${formatBytes(rate)}/s` : formatRate(rate, 's')}</b>
      <Spark what={title} lines={[{ label: title, values: rates, colour: 'var(--accent)' }]} format={(value) => (bytes ? `${formatBytes(value)}/s` : formatRate(value, 's'))} width={120} height={22} />
      <span className="muted">{bytes ? formatBytes(total) : formatCount(total)} since the start</span>
    </section>
  );
}

/** Nothing is dropped silently: what was refused, by reason, and what could not be stored. */
function Lost({ status, metrics }: { status: ServerStatus; metrics: string }) {
  const reasons = parseMetrics(metrics).filter((point) => /_(rejected_items|refused_requests)_total$/.test(point.name) && !point.name.includes('ingest_') && point.value > 0);
  const failed = Number(status.ingest?.failed_batches ?? 0);
  const duplicates = Number(status.ingest?.duplicate_spans ?? 0) + Number(status.ingest?.duplicate_profiles ?? 0);
  const lost = reasons.reduce((sum, point) => sum + point.value, 0) + failed;
  return (
    <section className="panel tile">
      <h2>refused or failed</h2>
      <b className={lost > 0 ? 'error-text' : ''}>{formatCount(lost)}</b>
      {reasons.map((point) => (
        <span key={JSON.stringify(point.labels) + point.name} className="error-text">
          {formatCount(point.value)} {point.labels.signal} {point.name.includes('rejected') ? 'rejected alone' : `refused: ${point.labels.reason ?? ''}`}
        </span>
      ))}
      {failed > 0 && <span className="error-text">{formatCount(failed)} batches not stored</span>}
      <span className="muted">{formatCount(duplicates)} retries counted once · queue {formatShare(Number(status.ingest?.queue_share ?? 0))} full</span>
    </section>
  );
}

function Queries({ queries }: { queries: unknown }) {
  const facts = numbersOf(queries as Record<string, unknown> | undefined);
  if (Object.keys(facts).length === 0) return null;
  return (
    <section className="panel tile">
      <h2>questions</h2>
      <b>{formatCount(facts.running ?? 0)} running</b>
      <span>
        {formatCount(facts.answered ?? 0)} answered, mean {formatDuration(facts.mean_ns ?? 0)}, slowest {formatDuration(facts.slowest_ns ?? 0)}
      </span>
      <span className={(facts.failed ?? 0) > 0 ? 'error-text' : 'muted'}>
        {formatCount(facts.failed ?? 0)} failed, {formatCount(facts.cancelled ?? 0)} cancelled
      </span>
    </section>
  );
}

/** Sections that have no place of their own yet: shown as they come, so that nothing the server says is hidden. */
function Others({ status }: { status: ServerStatus }) {
  const known = ['version', 'ready', 'uptime_s', 'listeners', 'tenant', 'store', 'ingest', 'queries', 'nodes'];
  const sections = Object.entries(status).filter(([key, value]) => !known.includes(key) && value !== null && typeof value === 'object' && !Array.isArray(value)) as [string, Record<string, unknown>][];
  return (
    <div className="tiles">
      {sections.map(([title, facts]) => (
        <section key={title} className="panel tile">
          <h2>{title.replaceAll('_', ' ')}</h2>
          <dl className="facts">
            {Object.entries(facts)
              .filter(([, value]) => value === null || typeof value !== 'object')
              .map(([key, value]) => (
                <div key={key} style={{ display: 'contents' }}>
                  <dt>{factName(key)}</dt>
                  <dd className={/drop|reject|error|fail/.test(key) && Number(value) > 0 ? 'error-text' : ''}>{valueText(key, value)}</dd>
                </div>
              ))}
          </dl>
        </section>
      ))}
    </div>
  );
}

/** The value says its unit itself. */
const factName = (key: string) => key.replace(/_(ns|s)$/, '').replaceAll('_', ' ').replace(/^cpu$/, 'CPU');

function valueText(key: string, value: unknown): string {
  if (typeof value === 'number') {
    if (key.includes('bytes')) return formatBytes(value);
    if (key.endsWith('_ns')) return formatDuration(value);
    if (key.endsWith('_s')) return formatDuration(value * 1e9);
    if (/share|ratio/.test(key)) return formatShare(value);
    return formatCount(value);
  }
  return typeof value === 'boolean' ? (value ? 'yes' : 'no') : typeof value === 'string' ? value : '–';
}
