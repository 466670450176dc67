import type { StoreTable as StoredTable } from '../../api/status';
import { dateAndTime, utc } from '../../format/clock';
import { formatBytes, formatCount } from '../../format/units';

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

const DAY_MS = 86_400_000;

function When({ time }: { time: number | string | null | undefined }) {
  const ms = millisOf(time);
  if (ms === null) return <span className="muted">–</span>;
  // Names of code are kept by the day, in UTC.
  return <span title={utc(ms)}>{ms % DAY_MS === 0 ? `${utc(ms).slice(0, 10)}, the day` : dateAndTime(ms)}</span>;
}

/** Rows, bytes and age of what is stored, by table and level. */
export function StoreTable({ tables, path }: { tables: readonly StoredTable[]; path: string }) {
  if (tables.length === 0) return null;
  const bytes = tables.reduce((sum, table) => sum + table.bytes, 0);
  return (
    <section className="panel">
      <h2>
        Store <span className="muted">{formatBytes(bytes)} in {formatCount(tables.reduce((sum, table) => sum + table.segments, 0))} segments</span> {path && <code className="muted">{path}</code>}
      </h2>
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
          {tables.map((table, index) => (
            <tr key={`${table.table} ${table.level}`}>
              <td>{tables[index - 1]?.table === table.table ? '' : table.table}</td>
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
  );
}
