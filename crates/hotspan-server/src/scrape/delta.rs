//! What was added between two scrapes of a profile that counts since the start of its process.

use std::time::Instant;

use hashbrown::HashMap;
use hotspan_model::{Profile, ProfileSet};

/// A stack under its labels.
type StackKey = (u64, u64);

/// The values of the last scrape, by profile type.
#[derive(Debug, Default)]
pub(super) struct LastValues {
    by_type: HashMap<String, Snapshot>,
}

/// What a scrape found, to be remembered when its profiles are stored.
#[derive(Debug)]
pub(super) struct Found {
    asked: Instant,
    answered: Instant,
    by_type: Vec<(String, Snapshot)>,
}

impl Found {
    /// Nothing yet, in an answer whose values were taken between these two moments.
    pub(super) fn between(asked: Instant, answered: Instant) -> Self {
        Self { asked, answered, by_type: Vec::new() }
    }
}

#[derive(Debug)]
struct Snapshot {
    values: HashMap<StackKey, i64>,
    time: i64,
    answered: Instant,
}

impl Snapshot {
    /// Whether no counter went back. A new process may well have counted more in all than the one before.
    fn goes_on_from(&self, last: &Self) -> bool {
        last.values.iter().all(|(stack, before)| self.values.get(stack).unwrap_or(&0) >= before)
    }
}

impl LastValues {
    /// Turns a profile of values since the start into one of what was added since the last scrape, and notes what
    /// it found. False if nothing can be said: there was no last scrape, or its values are later than these.
    pub(super) fn subtract(&self, set: &ProfileSet<'_>, profile: &mut Profile<'_>, found: &mut Found) -> bool {
        let mut now = Snapshot { values: HashMap::new(), time: profile.time, answered: found.answered };
        let key_of = |sample: &hotspan_model::Sample| {
            let labels = set.label_sets.get(sample.labels as usize).map_or(0, |labels| labels.identity().1);
            (set.paths.node_id(sample.path).0, labels)
        };
        for sample in &profile.samples {
            let sum = now.values.entry(key_of(sample)).or_default();
            *sum = sum.saturating_add(sample.value);
        }
        let profile_type = profile.profile_type.to_string();
        let last = self.by_type.get(&profile_type);
        // Counters that went back are those of a new process: all of its values were added since.
        let same_process = last.filter(|last| now.goes_on_from(last));
        // Unless both were under way at once: then these values are the earlier ones, and all of them are counted already.
        if same_process.is_none() && last.is_some_and(|last| last.answered > found.asked) {
            return false;
        }
        let mut open: HashMap<StackKey, i64> = same_process.map(|last| last.values.clone()).unwrap_or_default();
        for sample in &mut profile.samples {
            // Several samples may share a stack; what was there before is taken from the first ones.
            if let Some(before) = open.get_mut(&key_of(sample)) {
                let taken = sample.value.min(*before).max(0);
                *before -= taken;
                sample.value -= taken;
            }
        }
        profile.samples.retain(|sample| sample.value > 0);
        if let Some(last) = last.filter(|_| profile.duration == 0) {
            profile.duration = now.time.saturating_sub(last.time).max(0);
            profile.time = profile.time.saturating_sub(profile.duration);
            for sample in profile.samples.iter_mut().filter(|sample| !sample.timed) {
                sample.time = profile.time;
            }
        }
        found.by_type.push((profile_type, now));
        last.is_some()
    }

    /// Remembers what a scrape found. If its profiles could not be stored, what was added since the last one is left
    /// for the next; only what nobody knew yet is where that one then starts from.
    pub(super) fn remember(&mut self, found: Found, is_stored: bool) {
        for (profile_type, snapshot) in found.by_type {
            if is_stored || !self.by_type.contains_key(&profile_type) {
                self.by_type.insert(profile_type, snapshot);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

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
        added_if(last, time, values, true)
    }

    fn added_if(
        last: &mut LastValues,
        time: i64,
        values: &[(&'static str, i64)],
        is_stored: bool,
    ) -> Option<(i64, Vec<i64>)> {
        let now = Instant::now();
        added_between((now, now), last, time, values, is_stored)
    }

    fn added_between(
        (asked, answered): (Instant, Instant),
        last: &mut LastValues,
        time: i64,
        values: &[(&'static str, i64)],
        is_stored: bool,
    ) -> Option<(i64, Vec<i64>)> {
        let (set, mut profile) = scraped(time, values);
        let mut found = Found::between(asked, answered);
        let known = last.subtract(&set, &mut profile, &mut found);
        last.remember(found, is_stored);
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
        assert_eq!(added(&mut last, 175, &[("b", 90)]), Some((15, vec![90])), "restarted, though there is more in all");
        assert_eq!(added(&mut last, 190, &[("b", 91)]), Some((15, vec![1])));
    }

    /// Scenario: samples without times of their own, and one with one. Guarantee: the former are dated as their profile is.
    #[test]
    fn samples_are_dated_as_their_profile() {
        let mut last = LastValues::default();
        added(&mut last, 100, &[("a", 10)]);
        let (set, mut profile) = scraped(115, &[("a", 17), ("b", 5)]);
        profile.samples[1].timed = true;
        let now = Instant::now();
        assert!(last.subtract(&set, &mut profile, &mut Found::between(now, now)));
        let times: Vec<i64> = profile.samples.iter().map(|sample| sample.time).collect();
        assert_eq!((profile.time, times), (100, vec![100, 115]));
    }

    /// Scenario: two scrapes that know the same last values are under way at once, and the one that was taken later is
    /// through first; afterwards the process starts again.
    /// Guarantee: what the earlier one holds is not counted again, as a new process would be, and the new process is.
    #[test]
    fn scrapes_that_overtake_each_other_count_once() {
        let mut last = LastValues::default();
        let start = Instant::now();
        let at = |second| start + Duration::from_secs(second);
        let mut scrape = |asked, answered, time, value| {
            added_between((at(asked), at(answered)), &mut last, time, &[("a", value), ("b", 5)], true)
        };
        assert_eq!(scrape(0, 1, 100, 10), None);
        assert_eq!(scrape(3, 4, 103, 17), Some((3, vec![7])));
        assert_eq!(scrape(2, 5, 102, 12), None, "taken before, though it came after");
        assert_eq!(scrape(3, 6, 105, 20), Some((2, vec![3])), "under way at the same time, and later");
        assert_eq!(scrape(7, 8, 107, 2), Some((2, vec![2, 5])), "restarted");
    }

    /// Scenario: profiles that could not be stored, the first of all and some later ones.
    /// Guarantee: what was added meanwhile is in the next that is stored, once, for all of that time.
    #[test]
    fn what_was_not_stored_is_not_lost() {
        let mut last = LastValues::default();
        assert_eq!(added_if(&mut last, 100, &[("a", 10)], false), None);
        assert_eq!(added(&mut last, 115, &[("a", 17)]), Some((15, vec![7])));
        assert_eq!(added_if(&mut last, 130, &[("a", 20)], false), Some((15, vec![3])));
        assert_eq!(added_if(&mut last, 145, &[("a", 25), ("b", 1)], false), Some((30, vec![8, 1])));
        assert_eq!(added(&mut last, 160, &[("a", 26), ("b", 1)]), Some((45, vec![9, 1])));
        assert_eq!(added(&mut last, 175, &[("a", 27), ("b", 1)]), Some((15, vec![1])));
    }
}
