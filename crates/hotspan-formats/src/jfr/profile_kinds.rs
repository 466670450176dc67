//! The profiles that a recording can hold, with Pyroscope's names for them.

use hotspan_model::ProfileType;

use super::settings::Settings;

/// One profile of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(super) enum Column {
    Cpu,
    Wall,
    /// A hardware or software event other than time.
    Counted,
    Native,
    /// Time by the JDK's older sampler, where its sampler of CPU time ran as well.
    Execution,
    AllocInNewTlabObjects,
    AllocInNewTlabBytes,
    AllocOutsideTlabObjects,
    AllocOutsideTlabBytes,
    AllocSampleObjects,
    AllocSampleBytes,
    MutexContentions,
    MutexDelay,
    BlockContentions,
    BlockDelay,
    Live,
    LiveBytes,
    MallocObjects,
    MallocBytes,
    MallocInuseObjects,
    MallocInuseBytes,
    NativeLockContentions,
    NativeLockDelay,
    MethodTrace,
}

impl Column {
    /// All columns, in the order in which profiles are listed.
    pub(super) const ALL: [Self; 24] = [
        Self::Cpu,
        Self::Wall,
        Self::Counted,
        Self::Native,
        Self::Execution,
        Self::AllocInNewTlabObjects,
        Self::AllocInNewTlabBytes,
        Self::AllocOutsideTlabObjects,
        Self::AllocOutsideTlabBytes,
        Self::AllocSampleObjects,
        Self::AllocSampleBytes,
        Self::MutexContentions,
        Self::MutexDelay,
        Self::BlockContentions,
        Self::BlockDelay,
        Self::Live,
        Self::LiveBytes,
        Self::MallocObjects,
        Self::MallocBytes,
        Self::MallocInuseObjects,
        Self::MallocInuseBytes,
        Self::NativeLockContentions,
        Self::NativeLockDelay,
        Self::MethodTrace,
    ];

    /// Whether the settings say that a sampler was running whose samples are these: without any, nothing ran.
    pub(super) fn is_sampled(self, settings: &Settings) -> bool {
        match self {
            Self::Cpu => settings.samples_time(),
            Self::Wall => settings.is_wall() || settings.wall_interval > 0,
            _ => false,
        }
    }

    /// The five-part type.
    pub(super) fn profile_type(self, settings: &Settings) -> ProfileType {
        let parts = match self {
            Self::Cpu => ["process_cpu", "cpu", "nanoseconds", "cpu", "nanoseconds"],
            Self::Wall => ["wall", "wall", "nanoseconds", "wall", "nanoseconds"],
            Self::Counted => {
                let event = settings.event.replace(':', "_");
                return ProfileType::from_parts(["perf", &event, "count", &event, "count"]);
            }
            Self::Native => ["native", "native", "nanoseconds", "native", "nanoseconds"],
            Self::Execution => ["execution", "execution", "nanoseconds", "execution", "nanoseconds"],
            Self::AllocInNewTlabObjects => ["memory", "alloc_in_new_tlab_objects", "count", "space", "bytes"],
            Self::AllocInNewTlabBytes => ["memory", "alloc_in_new_tlab_bytes", "bytes", "space", "bytes"],
            Self::AllocOutsideTlabObjects => ["memory", "alloc_outside_tlab_objects", "count", "space", "bytes"],
            Self::AllocOutsideTlabBytes => ["memory", "alloc_outside_tlab_bytes", "bytes", "space", "bytes"],
            Self::AllocSampleObjects => ["memory", "alloc_sample_objects", "count", "space", "bytes"],
            Self::AllocSampleBytes => ["memory", "alloc_sample_bytes", "bytes", "space", "bytes"],
            Self::MutexContentions => ["mutex", "contentions", "count", "mutex", "count"],
            Self::MutexDelay => ["mutex", "delay", "nanoseconds", "mutex", "count"],
            Self::BlockContentions => ["block", "contentions", "count", "block", "count"],
            Self::BlockDelay => ["block", "delay", "nanoseconds", "block", "count"],
            Self::Live => ["memory", "live", "count", "objects", "count"],
            Self::LiveBytes => ["memory", "live_bytes", "bytes", "objects", "count"],
            Self::MallocObjects => ["memory", "malloc_objects", "count", "space", "bytes"],
            Self::MallocBytes => ["memory", "malloc_bytes", "bytes", "space", "bytes"],
            Self::MallocInuseObjects => ["memory", "malloc_inuse_objects", "count", "space", "bytes"],
            Self::MallocInuseBytes => ["memory", "malloc_inuse_bytes", "bytes", "space", "bytes"],
            Self::NativeLockContentions => ["native_lock", "contentions", "count", "native_lock", "count"],
            Self::NativeLockDelay => ["native_lock", "delay", "nanoseconds", "native_lock", "count"],
            Self::MethodTrace => ["method_trace", "duration", "nanoseconds", "method_trace", "count"],
        };
        ProfileType::from_parts(parts)
    }
}
