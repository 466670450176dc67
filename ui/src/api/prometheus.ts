// The server's own counters, as Prometheus reads them.

export interface MetricPoint {
  name: string;
  labels: Readonly<Record<string, string>>;
  value: number;
}

export function parseMetrics(text: string): MetricPoint[] {
  const points: MetricPoint[] = [];
  for (const line of text.split('\n')) {
    const parts = /^([a-zA-Z_:][\w:]*)(?:\{([^}]*)\})?\s+(\S+)/.exec(line);
    if (!parts) continue;
    const labels: Record<string, string> = {};
    for (const pair of (parts[2] ?? '').matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) labels[pair[1]!] = pair[2]!;
    points.push({ name: parts[1]!, labels, value: Number(parts[3]) });
  }
  return points;
}
