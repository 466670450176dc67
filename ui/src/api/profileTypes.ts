// Names people use for Pyroscope's five-part type ids.
import type { ProfileType } from './profiles';

export const CPU_TYPE = 'process_cpu:cpu:nanoseconds:cpu:nanoseconds';

/** Short names that the server resolves count time, unless they are named here. */
const UNIT_OF_ALIAS: Readonly<Record<string, string>> = { alloc_space: 'bytes', inuse_space: 'bytes', alloc_objects: 'objects', inuse_objects: 'objects', goroutine: 'goroutines' };

export function unitOfType(typeId: string): string {
  const [name, sampleType, unit] = typeId.split(':');
  if (unit === undefined) return UNIT_OF_ALIAS[typeId] ?? 'nanoseconds';
  return unit === 'count' ? (UNIT_OF_ALIAS[sampleType!] ?? UNIT_OF_ALIAS[name!] ?? 'samples') : unit;
}

export function typeLabel(typeId: string): string {
  const [name, sampleType] = typeId.split(':');
  return !sampleType || sampleType === name ? name! : name === 'process_cpu' ? sampleType : `${name} ${sampleType}`;
}

/** The short name for what is usual, the whole id for the rest: what the address holds either way. */
export function sameType(one: string, other: string): boolean {
  return one === other || typeLabel(one) === typeLabel(other);
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
