// What stands behind a number. Every flame graph, diff and cohort answer may carry it; the evidence strip shows it.

export interface Exactness {
  samples?: number;
  spans?: number;
  /** Share of samples that name their span themselves, 0..1. */
  exact_share?: number;
  inherited?: number;
  inferred?: number;
  pruned_nodes?: number;
  /** Value folded away by pruning, in the profile's unit. */
  pruned_value?: number;
  dropped?: number;
  /** Share of the spans' time that samples or child spans explain, 0..1. */
  coverage?: number;
  /** Nanoseconds (or bytes) one sample stands for. */
  interval?: number;
  notes?: string[];
}
