// Which service the page is about: one choice for all views.
import { readLabelValues } from '../api/profiles';
import { readTagValues } from '../api/traces';
import { useAnswer } from '../api/useAnswer';
import { changeParams, usePageLocation } from '../location/urlState';
import { useTimeRange } from '../location/useTimeRange';

/** What belongs to the service before: its question, its selection, its place in the graph. */
const FORGOTTEN = { q: null, box: null, pick: null, cmp: null, labels: null, zoom: null, win: null, sel: null, fn: null, tf: null };

export function ServicePicker() {
  const { params, path } = usePageLocation();
  const { resolved } = useTimeRange();
  const answer = useAnswer(`services|${resolved.fromMs}|${resolved.toMs}`, async (signal) => {
    // A service may send only traces or only profiles; one failing list must not hide the other.
    const lists = await Promise.allSettled([
      readTagValues('resource.service.name', resolved, signal).then((values) => values.map((known) => known.value)),
      readLabelValues('service_name', [], resolved, signal),
    ]);
    const [, profiled] = lists;
    return { all: [...new Set(lists.flatMap((list) => (list.status === 'fulfilled' ? list.value : [])))].sort(), firstProfiled: profiled.status === 'fulfilled' ? profiled.value[0] : undefined };
  });
  // A flame graph is of one service: where none is chosen, the view takes the first that has profiles.
  const isOfOne = path[0] === 'profiles' || path[0] === 'compare';
  const service = params.service ?? (isOfOne ? (answer.value?.firstProfiled ?? '') : '');
  return (
    <select aria-label="Service" className="service-picker" value={service} onChange={(event) => changeParams({ ...FORGOTTEN, service: event.target.value || null })}>
      {!(isOfOne && service) && <option value="">all services</option>}
      {[...new Set([...(answer.value?.all ?? []), ...(service ? [service] : [])])].map((name) => (
        <option key={name}>{name}</option>
      ))}
    </select>
  );
}
