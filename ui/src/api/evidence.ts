// What stands behind a number. Every answer may carry it; the evidence strip shows it.

export interface Exactness {
  samples?: number;
  spans?: number;
  /** Spans that the question found, where more than could be looked at. */
  selected_spans?: number;
  is_cut?: boolean;
  /** Of the selected spans, those that have samples. */
  spans_with_samples?: number;
  /** All spans with samples, where those below or beside the selected ones count too. */
  scope_spans_with_samples?: number;
  /** Share of samples that name their span themselves, 0..1. */
  exact_share?: number;
  /** Samples that name a span, where the server gives the count and not the share. */
  linked_samples?: number;
  inherited?: number;
  inferred?: number;
  pruned_nodes?: number;
  /** Value folded away by pruning, in the profile's unit. */
  pruned_value?: number;
  /** Call paths whose names are not (yet) known. */
  unresolved_paths?: number;
  /** Whether the ends of the time range were widened to whole hours. */
  rounded_edges?: boolean;
  dropped?: number;
  segments_read?: number;
  /** How much is in samples, 0..1; of what, `coverage_of` says. */
  coverage?: number;
  /** Of the duration of the spans, the time in samples; of the time range, the part in which there are any. */
  coverage_of?: 'spans' | 'range';
  /** Share of the spans' time of which the ledger knows where it went, 0..1. */
  explained?: number;
  /** Samples that are not in the answer because there are too many. */
  samples_left_out?: number;
  /** Profiles of one moment each, such as memory in use, over which the values are summed. */
  snapshots_summed?: number;
  notes?: string[];
}
