// What stands where nothing is: the lines that send data, or, where some is stored at another time, the way to it.
import { type ReactNode, useEffect } from 'react';
import { readStatus, type StoredSignal, storedTime } from '../api/status';
import { useAnswer } from '../api/useAnswer';
import { clockTime, dateAndTime } from '../format/clock';
import { DEFAULT_RANGE, type ResolvedRange } from '../location/timeRange';
import { hrefOf } from '../location/urlState';
import { refreshNow, setRange, useTimeRange } from '../location/useTimeRange';
import { CopyButton } from './CopyButton';
import { Empty } from './Waiting';

const HOUR_MS = 3_600_000;
/** How often an empty store is looked at again. */
const LOOK_AGAIN_MS = 3000;

/** The server's address as this page reached it: it takes OTLP, Pyroscope's and its own requests, whatever lies in between. */
const serverAddress = () => new URL('.', location.href).href.replace(/\/$/, '');

/** Looks again by itself: whoever sends the first data watches this. */
export function NothingHere({ signal, inRange = null }: { signal: StoredSignal; /** Where something is stored in the range, and yet nothing was found. */ inRange?: ReactNode }) {
  const { resolved } = useTimeRange();
  const status = useAnswer(`status|${resolved.toMs}`, readStatus);
  useEffect(() => {
    const timer = setInterval(() => !document.hidden && refreshNow(), LOOK_AGAIN_MS);
    return () => clearInterval(timer);
  }, []);
  if (!status.value && !status.error) return null;
  const tables = status.value?.store?.tables ?? [];
  const stored = storedTime(tables, signal);
  if (!stored) return <FirstSteps signal={signal} hasOther={storedTime(tables, signal === 'spans' ? 'samples' : 'spans') !== null} />;
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

function FirstSteps({ signal, hasOther }: { signal: StoredSignal; hasOther: boolean }) {
  const address = serverAddress();
  const steps: [what: string, line: string][] = [
    ['Send traces: any OpenTelemetry SDK or collector', `export OTEL_EXPORTER_OTLP_ENDPOINT=${address}`],
    ['Send profiles: any Pyroscope SDK', `export PYROSCOPE_SERVER_ADDRESS=${address}`],
    ['Send a profile in a file', `hotspan push cpu.pb.gz --service my-service --server ${address}`],
  ];
  return (
    <div className="first-steps">
      <h1>{hasOther ? `No ${signal} have arrived yet` : 'Nothing has arrived yet'}</h1>
      {hasOther && (
        <p>
          {signal === 'spans' ? 'Profiles' : 'Traces'} have: <a href={hrefOf([signal === 'spans' ? 'profiles' : 'traces'])}>look at them</a>.
        </p>
      )}
      <p>These lines send data here. This page fills as soon as the first of it comes.</p>
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
