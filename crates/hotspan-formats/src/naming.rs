//! Names of profiles: how Pyroscope's `/ingest` finds them where a client does not say.

use hotspan_model::ProfileType;

use crate::decode_options::{DecodeOptions, TextType};

/// The name of a pprof profile, from its sample types in order and its period type.
///
/// `Push` says the name itself. `/ingest` guesses: wall wherever a type is called so, otherwise by the first
/// type that tells. Beyond Pyroscope's rule, the period tells too, and contention without a configuration is
/// named by `contention` instead of by its first column.
pub(crate) fn pprof_name(
    options: &DecodeOptions,
    sample_types: &[&str],
    period_type: &str,
    contention: impl FnOnce() -> &'static str,
) -> String {
    if let Some(name) = &options.name {
        return name.strip_prefix("godeltaprof_").unwrap_or(name).to_owned();
    }
    if sample_types.contains(&"wall") {
        return "wall".to_owned();
    }
    for sample_type in sample_types {
        let configured = options.sample_types.get(*sample_type).map(|config| config.display_name.as_str());
        let shown = configured.filter(|name| !name.is_empty()).unwrap_or(sample_type);
        let name = match shown {
            shown if shown.contains("cpu") => "process_cpu",
            shown if shown.contains("alloc_") || shown.contains("inuse_") => "memory",
            "space" | "objects" => "memory",
            shown if shown.contains("mutex_") => "mutex",
            shown if shown.contains("block_") => "block",
            "goroutines" => "goroutines",
            _ => continue,
        };
        return name.to_owned();
    }
    match (sample_types.first().copied().unwrap_or_default(), period_type) {
        (_, "cpu") => "process_cpu".to_owned(),
        ("contentions", _) => contention().to_owned(),
        (first, _) => first.to_owned(),
    }
}

/// The type of one column of a profile called `name`.
pub(crate) fn column_type(name: &str, column: (&str, &str), period: (&str, &str)) -> ProfileType {
    // A wall profile that also counts CPU time: that column is a CPU profile, whoever collected it.
    let name = if name == "wall" && column.0 == "cpu" { "process_cpu" } else { name };
    ProfileType::from_parts([name, column.0, column.1, period.0, period.1])
}

/// What a sample stands for at so many a second: at least one nanosecond, or what was measured would be gone.
pub(crate) fn nanos_per_sample(rate: u32) -> i64 {
    (1_000_000_000 / i64::from(rate.max(1))).max(1)
}

impl TextType {
    /// The type that the last dot-suffix of an application name selects, as in `order-service.cpu`; none if
    /// the suffix is not known. `sample_rate` turns counted samples of cpu and wall profiles into time.
    pub fn from_app_name(app_name: &str, sample_rate: u32) -> Option<Self> {
        let suffix = app_name.rsplit_once('.').map_or("cpu", |(_, suffix)| suffix);
        let parts = match suffix {
            "cpu" | "itimer" => ["process_cpu", "cpu", "nanoseconds", "cpu", "nanoseconds"],
            "wall" => ["wall", "wall", "nanoseconds", "wall", "nanoseconds"],
            "inuse_objects" | "alloc_objects" | "alloc_in_new_tlab_objects" | "alloc_outside_tlab_objects" => {
                ["memory", suffix, "count", "space", "bytes"]
            }
            "inuse_space" | "alloc_space" | "alloc_in_new_tlab_bytes" | "alloc_outside_tlab_bytes" => {
                ["memory", suffix, "bytes", "space", "bytes"]
            }
            "live" => ["memory", "live", "count", "objects", "count"],
            "goroutines" => ["goroutine", "goroutine", "count", "goroutine", "count"],
            "mutex_count" => ["mutex", "contentions", "count", "contentions", "count"],
            "mutex_duration" => ["mutex", "delay", "nanoseconds", "contentions", "count"],
            "block_count" | "lock_count" => ["block", "contentions", "count", "contentions", "count"],
            "block_duration" | "lock_duration" => ["block", "delay", "nanoseconds", "contentions", "count"],
            "exceptions" => ["exceptions", "exceptions", "count", "exceptions", "count"],
            _ => return None,
        };
        let scale = if matches!(suffix, "cpu" | "itimer" | "wall") { nanos_per_sample(sample_rate) } else { 1 };
        Some(Self { profile_type: ProfileType::from_parts(parts), scale })
    }

    /// What a file of counted stacks means: time where the rate is known, plain samples otherwise.
    pub(crate) fn of_counts(options: &DecodeOptions) -> Self {
        match (&options.text_type, options.sample_rate) {
            (Some(given), _) => given.clone(),
            (None, Some(rate)) if rate > 0 => Self { profile_type: ProfileType::cpu(), scale: nanos_per_sample(rate) },
            (None, _) => {
                let parts = ["process_cpu", "samples", "count", "cpu", "nanoseconds"];
                Self { profile_type: ProfileType::from_parts(parts), scale: 1 }
            }
        }
    }
}
