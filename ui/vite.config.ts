import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

// Relative addresses throughout: the page must work behind a proxy that adds a path prefix.
export default defineConfig({
  base: './',
  plugins: [react()],
  worker: { format: 'es' },
  build: { target: 'es2023', sourcemap: false, chunkSizeWarningLimit: 600 },
  server: {
    proxy: Object.fromEntries(
      ['/api', '/querier.v1.QuerierService'].map((path) => [path, process.env.HOTSPAN ?? 'http://127.0.0.1:4040']),
    ),
  },
});
