// Says so when the chosen range is mostly empty, and offers the part that is not.
import { clockTime } from '../format/clock';
import type { ResolvedRange } from '../location/timeRange';
import { setRange } from '../location/useTimeRange';

/** Less of the range filled than this, and a plot shows mostly nothing. */
const SPARSE = 0.4;

export function FitToData({ extent, range }: { extent: ResolvedRange | null; range: ResolvedRange }) {
  if (!extent) return null;
  const filled = (extent.toMs - extent.fromMs) / (range.toMs - range.fromMs);
  if (filled >= SPARSE) return null;
  const margin = Math.max(1000, (extent.toMs - extent.fromMs) * 0.04);
  const from = Math.max(range.fromMs, extent.fromMs - margin);
  const to = Math.min(range.toMs, extent.toMs + margin);
  return (
    <button className="fit" title="Shows only the time that holds data" onClick={() => setRange({ from: String(Math.floor(from)), to: String(Math.ceil(to)) })}>
      data from {clockTime(extent.fromMs)} to {clockTime(extent.toMs)} · fit
    </button>
  );
}
