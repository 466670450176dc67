//! How requests went over a time: counts, errors and durations in equal steps that sum up exactly to the whole.

use hotspan_traceql::LogHistogram;

/// Steps that a time range is cut into for small plots, and fewer ones for ranges with too much in them.
pub const PLOT_STEPS: usize = 60;
const FEWER_STEPS: [usize; 4] = [30, 15, 5, 1];

/// Buckets of durations that are held at a time, 16 bytes each; more of them and steps are joined (R5).
const MAX_BUCKETS: usize = 2 << 20;

/// A time range in equal steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlotSteps {
    from: i64,
    until: i64,
    count: usize,
}

impl PlotSteps {
    /// A range in the usual number of steps.
    pub fn of(from: i64, until: i64) -> Self {
        Self { from, until, count: PLOT_STEPS }
    }

    /// How many steps there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The range as a whole.
    pub fn range(&self) -> (i64, i64) {
        (self.from, self.until)
    }

    /// How long a step is, in nanoseconds.
    pub fn length(&self) -> i64 {
        (self.until.saturating_sub(self.from) / self.count as i64).max(1)
    }

    /// When a step begins.
    pub fn start(&self, step: usize) -> i64 {
        self.from.saturating_add(self.length().saturating_mul(step as i64))
    }

    /// The step of a time; times outside the range count in its first or last step.
    pub fn at(&self, time: i64) -> usize {
        let step = time.saturating_sub(self.from).max(0) / self.length();
        usize::try_from(step).map_or(self.count - 1, |step| step.min(self.count - 1))
    }

    fn fewer(&self) -> Option<Self> {
        let count = FEWER_STEPS.into_iter().find(|count| *count < self.count)?;
        Some(Self { count, ..*self })
    }
}

/// Requests of one step, or of all.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RequestCounts {
    /// How many requests.
    pub count: u64,
    /// How many of them failed.
    pub errors: u64,
    durations: LogHistogram,
}

impl RequestCounts {
    /// A quantile of the durations in nanoseconds, within half a percent; nothing if there were no requests.
    pub fn quantile(&self, quantile: f64) -> Option<f64> {
        self.durations.quantile(quantile, true)
    }

    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.errors += other.errors;
        self.durations.merge(&other.durations);
    }
}

/// Counts and durations of a group of requests, step by step.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RequestStatistics {
    /// One for each step of the range; none where there never was a request.
    pub steps: Vec<RequestCounts>,
}

impl RequestStatistics {
    /// All steps together.
    pub fn whole(&self) -> RequestCounts {
        let mut whole = RequestCounts::default();
        self.steps.iter().for_each(|step| whole.merge(step));
        whole
    }

    /// How many requests there are.
    pub fn count(&self) -> u64 {
        self.steps.iter().map(|step| step.count).sum()
    }

    /// Adds the requests of another group, step by step.
    pub(crate) fn merge(&mut self, other: &Self) {
        if self.steps.len() < other.steps.len() {
            self.steps.resize_with(other.steps.len(), RequestCounts::default);
        }
        self.steps.iter_mut().zip(&other.steps).for_each(|(mine, theirs)| mine.merge(theirs));
    }

    /// Joins as many neighbours each as it takes to have `count` steps.
    fn join_into(&mut self, count: usize) {
        if self.steps.is_empty() {
            return;
        }
        let together = self.steps.len().div_ceil(count);
        let joined = self.steps.chunks(together).map(|steps| RequestStatistics { steps: steps.to_vec() }.whole());
        self.steps = joined.collect();
    }
}

/// Gathers the requests of many groups, which are known by their numbers, in bounded memory.
#[derive(Debug)]
pub(crate) struct RequestGroups {
    steps: PlotSteps,
    groups: Vec<RequestStatistics>,
    buckets: usize,
    max_buckets: usize,
}

impl RequestGroups {
    pub(crate) fn new(from: i64, until: i64) -> Self {
        Self { steps: PlotSteps::of(from, until), groups: Vec::new(), buckets: 0, max_buckets: MAX_BUCKETS }
    }

    /// The number of a new group.
    pub(crate) fn start_group(&mut self) -> usize {
        self.groups.push(RequestStatistics::default());
        self.groups.len() - 1
    }

    pub(crate) fn len(&self) -> usize {
        self.groups.len()
    }

    /// Counts a request of a group.
    pub(crate) fn add(&mut self, group: usize, start: i64, duration: i64, failed: bool) {
        let group = &mut self.groups[group];
        if group.steps.is_empty() {
            group.steps = vec![RequestCounts::default(); self.steps.count()];
        }
        let step = &mut group.steps[self.steps.at(start)];
        step.count += 1;
        step.errors += u64::from(failed);
        let before = step.durations.bucket_count();
        step.durations.add(duration.max(0) as f64, true);
        self.buckets += step.durations.bucket_count() - before;
        if self.buckets > self.max_buckets {
            self.join_steps();
        }
    }

    /// Neighbours share most of their buckets: longer steps hold the same requests in less.
    fn join_steps(&mut self) {
        let Some(fewer) = self.steps.fewer() else { return };
        self.steps = fewer;
        self.buckets = 0;
        for group in &mut self.groups {
            group.join_into(fewer.count());
            self.buckets += group.steps.iter().map(|step| step.durations.bucket_count()).sum::<usize>();
        }
    }

    /// The steps that came out, and the groups by their numbers.
    pub(crate) fn finish(self) -> (PlotSteps, Vec<RequestStatistics>) {
        (self.steps, self.groups)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    /// Requests of a minute: one a second, which takes as many milliseconds as the second's number; every tenth fails.
    fn minute(max_buckets: usize) -> (PlotSteps, RequestStatistics) {
        let mut groups = RequestGroups { max_buckets, ..RequestGroups::new(0, 60 * SECOND) };
        let group = groups.start_group();
        for second in 0..60 {
            groups.add(group, second * SECOND, (second + 1) * 1_000_000, second % 10 == 0);
        }
        let (steps, mut groups) = groups.finish();
        (steps, groups.remove(group))
    }

    /// Scenario: a minute of requests whose durations are known, each in a step of its own.
    /// Guarantee: every step tells its own duration, and the steps together are the whole.
    #[test]
    fn steps_tell_their_own_durations() {
        let (steps, requests) = minute(MAX_BUCKETS);
        assert_eq!((steps.count(), requests.count(), requests.whole().errors), (60, 60, 6));
        for (at, step) in requests.steps.iter().enumerate() {
            let expected = (at + 1) as f64 * 1e6;
            assert!((step.quantile(0.99).unwrap() / expected - 1.0).abs() < 0.006, "step {at}");
        }
        let median = requests.whole().quantile(0.5).unwrap();
        assert!((median / 30e6 - 1.0).abs() < 0.006, "{median}");
    }

    /// Scenario: the same minute, with room for few buckets.
    /// Guarantee: there are fewer steps, no request is lost, and the whole is the same to the last bucket.
    #[test]
    fn too_many_buckets_join_steps() {
        let (_, all) = minute(MAX_BUCKETS);
        let (steps, fewer) = minute(40);
        assert!(steps.count() < 60 && fewer.steps.len() == steps.count(), "{steps:?}");
        assert_eq!(fewer.whole(), all.whole());
        let mut joined = all;
        joined.join_into(steps.count());
        assert_eq!(joined, fewer);
    }

    /// Scenario: times before, on and behind the ends of a range that can't be cut evenly.
    /// Guarantee: every time has a step.
    #[test]
    fn every_time_has_a_step() {
        let steps = PlotSteps::of(100, 100 + 61);
        assert_eq!([i64::MIN, 100, 101, 160, i64::MAX].map(|time| steps.at(time)), [0, 0, 1, 59, 59]);
        assert_eq!(PlotSteps::of(5, 5).at(5), 0);
        assert_eq!(PlotSteps::of(i64::MIN, i64::MAX).at(i64::MAX), 59);
    }
}
