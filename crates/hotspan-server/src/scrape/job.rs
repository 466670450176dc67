//! A `[[scrape]]` of the configuration: which services are asked for their profiles, how often, for which.

use std::time::Duration;

use hotspan_model::{Labels, TenantId};

/// Targets of one service that are asked for their profiles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScrapeJob {
    /// The service that the targets run.
    pub service: String,
    /// Their addresses: `host:port`, or with `http://` or `https://` in front.
    pub targets: Vec<String>,
    /// What they are asked for.
    pub profiles: Vec<ProfileKind>,
    /// Time between two scrapes.
    pub interval: Duration,
    /// Each scrape waits a random time up to this, so that targets are not asked all at once.
    pub jitter: Duration,
    /// Longest time for an answer, beyond the seconds that a CPU profile takes.
    pub timeout: Duration,
    /// Where profiles are, before their name.
    pub path: String,
    /// Whether values that count since the start of a process are stored as what was added between two scrapes.
    pub delta: bool,
    /// Labels besides `service_name` and `instance`.
    pub labels: Labels,
    /// The tenant that owns the profiles.
    pub tenant: TenantId,
}

impl Default for ScrapeJob {
    fn default() -> Self {
        use ProfileKind::{Block, Cpu, Goroutine, Heap, Mutex};
        Self {
            service: String::new(),
            targets: Vec::new(),
            profiles: vec![Cpu, Heap, Goroutine, Mutex, Block],
            interval: Duration::from_secs(15),
            jitter: Duration::from_secs(1),
            timeout: Duration::from_secs(10),
            path: "/debug/pprof".to_owned(),
            delta: true,
            labels: Labels::default(),
            tenant: TenantId::anonymous(),
        }
    }
}

/// What `net/http/pprof` offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProfileKind {
    /// Time on the CPU.
    Cpu,
    /// Memory in use, and allocated since the start.
    Heap,
    /// Memory allocated since the start.
    Allocs,
    /// Goroutines at this moment.
    Goroutine,
    /// Waiting for mutexes, charged to who held them.
    Mutex,
    /// Waiting for channels, mutexes and the like, charged to who waited.
    Block,
    /// What made threads.
    ThreadCreate,
}

impl ProfileKind {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Cpu, Self::Heap, Self::Allocs, Self::Goroutine, Self::Mutex, Self::Block, Self::ThreadCreate];

    /// Its name in the configuration, and in the answer of `/api/v1/targets`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            other => other.path(),
        }
    }

    /// The last part of its address.
    pub(super) fn path(self) -> &'static str {
        match self {
            Self::Cpu => "profile",
            Self::Heap => "heap",
            Self::Allocs => "allocs",
            Self::Goroutine => "goroutine",
            Self::Mutex => "mutex",
            Self::Block => "block",
            Self::ThreadCreate => "threadcreate",
        }
    }

    /// The name of its profile types: mutex and block profiles do not tell themselves apart.
    pub(super) fn profile_name(self) -> &'static str {
        match self {
            Self::Cpu => "process_cpu",
            Self::Heap | Self::Allocs => "memory",
            other => other.path(),
        }
    }

    /// Whether values of this sample type count since the start of the process.
    pub(super) fn is_cumulative(self, sample_type: &str) -> bool {
        match self {
            Self::Heap | Self::Allocs => sample_type.starts_with("alloc"),
            Self::Mutex | Self::Block => true,
            Self::Cpu | Self::Goroutine | Self::ThreadCreate => false,
        }
    }

    /// Whether this sample type is to be stored. Heap and allocs hold the same allocations: those of heap are left out
    /// where allocs has them.
    pub(super) fn keeps(self, sample_type: &str, allocs_has_them: bool) -> bool {
        match self {
            Self::Allocs => self.is_cumulative(sample_type),
            Self::Heap => !(self.is_cumulative(sample_type) && allocs_has_them),
            _ => true,
        }
    }

    /// Whether it holds allocations since the start, as another kind does, too.
    pub(super) fn has_allocations(self) -> bool {
        matches!(self, Self::Heap | Self::Allocs)
    }

    /// Whether this sample type tells a profile of this kind from those of others.
    fn is_told_by(self, sample_type: &str) -> bool {
        match self {
            Self::Cpu => matches!(sample_type, "cpu" | "wall"),
            Self::Heap | Self::Allocs => {
                let starts = ["alloc", "inuse"];
                starts.iter().any(|start| sample_type.starts_with(start)) || matches!(sample_type, "space" | "objects")
            }
            Self::Goroutine => matches!(sample_type, "goroutine" | "goroutines"),
            Self::Mutex | Self::Block => matches!(sample_type, "contentions" | "delay"),
            Self::ThreadCreate => sample_type == "threadcreate",
        }
    }

    /// Refuses a profile that is of another kind by its sample types. Not only Go offers profiles in this way: types that tell
    /// nothing are taken.
    pub(super) fn check(self, sample_types: &[&str]) -> Result<(), String> {
        let is_told = |kind: Self| sample_types.iter().any(|sample_type| kind.is_told_by(sample_type));
        if is_told(self) || !Self::ALL.into_iter().any(is_told) {
            return Ok(());
        }
        let found: String = sample_types.join(", ").chars().take(200).collect();
        Err(format!("the answer is no {} profile: it has {found}", self.name()))
    }

    /// The kind of this name; `profile` is what Go calls the CPU profile.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name || kind.path() == name)
    }
}

/// Where a target is, the same however it is written: with or without `http://` in front and a slash at its end.
pub(crate) fn base_address(target: &str) -> String {
    let target = target.trim_end_matches('/');
    if target.contains("://") { target.to_owned() } else { format!("http://{target}") }
}

/// An address without the name and password that may stand before its host: those are for the target alone.
pub(super) fn without_password(address: &str) -> String {
    let start = address.find("://").map_or(0, |at| at + 3);
    let end = address[start..].find('/').map_or(address.len(), |at| start + at);
    match address[start..end].rfind('@') {
        Some(at) => format!("{}{}", &address[..start], &address[start + at + 1..]),
        None => address.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: addresses with and without a name and password. Guarantee: nothing else is left out.
    #[test]
    fn passwords_are_not_shown() {
        for (address, shown) in [
            ("http://me:se@cret@a:6060", "http://a:6060"),
            ("me:secret@a:6060", "a:6060"),
            ("https://me@a/debug/pprof/heap", "https://a/debug/pprof/heap"),
            ("https://a:1/x@y", "https://a:1/x@y"),
            ("a:6060", "a:6060"),
        ] {
            assert_eq!(without_password(address), shown);
        }
    }

    /// Scenario: the sample types of what Go and others answer, for every kind.
    /// Guarantee: each kind takes its own and what tells nothing, and refuses those of others by name.
    #[test]
    fn answers_of_another_kind_are_refused() {
        use ProfileKind::{Allocs, Block, Cpu, Goroutine, Heap, Mutex, ThreadCreate};
        let go_heap = ["alloc_objects", "alloc_space", "inuse_objects", "inuse_space"];
        let answers: [(&[&str], &[ProfileKind]); 9] = [
            (&["samples", "cpu"], &[Cpu]),
            (&["sample", "wall"], &[Cpu]),
            (&go_heap, &[Heap, Allocs]),
            (&["objects", "space"], &[Heap, Allocs]),
            (&["goroutine"], &[Goroutine]),
            (&["contentions", "delay"], &[Mutex, Block]),
            (&["threadcreate"], &[ThreadCreate]),
            (&["cpu", "alloc_space"], &[Cpu, Heap, Allocs]),
            (&["samples", "time"], &ProfileKind::ALL),
        ];
        for (sample_types, kinds) in answers {
            for kind in ProfileKind::ALL {
                assert_eq!(kind.check(sample_types).is_ok(), kinds.contains(&kind), "{kind:?} {sample_types:?}");
            }
        }
        assert_eq!(Cpu.check(&["alloc_space"]).unwrap_err(), "the answer is no cpu profile: it has alloc_space");
    }
}
