// What the evidence strip says of an answer: one fact for each number that tells something.
import type { Exactness } from '../api/evidence';
import { formatCount, formatShare } from '../format/units';

export interface Fact {
  id: string;
  text: string;
  label: string;
  origin: string;
  warned?: boolean;
}

export function evidenceFacts(evidence: Exactness): Fact[] {
  const facts: Fact[] = [];
  const { samples, spans, exact_share, inherited, inferred, pruned_nodes, dropped, coverage, explained } = evidence;
  if (spans) facts.push({ id: 'spans', text: formatCount(spans), label: spans === 1 ? 'span' : 'spans', origin: 'Spans that the question selected and whose samples were looked up.' });
  if (evidence.is_cut && evidence.selected_spans) facts.push({ id: 'cut', text: formatCount(evidence.selected_spans - (spans ?? 0)), label: 'more spans left out', origin: 'The question found more spans than one answer looks at. Narrow it down by time or by attributes for exact numbers.', warned: true });
  if (evidence.spans_with_samples !== undefined && spans) facts.push({ id: 'profiled', text: formatCount(evidence.spans_with_samples), label: 'with samples', origin: 'Spans that have at least one sample of this type. Spans shorter than the sampling interval often have none.' });
  if (evidence.scope_spans_with_samples !== undefined && spans) facts.push({ id: 'profiled', text: formatCount(evidence.scope_spans_with_samples), label: 'with samples in their scope', origin: 'Spans with at least one sample of this type, the selected ones and those below or beside them that were asked for.' });
  if (samples !== undefined) facts.push({ id: 'samples', text: formatCount(samples), label: samples === 1 ? 'sample' : 'samples', origin: 'Stack samples that were added up for this answer.', warned: samples < 8 });
  if (evidence.snapshots_summed) facts.push({ id: 'summed', text: formatCount(evidence.snapshots_summed), label: 'profiles summed', origin: 'A profile of this type says what there was at one moment, and values are sums over all of these: shares are right, and an amount divided by the number of profiles is what there was on average.' });
  if (exact_share === undefined && evidence.linked_samples && samples) {
    // Sums over time do not remember spans: their zero means "not known".
    facts.push({ id: 'linked', text: formatShare(evidence.linked_samples / samples), label: 'linked', origin: 'Share of these samples that name the span they ran in.' });
  }
  if (exact_share !== undefined) {
    facts.push({ id: 'exact', text: formatShare(exact_share), label: 'exact', origin: 'Share of these samples that name their span themselves. The others were given to spans by thread and time.', warned: exact_share < 0.5 });
  }
  if (inherited) facts.push({ id: 'inherited', text: formatCount(inherited), label: 'inherited', origin: 'Samples that name the local root only; a child span covers their time on the same thread.' });
  if (inferred) facts.push({ id: 'inferred', text: formatCount(inferred), label: 'inferred', origin: 'Samples without any span id, matched by thread and time overlap alone.', warned: true });
  if (evidence.samples_left_out) facts.push({ id: 'left-out', text: formatCount(evidence.samples_left_out), label: 'more samples left out', origin: 'There are more samples than one picture holds. A smaller scope shows all of its own.', warned: true });
  if (coverage !== undefined && evidence.coverage_of === 'range') {
    facts.push({ id: 'coverage', text: formatShare(coverage), label: 'of this time profiled', origin: 'Share of the time range in which there are any samples, in windows of 15 seconds; in hours, where the range is long. In the rest no profiler ran, or nothing that it could see did.', warned: coverage < 0.5 });
  } else if (coverage !== undefined) {
    facts.push({ id: 'coverage', text: formatShare(coverage), label: 'of their time sampled', origin: 'Time in these samples as a share of the duration of the spans. The ledger above the graph says where the rest went.' });
  }
  if (explained !== undefined) facts.push({ id: 'explained', text: formatShare(1 - explained), label: 'of time unexplained', origin: 'Share of the spans’ duration that neither samples nor child spans account for.', warned: explained < 0.5 });
  if (pruned_nodes) facts.push({ id: 'pruned', text: formatCount(pruned_nodes), label: 'frames pruned', origin: 'Frames too small for this answer; their value is in “other”. Zoom or focus to fetch them.' });
  if (evidence.unresolved_paths) facts.push({ id: 'unresolved', text: formatCount(evidence.unresolved_paths), label: 'paths without names', origin: 'Call paths whose symbols are not known yet; they count, but show as addresses.', warned: true });
  if (evidence.rounded_edges) facts.push({ id: 'rounded', text: 'rounded', label: 'time range', origin: 'The ends of the time range were widened to whole hours: what lies a little beside the range counts too.' });
  if (dropped !== undefined) facts.push({ id: 'dropped', text: formatCount(dropped), label: 'dropped', origin: 'Samples or spans refused or lost on the way in, in this time range.', warned: dropped > 0 });
  return facts;
}
