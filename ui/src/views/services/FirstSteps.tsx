import { CopyButton } from '../../app/CopyButton';

/** First screen of a newcomer: the three lines that send data. The page looks again by itself. */
export function FirstSteps() {
  const host = location.hostname || 'localhost';
  const origin = location.origin;
  const steps: [string, string][] = [
    ['Send traces: any OpenTelemetry SDK or collector', `export OTEL_EXPORTER_OTLP_ENDPOINT=http://${host}:4318`],
    ['Send profiles: any Pyroscope SDK, or a file', `hotspan push cpu.pprof --service my-service --address ${origin}`],
    ['Or look at made-up data first', 'hotspan demo'],
  ];
  return (
    <div className="first-steps">
      <h1>Nothing has arrived yet</h1>
      <p>Three lines send data here. This page fills as soon as the first span comes.</p>
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
      <p className="muted">Data older than the chosen time range is not shown: a wider range may hold some.</p>
    </div>
  );
}
