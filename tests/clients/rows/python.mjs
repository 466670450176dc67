// Python.
const functions = [/\bparse_tax_table\b/, /\brank_products\b/];
const common = { language: 'python', needs: ['python3'], functions, type: 'cpu' };

export default [
  {
    ...common,
    mode: 'otel',
    client: 'span processor of pyroscope-otel',
    packages: ['pyroscope-io', 'pyroscope-otel', 'opentelemetry-sdk'],
    linksTo: 'root',
  },
  { ...common, mode: 'tags', rollsDice: true, client: '`tag_wrapper`', packages: ['pyroscope-io', 'opentelemetry-sdk'], linksTo: 'span' },
];
