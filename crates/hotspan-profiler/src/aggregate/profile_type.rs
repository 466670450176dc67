//! What a profile measures.

use crate::sampler::sample::SampleKind;

/// One kind of profile; each is exported as a profile of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum ProfileType {
    Cpu,
    Wall,
    OffCpu,
    SpanPolling,
    SpanParked,
    AllocSpace,
    AllocObjects,
    InuseSpace,
    InuseObjects,
    Lock,
}

impl ProfileType {
    pub(crate) const ALL: [ProfileType; 10] = [
        ProfileType::Cpu,
        ProfileType::Wall,
        ProfileType::OffCpu,
        ProfileType::SpanPolling,
        ProfileType::SpanParked,
        ProfileType::AllocSpace,
        ProfileType::AllocObjects,
        ProfileType::InuseSpace,
        ProfileType::InuseObjects,
        ProfileType::Lock,
    ];

    /// Name and unit of the value, as OTLP's ValueType has them.
    pub(crate) fn name_and_unit(self) -> (&'static str, &'static str) {
        match self {
            ProfileType::Cpu => ("cpu", "nanoseconds"),
            ProfileType::Wall => ("wall", "nanoseconds"),
            ProfileType::OffCpu => ("off_cpu", "nanoseconds"),
            ProfileType::SpanPolling => ("span_polling", "nanoseconds"),
            ProfileType::SpanParked => ("span_parked", "nanoseconds"),
            ProfileType::AllocSpace => ("alloc_space", "bytes"),
            ProfileType::AllocObjects => ("alloc_objects", "count"),
            ProfileType::InuseSpace => ("inuse_space", "bytes"),
            ProfileType::InuseObjects => ("inuse_objects", "count"),
            ProfileType::Lock => ("lock", "nanoseconds"),
        }
    }

    /// Whether its samples are allocations.
    pub(crate) fn is_of_memory(self) -> bool {
        use ProfileType::{AllocObjects, AllocSpace, InuseObjects, InuseSpace};
        matches!(self, AllocSpace | AllocObjects | InuseSpace | InuseObjects)
    }

    /// What one sample contributes, by type.
    pub(crate) fn contributions(kind: SampleKind, weight: u64, extra: u64) -> Vec<(ProfileType, u64)> {
        match kind {
            SampleKind::Cpu => vec![(ProfileType::Cpu, weight)],
            SampleKind::Wall => {
                vec![(ProfileType::Wall, weight), (ProfileType::OffCpu, weight.saturating_sub(extra))]
            }
            SampleKind::Allocation => vec![(ProfileType::AllocSpace, weight), (ProfileType::AllocObjects, extra)],
            SampleKind::LockWait => vec![(ProfileType::Lock, weight)],
        }
    }
}
