// Go.
const functions = [/\bmain\.parseTaxTable\b/, /\bmain\.rankProducts\b/];
const common = { language: 'go', needs: ['go'], functions, type: 'cpu' };

export default [
  {
    ...common,
    mode: 'pyroscope',
    client: 'pyroscope-go with otel-profiling-go',
    packages: ['github.com/grafana/pyroscope-go', 'github.com/grafana/otel-profiling-go', 'go.opentelemetry.io/otel/sdk'],
    linksTo: 'root',
    // What the whole process sends besides.
    alsoSends: ['alloc_objects', 'alloc_space', 'inuse_objects', 'inuse_space', 'goroutine', 'mutex', 'block'],
  },
  {
    ...common,
    mode: 'pprof',
    client: '`pprof.Do` labels, CPU profiles uploaded',
    packages: ['go.opentelemetry.io/otel/sdk'],
    linksTo: 'span',
  },
];
