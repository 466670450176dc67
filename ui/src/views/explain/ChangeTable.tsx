// Did the change help? What each function costs a request, before and after.
import type { Comparison } from '../../api/explain';
import { ms } from './wording';

export function ChangeTable({ comparison: { before, after, functions } }: { comparison: Comparison }) {
  return (
    <section className="panel" aria-label="Before and after">
      <h2>What changed, per request</h2>
      <div className="change">
        <table>
          <thead>
            <tr>
              <th>Function, with what it calls</th>
              <th className="number">Before</th>
              <th className="number">After</th>
              <th className="number">Change</th>
              <th className="number">95 % interval</th>
            </tr>
          </thead>
          <tbody>
            <tr>
              <td>
                <b>the whole request, on average</b>
              </td>
              <Figures before={before.mean_ms} after={after.mean_ms} />
              <td />
            </tr>
            <tr>
              <td>the slowest of twenty</td>
              <Figures before={before.p95_ms} after={after.p95_ms} />
              <td />
            </tr>
            {functions.map((one) => (
              <tr key={`${one.service} ${one.function}`}>
                <td>
                  <span className="muted">{one.service}</span> <code className={one.is_own ? 'own' : ''}>{one.function}</code>
                </td>
                <Figures before={one.before_ms} after={one.after_ms} />
                <td className="number muted">
                  {ms(one.interval_ms[0])} to {ms(one.interval_ms[1])}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
        {functions.length === 0 && <p className="muted">No function costs more or less than chance would have it.</p>}
      </div>
    </section>
  );
}

function Figures({ before, after }: { before: number; after: number }) {
  const change = after - before;
  return (
    <>
      <td className="number">{ms(before)}</td>
      <td className="number">{ms(after)}</td>
      <td className={`number ${change > 0 ? 'more' : 'less'}`}>
        {change > 0 ? '+' : '−'}
        {ms(Math.abs(change))}
      </td>
    </>
  );
}
