// Node.js.
const functions = [/\bparseTaxTable\b/, /\brankProducts\b/];
const common = { language: 'node', needs: ['node', 'npm'], functions, type: 'cpu' };

export default [
  {
    ...common,
    mode: 'pyroscope',
    rollsDice: true,
    client: '`wrapWithLabels`',
    packages: ['@pyroscope/nodejs', '@opentelemetry/sdk-trace-node'],
    linksTo: 'span',
    alsoSends: ['wall'],
  },
  {
    ...common,
    mode: 'inspector',
    client: 'inspector `.cpuprofile` per request, uploaded',
    packages: ['@opentelemetry/sdk-trace-node'],
    linksTo: 'root',
    inherits: true,
    alsoSends: ['wall'],
  },
];
