// Java. The quick run has the agent that most services use; the others take a minute more.
const functions = [/Checkout\.parseTaxTable\b/, /Catalogue\.rankProducts\b/];
const common = { language: 'java', needs: ['java', 'mvn'], slow: true, functions, type: 'cpu', linksTo: 'root', exit: 143 };
const uploading = { PYROSCOPE_UPLOAD_INTERVAL: '2s' };

export default [
  {
    ...common,
    mode: 'extension',
    client: 'OpenTelemetry agent with the Pyroscope extension',
    packages: ['opentelemetry-javaagent', 'otel'],
    choosesBy: 'trace',
    // This version of the extension sends span ids without trace ids.
    namesTrace: false,
    inherits: true,
    env: uploading,
    uploadsLate: true,
  },
  {
    ...common,
    mode: 'agent',
    slow: false,
    client: 'OpenTelemetry agent with the Pyroscope agent',
    packages: ['opentelemetry-javaagent', 'agent', 'otel'],
    choosesBy: 'trace',
    namesTrace: false,
    inherits: true,
    env: uploading,
    uploadsLate: true,
  },
  {
    ...common,
    mode: 'request',
    rollsDice: true,
    client: 'async-profiler JFR per request with its spans, uploaded',
    packages: ['opentelemetry-javaagent', 'async-profiler'],
    oneAtATime: true,
    inherits: true,
  },
  {
    ...common,
    mode: 'request-otlp',
    client: 'async-profiler OTLP per request, uploaded',
    packages: ['opentelemetry-javaagent', 'async-profiler'],
    oneAtATime: 'alone',
    // The recording holds the whole process, with the threads that compile.
    atLeast: 0.2,
  },
];
