// Names people use for Pyroscope's five-part type ids.
import type { ProfileType } from './profiles';

export const CPU_TYPE = 'process_cpu:cpu:nanoseconds:cpu:nanoseconds';

export function unitOfType(typeId: string): string {
  const unit = typeId.split(':')[2];
  if (unit === 'count' || unit === undefined) return typeId === 'cpu' || typeId === 'wall' || typeId === 'off_cpu' ? 'nanoseconds' : 'samples';
  return unit;
}

export function typeLabel(typeId: string): string {
  const [name, sampleType] = typeId.split(':');
  return sampleType ? (name === 'process_cpu' ? sampleType : `${name} ${sampleType}`) : typeId;
}

/** CPU first, since most questions are about it. */
export function sortTypes(types: readonly ProfileType[]): ProfileType[] {
  const rank = (type: ProfileType) => (type.ID.startsWith('process_cpu:cpu') ? 0 : type.ID.startsWith('wall') ? 1 : type.ID.startsWith('off_cpu') ? 2 : 3);
  return [...types].sort((a, b) => rank(a) - rank(b) || (a.ID < b.ID ? -1 : 1));
}

/** `name="value"`; a name that is no plain word, as OTLP's with dots are, is quoted too. */
export function labelMatcher(name: string, value: string): string {
  return `${/^[a-zA-Z_]\w*$/.test(name) ? name : `"${name}"`}=${JSON.stringify(value)}`;
}

/** A label selector from pairs; values are quoted as Prometheus quotes them. */
export function selectorOf(labels: Readonly<Record<string, string>>): string {
  return `{${Object.entries(labels)
    .filter(([, value]) => value)
    .map(([name, value]) => labelMatcher(name, value))
    .join(', ')}}`;
}
