// Rust.
// What was parsed is given back by whoever had it parsed.
const functions = [/\blookup_tax_rate\b/, /\brank_products\b/];
const common = { language: 'rust', needs: ['cargo'], functions, type: 'cpu', linksTo: 'span' };

export default [
  {
    ...common,
    mode: 'hotspan',
    rollsDice: true,
    client: 'hotspan-profiler with OpenTelemetry',
    packages: ['hotspan-profiler', 'opentelemetry_sdk'],
    choosesBy: 'trace',
  },
  { ...common, mode: 'pyroscope', client: 'pyroscope crate with tags', packages: ['pyroscope', 'opentelemetry_sdk'] },
];
