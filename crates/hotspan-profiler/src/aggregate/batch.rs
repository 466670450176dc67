//! Samples of one upload, summed by what they have in common.

use super::profile_type::ProfileType;
use crate::context::SpanKey;
use crate::sampler::modules::Module;
use std::collections::HashMap;
use std::sync::Arc;

/// A call stack: addresses to look up, leaf first.
pub(crate) type Stack = Arc<[u64]>;

/// What samples of one sum share.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct GroupKey {
    pub(crate) profile: ProfileType,
    pub(crate) stack: Stack,
    /// Zero for "any span": not linked, or folded.
    pub(crate) span: SpanKey,
    pub(crate) tid: i32,
}

/// The values of a group: one per sample with its time, or one sum without.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Values {
    pub(crate) timed: Vec<(u64, u64)>,
    pub(crate) folded: u64,
}

/// One measurement on its way into a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Measurement {
    pub(crate) key: GroupKey,
    pub(crate) value: u64,
    pub(crate) monotonic_ns: u64,
}

/// Everything that one upload holds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Batch {
    pub(crate) start_monotonic_ns: u64,
    pub(crate) end_monotonic_ns: u64,
    /// Add this to monotonic time to get Unix time.
    pub(crate) unix_offset_ns: u64,
    pub(crate) period_ns: u64,
    pub(crate) groups: HashMap<GroupKey, Values>,
    pub(crate) thread_names: HashMap<i32, Arc<str>>,
    pub(crate) modules: Arc<[Module]>,
    estimated_bytes: usize,
}

impl Batch {
    pub(crate) fn starting_at(monotonic_ns: u64) -> Batch {
        Batch { start_monotonic_ns: monotonic_ns, ..Batch::default() }
    }

    /// Adds a measurement with its time.
    pub(crate) fn add(&mut self, measurement: Measurement) {
        let frames = measurement.key.stack.len();
        let values = self.groups.entry(measurement.key).or_default();
        if values.timed.is_empty() && values.folded == 0 {
            // A guess of what a group takes encoded: a stack of small indices, a link, a value, a time.
            self.estimated_bytes += 48 + 3 * frames;
        }
        self.estimated_bytes += 12;
        values.timed.push((measurement.monotonic_ns, measurement.value));
    }

    /// Adds a measurement to the aggregate: no span, no time, the same total.
    pub(crate) fn fold(&mut self, measurement: Measurement) {
        let frames = measurement.key.stack.len();
        let values = self.groups.entry(GroupKey { span: SpanKey::default(), ..measurement.key }).or_default();
        if values.timed.is_empty() && values.folded == 0 {
            self.estimated_bytes += 24 + 3 * frames;
        }
        values.folded += measurement.value;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// About how large the batch is once encoded.
    pub(crate) fn estimated_bytes(&self) -> usize {
        self.estimated_bytes
    }

    /// The sum of all values of one type: what folding must never change.
    #[cfg(test)]
    pub(crate) fn total(&self, profile: ProfileType) -> u64 {
        let of_type = self.groups.iter().filter(|(key, _)| key.profile == profile);
        of_type.map(|(_, values)| values.folded + values.timed.iter().map(|(_, value)| value).sum::<u64>()).sum()
    }
}
