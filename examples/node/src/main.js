// An order service whose slow requests lead to a line of code.
//
// POST /api/checkout?items=N   adds up an order; the tax on it is the slow part
// GET  /api/search?words=N     ranks the catalogue; other code, to tell requests apart by
//
// Requests go through OpenTelemetry as usual. Which profiler runs beside it is the first argument: see README.md.
import { createServer } from 'node:http';

import { checkout } from './checkout.js';
import { isChosen } from './head_sampling.js';
import { startProfiler } from './profiler.js';
import { search } from './search.js';
import { startTracing, traceRequest } from './tracing.js';

const mode = process.argv[2] ?? 'pyroscope';
const tracing = startTracing();
const profiler = startProfiler(mode);

const routes = {
  'POST /api/checkout': async (query, work) => ({ total: await checkout(number(query, 'items', 20), work) }),
  'GET /api/search': async (query, work) => ({ best: await search(number(query, 'words', 20), work) }),
};

const server = createServer((request, response) => {
  const url = new URL(request.url, 'http://localhost');
  const route = `${request.method} ${url.pathname}`;
  const handle = routes[route];
  if (!handle) return answer(response, 404, { error: `there is no ${route}` });
  const chosen = isChosen(request);
  traceRequest(request, route, async (span) => {
    try {
      const body = await profiler.request(chosen, span, (work) => handle(url.searchParams, work));
      answer(response, 200, body);
    } catch (error) {
      span.recordException(error);
      answer(response, 500, { error: String(error) });
    }
  });
});

function answer(response, status, body) {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

// A demonstration needs no more than 100,000 of anything.
function number(query, name, otherwise) {
  const value = Number(query.get(name) ?? otherwise);
  return Number.isInteger(value) && value >= 0 && value <= 100_000 ? value : otherwise;
}

server.listen(Number(process.env.PORT ?? 8080), '127.0.0.1', () => {
  console.log(`order-service listens on http://127.0.0.1:${server.address().port}, profiler: ${mode}`);
});

// What is still in memory goes out before the process ends.
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => {
    server.closeIdleConnections();
    server.close(async () => {
      await profiler.stop();
      await tracing.shutdown();
      process.exit(0);
    });
  });
}
