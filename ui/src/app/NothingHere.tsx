// What stands where nothing is: the lines that send data, or, where some is stored at another time, the way to it.
import type { ReactNode } from 'react';
import { readStatus, type StoredSignal, storedTime } from '../api/status';
import { useAnswer } from '../api/useAnswer';
import { clockTime, dateAndTime } from '../format/clock';
import { DEFAULT_RANGE, type ResolvedRange } from '../location/timeRange';
import { setRange, useTimeRange } from '../location/useTimeRange';
import { CopyButton } from './CopyButton';
import { Empty } from './Waiting';

const HOUR_MS = 3_600_000;

/** The server's address as this page reached it: it takes OTLP, Pyroscope's and its own requests, whatever lies in between. */
const serverAddress = () => new URL('.', location.href).href.replace(/\/$/, '');

/** Looks at the store once more whenever the time range is read again. */
export function NothingHere({ signal, inRange = null }: { signal: StoredSignal; /** Where something is stored in the range, and yet nothing was found. */ inRange?: ReactNode }) {
  const { resolved } = useTimeRange();
  const status = useAnswer(`status|${resolved.toMs}`, readStatus);
  if (!status.value && !status.error) return null;
  const stored = storedTime(status.value?.store?.tables ?? [], signal);
  if (!stored) return <FirstSteps />;
  const isInRange = stored.fromMs <= resolved.toMs && stored.toMs >= resolved.fromMs;
  return isInRange && inRange ? inRange : <Elsewhere signal={signal} stored={stored} />;
}

function Elsewhere({ signal, stored: { fromMs, toMs } }: { signal: string; stored: ResolvedRange }) {
  const isOneDay = new Date(fromMs).toDateString() === new Date(toMs).toDateString();
  // What still arrives is best looked at with a range that moves along.
  const showLatest = () => setRange(toMs > Date.now() - HOUR_MS ? DEFAULT_RANGE : { from: String(Math.floor(Math.max(fromMs, toMs - HOUR_MS))), to: String(Math.ceil(toMs) + 1) });
  return (
    <Empty title={`No ${signal} in this time range`}>
      <p>
        Stored are {signal} from {dateAndTime(fromMs)} to {isOneDay ? clockTime(toMs) : dateAndTime(toMs)}.
      </p>
      <button className="primary" onClick={showLatest}>
        Show the latest
      </button>
    </Empty>
  );
}

function FirstSteps() {
  const address = serverAddress();
  const steps: [what: string, line: string][] = [
    ['Send traces: any OpenTelemetry SDK or collector', `export OTEL_EXPORTER_OTLP_ENDPOINT=${address}`],
    ['Send profiles: any Pyroscope SDK', `export PYROSCOPE_SERVER_ADDRESS=${address}`],
    ['or a file', `hotspan push cpu.pb.gz --service my-service --server ${address}`],
  ];
  return (
    <div className="first-steps">
      <h1>Nothing has arrived yet</h1>
      <p>One of these lines sends data here. This page fills as soon as the first of it comes.</p>
      <ol>
        {steps.map(([what, line]) => (
          <li key={what}>
            {what}
            <div className="row">
              <pre className="grow">{line}</pre>
              <CopyButton text={line} />
            </div>
          </li>
        ))}
      </ol>
      <p className="muted">
        To look around first: stop this server and start <code>hotspan demo</code>, a small shop with problems to find.
      </p>
    </div>
  );
}
