// Which profile type: those that the chosen time holds.
import { readProfileTypes } from '../api/profiles';
import { sameType, sortTypes, typeLabel } from '../api/profileTypes';
import { useAnswer } from '../api/useAnswer';
import type { ResolvedRange } from '../location/timeRange';

interface Props {
  value: string;
  set: (type: string) => void;
  range: ResolvedRange;
}

export function TypeSelect({ value, set, range }: Props) {
  const types = useAnswer(`types|${range.fromMs}|${range.toMs}`, (signal) => readProfileTypes(range, signal));
  const others = sortTypes(types.value ?? []).map((type) => type.ID).filter((id) => !sameType(id, value));
  return (
    <select aria-label="Profile type" className="type-select" value={value} onChange={(event) => set(event.target.value)}>
      {[value, ...others].map((id) => (
        <option key={id} value={id}>
          {typeLabel(id)}
        </option>
      ))}
    </select>
  );
}
