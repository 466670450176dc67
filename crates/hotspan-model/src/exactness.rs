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

/// What an answer rests on, and what it does not show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Exactness {
    /// Samples (or, for traces, spans) that were counted.
    pub samples: u64,
    /// Distinct spans that the samples belong to, where the question was about spans.
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
    /// Whether the edges of the time range had to be rounded to rollup windows, since raw samples have expired.
    pub rounded_edges: bool,
    /// Samples that ingest rejected while data of this time came in, as far as this process knows.
    pub dropped: u64,
    /// Segments read, and segments left out because their statistics excluded them.
    pub segments_read: u64,
    /// Segments whose statistics showed that they hold nothing for this question.
    pub segments_pruned: u64,
}

impl Exactness {
    /// Adds up what two parts of an answer rest on.
    pub fn merge(&mut self, other: &Self) {
        self.samples += other.samples;
        self.spans += other.spans;
        self.linked_samples += other.linked_samples;
        self.inherited_samples += other.inherited_samples;
        self.inferred_samples += other.inferred_samples;
        self.pruned_nodes += other.pruned_nodes;
        self.pruned_value += other.pruned_value;
        self.unresolved_paths += other.unresolved_paths;
        self.rounded_edges |= other.rounded_edges;
        self.dropped += other.dropped;
        self.segments_read += other.segments_read;
        self.segments_pruned += other.segments_pruned;
    }
}
