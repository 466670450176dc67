//! How far an answer can be trusted: every result carries this beside its numbers (R4, R9).

/// How surely a sample belongs to a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum LinkStrength {
    /// The sample names the span.
    #[default]
    Exact,
    /// The sample names the local root, and the span covers its time on the same thread.
    Inherited,
    /// Thread and time overlap, and the sample names nothing.
    Inferred,
}

/// What a [`Coverage`] is a share of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CoverageOf {
    /// Of the time that the spans asked about took: how much of it is in samples.
    Spans,
    /// Of the time asked about: how much of it has any sample, whole windows of 15 s or an hour at a time.
    Range,
}

impl CoverageOf {
    /// How answers spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Spans => "spans",
            Self::Range => "range",
        }
    }
}

/// How much of what was asked about is in samples: two lengths rather than their ratio, so that parts add up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Coverage {
    /// What it is a share of.
    pub of: CoverageOf,
    /// Nanoseconds that are in samples. Those of spans may be more than were asked about: several threads ran at once.
    pub covered: i64,
    /// Nanoseconds that were asked about.
    pub asked: i64,
}

impl Coverage {
    /// A coverage; none where no time was asked about, of which nothing can be a share.
    pub fn new(of: CoverageOf, covered: i64, asked: i64) -> Option<Self> {
        (asked > 0).then_some(Self { of, covered, asked })
    }

    /// The share, between 0 and 1.
    pub fn share(self) -> f64 {
        (self.covered as f64 / self.asked as f64).clamp(0.0, 1.0)
    }

    /// The coverage of two parts together; none if they are shares of different things.
    fn with(self, other: Self) -> Option<Self> {
        let (covered, asked) = (self.covered.saturating_add(other.covered), self.asked.saturating_add(other.asked));
        (self.of == other.of).then_some(Self { of: self.of, covered, asked })
    }
}

/// What an answer rests on, and what it does not show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Exactness {
    /// Samples that were counted; none where an answer rests on spans alone.
    pub samples: u64,
    /// Distinct spans: those that the samples belong to where the question was about spans, or those that were looked at
    /// where the answer rests on spans alone.
    pub spans: u64,
    /// Samples that name their span themselves.
    pub linked_samples: u64,
    /// Samples that name a span above theirs.
    pub inherited_samples: u64,
    /// Samples that name no span, and were matched by thread and time.
    pub inferred_samples: u64,
    /// Nodes that were folded away to keep the answer small, and the value they carry.
    pub pruned_nodes: u64,
    /// The value inside pruned nodes.
    pub pruned_value: i64,
    /// Call paths whose symbols were not found; they are shown by id.
    pub unresolved_paths: u64,
    /// Whether the edges of the time range had to be rounded: to rollup windows where raw samples have expired, or to hours,
    /// by which label sets are kept.
    pub rounded_edges: bool,
    /// How much of what was asked about is in samples; none where that can't be said: for values that are no time, for
    /// spans whose length is not known, for a time without an end, and for answers that rest on no samples.
    pub coverage: Option<Coverage>,
    /// What ingest rejected while data of this time came in, as far as this process knows: samples, or spans, or both,
    /// whichever the answer is made of.
    pub dropped: u64,
    /// Segments read, and segments left out because their statistics excluded them.
    pub segments_read: u64,
    /// Segments whose statistics showed that they hold nothing for this question.
    pub segments_pruned: u64,
}

impl Exactness {
    /// Adds up what two parts of an answer rest on. A part that says nothing of its coverage leaves that of the other.
    pub fn merge(&mut self, other: &Self) {
        self.samples += other.samples;
        self.spans += other.spans;
        self.linked_samples += other.linked_samples;
        self.inherited_samples += other.inherited_samples;
        self.inferred_samples += other.inferred_samples;
        self.pruned_nodes += other.pruned_nodes;
        self.pruned_value = self.pruned_value.saturating_add(other.pruned_value);
        self.unresolved_paths += other.unresolved_paths;
        self.rounded_edges |= other.rounded_edges;
        self.coverage = match (self.coverage, other.coverage) {
            (Some(one), Some(other)) => one.with(other),
            (one, other) => one.or(other),
        };
        self.dropped += other.dropped;
        self.segments_read += other.segments_read;
        self.segments_pruned += other.segments_pruned;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: parts of an answer that cover their spans or their time, or say nothing of it.
    /// Guarantee: lengths add up whatever the order, silence changes nothing, and shares of different things are none.
    #[test]
    fn coverage_of_parts() {
        let part =
            |of, covered, asked| Exactness { coverage: Coverage::new(of, covered, asked), ..Exactness::default() };
        let merged = |parts: &[Exactness]| {
            let mut sum = Exactness::default();
            parts.iter().for_each(|part| sum.merge(part));
            sum.coverage
        };
        let (long, short) = (part(CoverageOf::Range, 20, 90), part(CoverageOf::Range, 10, 10));
        let whole = Coverage { of: CoverageOf::Range, covered: 30, asked: 100 };
        assert_eq!(merged(&[long, Exactness::default(), short]), Some(whole));
        assert_eq!(merged(&[short, long]), Some(whole));
        assert_eq!(whole.share(), 0.3);
        assert_eq!(merged(&[long, part(CoverageOf::Spans, 1, 2)]), None);
        assert_eq!(part(CoverageOf::Spans, 1, 0).coverage, None);
        let threads = Coverage { of: CoverageOf::Spans, covered: 5, asked: 2 };
        assert_eq!(threads.share(), 1.0);
    }
}
