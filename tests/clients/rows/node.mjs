// Node.js.
const functions = [/\bparseTaxTable\b/, /\brankProducts\b/];
const common = { language: 'node', needs: ['node', 'npm'], functions, type: 'cpu' };

export default [
  {
    ...common,
    mode: 'pyroscope',
    client: '`wrapWithLabels`',
    packages: ['@pyroscope/nodejs', '@opentelemetry/sdk-trace-node'],
    linksTo: 'span',
    alsoSends: ['wall'],
  },
  {
    ...common,
    mode: 'inspector',
    // Now and then V8 calls most of the work `(anonymous)`: not for every `make test`.
    slow: true,
    client: 'inspector `.cpuprofile` per request, uploaded',
    packages: ['@opentelemetry/sdk-trace-node'],
    linksTo: 'root',
    alsoSends: ['wall'],
  },
];
