import { type MetricSeries, plainValue } from '../api/traces';

/** `quantile_over_time` labels its lines by the quantile; people say P99. */
const sayValue = (key: string, value: string) => (key === 'p' ? `P${Number((Number(value) * 100).toPrecision(6))}` : value);

/** What tells the lines of a metric apart: labels that all of them share are said by the question. */
export function seriesNames(series: readonly Pick<MetricSeries, 'labels'>[]): string[] {
  const labels = series.map((line) => (line.labels ?? []).map(({ key, value }) => [key, sayValue(key, plainValue(value))] as const));
  const isShared = (key: string, value: string) => labels.every((others) => others.some(([name, other]) => name === key && other === value));
  return labels.map((own) => {
    const distinct = series.length > 1 ? own.filter(([key, value]) => !isShared(key, value)) : own;
    return (distinct.length > 0 ? distinct : own).map(([, value]) => value).join(' ') || 'all';
  });
}
