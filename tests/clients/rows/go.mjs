// Go.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

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
    rollsDice: true,
    client: '`pprof.Do` labels, CPU profiles uploaded',
    packages: ['go.opentelemetry.io/otel/sdk'],
    linksTo: 'span',
  },
  {
    ...common,
    mode: 'scrape',
    // It waits for whole scrapes, four of them: not for every `make test`.
    slow: true,
    scraped: { interval: 15, profiled: 14 },
    client: '`pprof.Do` labels, `net/http/pprof` scraped',
    packages: ['go.opentelemetry.io/otel/sdk'],
    linksTo: 'span',
    alsoSends: ['inuse_space', 'goroutine', 'mutex', 'block'],
    // A server of its own, which has to know where the service will be.
    server: ({ folder, service, port }) => {
      const file = join(folder, 'scrape.toml');
      writeFileSync(file, `[[scrape]]\nservice = "${service}"\ntargets = ["127.0.0.1:${port}"]\ninterval = "15s"\njitter = "0s"\n`);
      return ['--config', file];
    },
    uploadsLate: true,
  },
];
