//! What was added between two scrapes of a profile that counts since the start of its process.

use hashbrown::HashMap;
use hotspan_model::{Profile, ProfileSet};

/// A stack under its labels.
type StackKey = (u64, u64);

/// The values of the last scrape, by profile type.
#[derive(Debug, Default)]
pub(super) struct LastValues {
    by_type: HashMap<String, Snapshot>,
}

#[derive(Debug, Default)]
struct Snapshot {
    values: HashMap<StackKey, i64>,
    total: i64,
    time: i64,
}

impl LastValues {
    /// Turns a profile of values since the start into one of what was added since the last scrape, and remembers
    /// it for the next. False if there was no last scrape: then nothing can be said yet.
    pub(super) fn subtract(&mut self, set: &ProfileSet<'_>, profile: &mut Profile<'_>) -> bool {
        let mut now = Snapshot { time: profile.time, ..Snapshot::default() };
        let key_of = |sample: &hotspan_model::Sample| {
            let labels = set.label_sets.get(sample.labels as usize).map_or(0, |labels| labels.identity().1);
            (set.paths.node_id(sample.path).0, labels)
        };
        for sample in &profile.samples {
            let sum = now.values.entry(key_of(sample)).or_default();
            *sum = sum.saturating_add(sample.value);
            now.total = now.total.saturating_add(sample.value);
        }
        let last = self.by_type.entry(profile.profile_type.to_string()).or_default();
        let is_first = last.time == 0;
        // Counters that went back are those of a new process: all of its values were added since.
        let restarted = now.total < last.total;
        let mut open: HashMap<StackKey, i64> =
            if restarted { HashMap::new() } else { std::mem::take(&mut last.values) };
        for sample in &mut profile.samples {
            // Several samples may share a stack; what was there before is taken from the first ones.
            if let Some(before) = open.get_mut(&key_of(sample)) {
                let taken = sample.value.min(*before).max(0);
                *before -= taken;
                sample.value -= taken;
            }
        }
        profile.samples.retain(|sample| sample.value > 0);
        if !is_first && profile.duration == 0 {
            profile.duration = now.time.saturating_sub(last.time).max(0);
            profile.time = profile.time.saturating_sub(profile.duration);
        }
        *last = now;
        !is_first
    }
}

#[cfg(test)]
mod tests {
    use hotspan_model::{Frame, ProfileType, Sample};

    use super::*;

    fn scraped(time: i64, values: &[(&'static str, i64)]) -> (ProfileSet<'static>, Profile<'static>) {
        let mut set = ProfileSet::default();
        let samples = values
            .iter()
            .map(|(name, value)| {
                let frame = set.paths.frame(Frame::named(name));
                let path = set.paths.path(&[frame]);
                Sample { path, value: *value, time, timed: false, link: 0, thread: 0, labels: 0, attributes: 0 }
            })
            .collect();
        let profile_type = ProfileType::from_parts(["mutex", "delay", "nanoseconds", "contentions", "count"]);
        (set, Profile { profile_type, time, samples, ..Profile::default() })
    }

    fn added(last: &mut LastValues, time: i64, values: &[(&'static str, i64)]) -> Option<(i64, Vec<i64>)> {
        let (set, mut profile) = scraped(time, values);
        let known = last.subtract(&set, &mut profile);
        known.then(|| (profile.duration, profile.samples.iter().map(|sample| sample.value).collect()))
    }

    /// Scenario: counters that grow, stand still, split into several samples, and start again after a restart.
    /// Guarantee: only what was added counts, for the time between the scrapes; the first scrape counts nothing.
    #[test]
    fn only_what_was_added_counts() {
        let mut last = LastValues::default();
        assert_eq!(added(&mut last, 100, &[("a", 10), ("b", 5)]), None);
        assert_eq!(added(&mut last, 115, &[("a", 17), ("b", 5)]), Some((15, vec![7])));
        assert_eq!(added(&mut last, 130, &[("a", 8), ("a", 12), ("b", 5), ("c", 1)]), Some((15, vec![3, 1])));
        assert_eq!(added(&mut last, 145, &[("a", 4)]), Some((15, vec![4])), "restarted");
        assert_eq!(added(&mut last, 160, &[("a", 4)]), Some((15, vec![])));
    }
}
