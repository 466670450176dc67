import react from '@vitejs/plugin-react';
import { defineConfig } from 'vitest/config';

// Relative addresses throughout: the page must work behind a proxy that adds a path prefix.
export default defineConfig({
  base: './',
  plugins: [react()],
  worker: { format: 'es' },
  build: { target: 'es2023', sourcemap: false, chunkSizeWarningLimit: 600 },
  // The rest of the tests needs a server and a browser: `npm run e2e`.
  test: { include: ['src/**/*.test.ts'] },
  server: {
    proxy: Object.fromEntries(
      ['/api', '/querier.v1.QuerierService'].map((path) => [path, process.env.HOTSPAN ?? 'http://127.0.0.1:4040']),
    ),
  },
});
