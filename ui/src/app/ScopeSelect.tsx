// Whose samples count for a set of spans.
import type { Scope } from '../api/profiles';

const SCOPES: readonly [Scope, string][] = [
  ['span', 'the spans alone'],
  ['subtree', 'with their children'],
  ['trace', 'whole traces'],
  ['process', 'their processes'],
];

export function ScopeSelect({ value, set }: { value: Scope; set: (scope: Scope) => void }) {
  return (
    <select aria-label="Scope" value={value} onChange={(event) => set(event.target.value as Scope)}>
      {SCOPES.map(([scope, label]) => (
        <option key={scope} value={scope}>
          {label}
        </option>
      ))}
    </select>
  );
}
