import type { ScrapeTarget } from '../../api/status';
import { formatCount } from '../../format/units';

/** Services that the server asks for their profiles, and how that goes. */
export function TargetsTable({ targets }: { targets: readonly ScrapeTarget[] }) {
  if (targets.length === 0) return null;
  return (
    <section className="panel">
      <h2>Scraped targets</h2>
      <table>
        <thead>
          <tr>
            <th>Service</th>
            <th>Target</th>
            <th>Profile</th>
            <th>Health</th>
            <th className="number">Scrapes</th>
            <th className="number">Failed</th>
            <th>Last error</th>
          </tr>
        </thead>
        <tbody>
          {targets.map((target) => (
            <tr key={`${target.service} ${target.target} ${target.profile}`}>
              <td>{target.service}</td>
              <td className="mono">{target.target}</td>
              <td>{target.profile}</td>
              <td className={target.health === 'down' ? 'error-text' : ''}>{target.health === 'down' ? '✕ down' : target.health}</td>
              <td className="number">{formatCount(target.scrapes ?? 0)}</td>
              <td className="number">{formatCount(target.failures ?? 0)}</td>
              <td className="error-text">{target.last_error}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
