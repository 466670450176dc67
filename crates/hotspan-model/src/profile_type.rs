//! Profile types: Pyroscope's five-part id is the canonical name, short aliases resolve to it.

use std::fmt;
use std::str::FromStr;

/// What a value of a sample measures: `process_cpu:cpu:nanoseconds:cpu:nanoseconds`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct ProfileType {
    /// Name of the profile: `process_cpu`, `memory`, `wall`, …
    pub name: String,
    /// What is counted: `cpu`, `alloc_space`, …
    pub sample_type: String,
    /// Its unit: `nanoseconds`, `bytes`, `count`, …
    pub sample_unit: String,
    /// What triggers a sample.
    pub period_type: String,
    /// Unit of the period.
    pub period_unit: String,
}

/// Short names that people use in queries, and the id each stands for.
const ALIASES: &[(&str, &str)] = &[
    ("cpu", "process_cpu:cpu:nanoseconds:cpu:nanoseconds"),
    ("process_cpu", "process_cpu:cpu:nanoseconds:cpu:nanoseconds"),
    ("itimer", "process_cpu:cpu:nanoseconds:cpu:nanoseconds"),
    ("samples", "process_cpu:samples:count:cpu:nanoseconds"),
    ("wall", "wall:wall:nanoseconds:wall:nanoseconds"),
    ("off_cpu", "off_cpu:off_cpu:nanoseconds::"),
    ("alloc_objects", "memory:alloc_objects:count:space:bytes"),
    ("alloc_space", "memory:alloc_space:bytes:space:bytes"),
    ("inuse_objects", "memory:inuse_objects:count:space:bytes"),
    ("inuse_space", "memory:inuse_space:bytes:space:bytes"),
    // As Node.js names what is in use.
    ("objects", "memory:objects:count:space:bytes"),
    ("space", "memory:space:bytes:space:bytes"),
    ("goroutine", "goroutine:goroutine:count:goroutine:count"),
    ("goroutines", "goroutine:goroutine:count:goroutine:count"),
    ("lock", "mutex:delay:nanoseconds:contentions:count"),
    ("mutex", "mutex:delay:nanoseconds:contentions:count"),
    ("mutex_duration", "mutex:delay:nanoseconds:contentions:count"),
    ("mutex_count", "mutex:contentions:count:contentions:count"),
    ("block", "block:delay:nanoseconds:contentions:count"),
    ("block_duration", "block:delay:nanoseconds:contentions:count"),
    ("block_count", "block:contentions:count:contentions:count"),
    // As Java's older agents name contention.
    ("lock_duration", "block:delay:nanoseconds:contentions:count"),
    ("lock_count", "block:contentions:count:contentions:count"),
    ("native_lock", "native_lock:delay:nanoseconds:native_lock:count"),
    ("alloc_in_new_tlab_objects", "memory:alloc_in_new_tlab_objects:count:space:bytes"),
    ("alloc_in_new_tlab_bytes", "memory:alloc_in_new_tlab_bytes:bytes:space:bytes"),
    ("alloc_outside_tlab_objects", "memory:alloc_outside_tlab_objects:count:space:bytes"),
    ("alloc_outside_tlab_bytes", "memory:alloc_outside_tlab_bytes:bytes:space:bytes"),
    ("alloc_sample_objects", "memory:alloc_sample_objects:count:space:bytes"),
    ("alloc_sample_bytes", "memory:alloc_sample_bytes:bytes:space:bytes"),
    ("live", "memory:live:count:objects:count"),
    ("live_bytes", "memory:live_bytes:bytes:objects:count"),
    ("malloc_objects", "memory:malloc_objects:count:space:bytes"),
    ("malloc_bytes", "memory:malloc_bytes:bytes:space:bytes"),
    ("malloc_inuse_objects", "memory:malloc_inuse_objects:count:space:bytes"),
    ("malloc_inuse_bytes", "memory:malloc_inuse_bytes:bytes:space:bytes"),
    ("exceptions", "exceptions:exceptions:count:exceptions:count"),
    ("threadcreate", "threadcreate:threadcreate:count:threadcreate:count"),
];

/// What a short name also stands for, where sources declare a type of another name: Java's profilers and Node.js for memory, and
/// those that tell no mutex from other waiting.
const ALSO: &[(&str, &[&str])] = &[
    ("alloc_objects", &["alloc_in_new_tlab_objects", "alloc_sample_objects", "alloc_outside_tlab_objects"]),
    ("alloc_space", &["alloc_in_new_tlab_bytes", "alloc_sample_bytes", "alloc_outside_tlab_bytes"]),
    ("inuse_objects", &["live", "objects"]),
    ("inuse_space", &["live_bytes", "space"]),
    ("lock", &["block"]),
    ("lock_duration", &["mutex"]),
    ("lock_count", &["mutex_count"]),
];

/// A text that names no profile type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not a profile type; use five parts such as process_cpu:cpu:nanoseconds:cpu:nanoseconds, \
     or a short name such as cpu, wall, off_cpu, alloc_space, inuse_space, live, goroutine, mutex, lock, block"
)]
pub struct ProfileTypeError {
    text: String,
}

impl ProfileType {
    /// On-CPU time, the type that most questions are about.
    pub fn cpu() -> Self {
        Self::from_parts(["process_cpu", "cpu", "nanoseconds", "cpu", "nanoseconds"])
    }

    /// The type with these parts, where clients name the same thing differently by its one name.
    ///
    /// CPU time is CPU time whatever triggered the samples: Node.js takes them by the wall clock and says so in the
    /// period. Goroutines that an SDK pushes are those that a scrape of the same service finds.
    pub fn from_parts(parts: [&str; 5]) -> Self {
        let parts = match parts {
            ["process_cpu", "cpu", "nanoseconds", ..] => ["process_cpu", "cpu", "nanoseconds", "cpu", "nanoseconds"],
            ["goroutines", "goroutine", unit, period_type, period_unit] => {
                ["goroutine", "goroutine", unit, period_type, period_unit]
            }
            other => other,
        };
        let [name, sample_type, sample_unit, period_type, period_unit] = parts.map(str::to_owned);
        Self { name, sample_type, sample_unit, period_type, period_unit }
    }

    /// What is measured and in which unit, without what triggers a sample: that differs between profilers, Go's and
    /// Java's mutex profiles for instance, and is not what a short name is about.
    pub fn measured(&self) -> String {
        format!("{}:{}:{}:", self.name, self.sample_type, self.sample_unit)
    }

    /// Whether values are lengths of time.
    pub fn is_time(&self) -> bool {
        self.sample_unit == "nanoseconds"
    }

    /// Whether a profile says what there was at one moment, so that the sum of several is no amount of anything.
    pub fn is_snapshot(&self) -> bool {
        let kinds =
            ["inuse_space", "inuse_objects", "malloc_inuse_bytes", "malloc_inuse_objects", "live", "live_bytes"];
        kinds.contains(&self.sample_type.as_str())
            || self.name == "memory" && ["objects", "space"].contains(&self.sample_type.as_str())
            || ["goroutine", "threadcreate", "thread", "threads"].contains(&self.name.as_str())
    }

    /// The short names that resolve to an id, for help texts and completion.
    pub fn aliases() -> impl Iterator<Item = &'static str> {
        ALIASES.iter().map(|(alias, _)| *alias)
    }

    /// What else a short name stands for, in this order, where nothing of its own type is there.
    pub fn also_called(alias: &str) -> impl Iterator<Item = Self> {
        let others = ALSO.iter().filter(move |(name, _)| *name == alias).flat_map(|(_, others)| *others);
        others.filter_map(|other| other.parse().ok())
    }
}

impl FromStr for ProfileType {
    type Err = ProfileTypeError;

    /// Reads five parts (a sixth, `:delta`, is tolerated as in Pyroscope) or a short name.
    fn from_str(text: &str) -> Result<Self, ProfileTypeError> {
        let canonical = ALIASES.iter().find(|(alias, _)| *alias == text).map_or(text, |(_, id)| id);
        let mut parts: Vec<&str> = canonical.split(':').collect();
        if parts.len() == 6 && parts[5] == "delta" {
            parts.pop();
            // Spaces at the end of a type are never part of it.
            parts[4] = parts[4].trim_end();
        }
        let wrong = || ProfileTypeError { text: text.to_owned() };
        let parts: [&str; 5] = parts.try_into().map_err(|_| wrong())?;
        if parts[0].is_empty() || parts[1].is_empty() {
            return Err(wrong());
        }
        Ok(Self::from_parts(parts))
    }
}

impl fmt::Display for ProfileType {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, sample_type, sample_unit, period_type, period_unit } = self;
        write!(out, "{name}:{sample_type}:{sample_unit}:{period_type}:{period_unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: every short name. Guarantee: it resolves to an id that reads back as itself.
    #[test]
    fn aliases_resolve() {
        for alias in ProfileType::aliases() {
            let resolved: ProfileType = alias.parse().unwrap();
            assert_eq!(resolved.to_string().parse::<ProfileType>().unwrap(), resolved);
        }
        for (alias, others) in ALSO {
            assert!(alias.parse::<ProfileType>().is_ok(), "{alias}");
            assert_eq!(ProfileType::also_called(alias).count(), others.len(), "{alias}");
        }
        assert_eq!("cpu".parse::<ProfileType>().unwrap(), ProfileType::cpu());
        // As the SDKs for Node.js and Go name them.
        assert_eq!("goroutines:goroutine:count:goroutine:count".parse::<ProfileType>(), "goroutine".parse());
        assert_eq!("process_cpu:cpu:nanoseconds:wall:nanoseconds".parse::<ProfileType>().unwrap(), ProfileType::cpu());
        assert!("process_cpu:cpu".parse::<ProfileType>().unwrap_err().to_string().contains("five parts"));
    }

    /// Scenario: memory as Go, Java and Node.js tell what is in use, and what was allocated; goroutines; time.
    /// Guarantee: the first and the goroutines say what there was at one moment, the others what was added.
    #[test]
    fn snapshots() {
        for of_a_moment in
            ["inuse_space", "live", "malloc_inuse_bytes", "space", "objects", "goroutines", "threadcreate"]
        {
            assert!(of_a_moment.parse::<ProfileType>().unwrap().is_snapshot(), "{of_a_moment}");
        }
        for added in ["alloc_space", "malloc_bytes", "cpu", "mutex", "disk:space:bytes::"] {
            assert!(!added.parse::<ProfileType>().unwrap().is_snapshot(), "{added}");
        }
    }

    /// Scenario: a type with and without `:delta` behind it, with spaces between. Guarantee: one type.
    #[test]
    fn delta_says_nothing_more() {
        let plain: ProfileType = "memory:alloc_space:bytes:space:bytes".parse().unwrap();
        for text in ["memory:alloc_space:bytes:space:bytes:delta", "memory:alloc_space:bytes:space:bytes :delta"] {
            assert_eq!(text.parse().as_ref(), Ok(&plain), "{text}");
        }
    }
}
