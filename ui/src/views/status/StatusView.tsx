// What the server holds and does, as it tells it; fields it adds later show up by themselves.
import { readStatus, type ServerStatus } from '../../api/status';
import { useAnswer } from '../../api/useAnswer';
import { Shown } from '../../app/Waiting';
import { dateAndTime, utc } from '../../format/clock';
import { formatBytes, formatCount, formatDuration, formatShare } from '../../format/units';
import { useEffect, useState } from 'react';

/** Times come as ns, µs, ms, s or text; the number of digits tells which. */
function millisOf(time: number | string | null | undefined): number | null {
  if (time === null || time === undefined || time === '' || time === 0) return null;
  const value = Number(time);
  if (!Number.isFinite(value)) return Date.parse(String(time)) || null;
  if (value > 1e17) return value / 1e6;
  if (value > 1e14) return value / 1e3;
  if (value > 1e11) return value;
  return value * 1e3;
}

function When({ time }: { time: number | string | null | undefined }) {
  const ms = millisOf(time);
  return ms === null ? <span className="muted">–</span> : <span title={utc(ms)}>{dateAndTime(ms)}</span>;
}

const words = (key: string) => key.replaceAll('_', ' ');

function valueOf(key: string, value: unknown): string {
  if (typeof value === 'number') {
    if (/bytes/.test(key)) return formatBytes(value);
    if (/_ns$/.test(key)) return formatDuration(value);
    if (/_ms$/.test(key)) return formatDuration(value * 1e6);
    if (/_s$/.test(key)) return formatDuration(value * 1e9);
    if (/share|coverage|ratio/.test(key) || (value > 0 && value < 1)) return formatShare(value);
    return formatCount(value);
  }
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  return value === null || value === undefined ? '–' : typeof value === 'string' ? value : JSON.stringify(value);
}

function Facts({ title, facts }: { title: string; facts: Record<string, unknown> }) {
  const plain = Object.entries(facts).filter(([, value]) => value === null || typeof value !== 'object');
  const nested = Object.entries(facts).filter(([, value]) => value !== null && typeof value === 'object' && !Array.isArray(value)) as [string, Record<string, unknown>][];
  return (
    <>
      {plain.length > 0 && (
        <section className="panel" style={{ minWidth: 260 }}>
          <h2>{words(title)}</h2>
          <dl className="facts" style={{ padding: 12 }}>
            {plain.map(([key, value]) => (
              <div key={key} style={{ display: 'contents' }}>
                <dt>{words(key)}</dt>
                <dd className={/drop|reject|error|fail/.test(key) && Number(value) > 0 ? 'error-text' : ''}>{valueOf(key, value)}</dd>
              </div>
            ))}
          </dl>
        </section>
      )}
      {nested.map(([key, value]) => (
        <Facts key={key} title={`${title} ${key}`} facts={value} />
      ))}
    </>
  );
}

export default function StatusView() {
  const [round, setRound] = useState(0);
  const answer = useAnswer(`status|${round}`, readStatus);
  useEffect(() => {
    const timer = setInterval(() => !document.hidden && setRound((count) => count + 1), 5000);
    return () => clearInterval(timer);
  }, []);
  return (
    <div className="view-body" tabIndex={0} role="region" aria-label="Status">
      <Shown answer={answer} what="the status">
        {(status) => <StatusPage status={status} />}
      </Shown>
    </div>
  );
}

function StatusPage({ status }: { status: ServerStatus }) {
  const { store, ingest, listeners, version, ready, uptime_s, tenant, ...others } = status;
  const tables = store?.tables ?? [];
  return (
    <div style={{ display: 'flex', flexDirection: 'column', gap: 12 }}>
      <div className="row">
        <h1>Hotspan {version}</h1>
        <b className={ready ? '' : 'error-text'}>{ready ? '● ready' : '✕ not ready'}</b>
        {uptime_s !== undefined && <span className="muted">up {formatDuration(uptime_s * 1e9)}</span>}
        {tenant && <span className="muted">tenant {tenant}</span>}
      </div>
      {listeners && (
        <div className="row muted">
          {listeners.map((listener) => (
            <span key={listener.name + listener.address}>
              {listener.name} <code>{listener.address}</code>
            </span>
          ))}
        </div>
      )}
      <div style={{ display: 'flex', gap: 12, flexWrap: 'wrap', alignItems: 'flex-start' }}>
        {ingest && <Facts title="ingest" facts={ingest} />}
        {Object.entries(others).map(([key, value]) => (value && typeof value === 'object' && !Array.isArray(value) ? <Facts key={key} title={key} facts={value as Record<string, unknown>} /> : null))}
      </div>
      {tables.length > 0 && (
        <section className="panel">
          <h2>Store</h2>
          <table>
            <thead>
              <tr>
                <th>Table</th>
                <th className="number">Level</th>
                <th className="number">Segments</th>
                <th className="number">Rows</th>
                <th className="number">Bytes</th>
                <th className="number">Bytes a row</th>
                <th>From</th>
                <th>To</th>
              </tr>
            </thead>
            <tbody>
              {tables.map((table) => (
                <tr key={`${table.table} ${table.level}`}>
                  <td>{table.table}</td>
                  <td className="number">{table.level}</td>
                  <td className="number">{formatCount(table.segments)}</td>
                  <td className="number">{formatCount(table.rows)}</td>
                  <td className="number">{formatBytes(table.bytes)}</td>
                  <td className="number">{table.rows > 0 ? formatBytes(table.bytes / table.rows) : ''}</td>
                  <td>
                    <When time={table.min_time} />
                  </td>
                  <td>
                    <When time={table.max_time} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
    </div>
  );
}
