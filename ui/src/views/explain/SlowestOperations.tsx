// Nothing asked yet: what is slow right now, each one click from its explanation.
import { readServices } from '../../api/services';
import { useAnswer } from '../../api/useAnswer';
import { NothingHere } from '../../app/NothingHere';
import { Shown } from '../../app/Waiting';
import { formatDuration, formatRate, rateUnitFor } from '../../format/units';
import type { ResolvedRange } from '../../location/timeRange';
import { hrefOf } from '../../location/urlState';
import { slowestOf } from '../../traceql/narrow';

const SHOWN = 8;

export function SlowestOperations({ range }: { range: ResolvedRange }) {
  const answer = useAnswer(`services|${range.fromMs}|${range.toMs}`, (signal) => readServices(range, signal));
  return (
    <Shown answer={answer} what="what is slow">
      {({ services }) => {
        const slowest = services
          .flatMap((service) => service.operations.map((operation) => ({ ...operation, service: service.service })))
          .filter((operation) => operation.p95_ns > 0)
          .sort((a, b) => b.p95_ns - a.p95_ns)
          .slice(0, SHOWN);
        if (slowest.length === 0) return <NothingHere signal="spans" />;
        const rateUnit = rateUnitFor(slowest.map((operation) => operation.rate));
        return (
          <section className="panel slowest" aria-label="Slowest operations">
            <h2>Slowest operations: explain their slowest twentieth</h2>
            <table>
              <tbody>
                {slowest.map(({ service, operation, rate, p50_ns, p95_ns }) => (
                  <tr key={`${service} ${operation}`}>
                    <td>
                      <a href={hrefOf(['explain'], { target: slowestOf(service, operation, p95_ns) })}>
                        <span className="muted">{service}</span> {operation}
                      </a>
                    </td>
                    <td className="number extra">{formatRate(rate, rateUnit)}</td>
                    <td className="number extra">
                      {formatDuration(p50_ns)} <span className="muted">P50</span>
                    </td>
                    <td className="number">
                      <b>{formatDuration(p95_ns)}</b> <span className="muted">P95</span>
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </section>
        );
      }}
    </Shown>
  );
}
