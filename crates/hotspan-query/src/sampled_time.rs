//! Which part of a time has samples: what tells whoever sees a flame graph of an hour that a third of it was profiled.
//!
//! Time is told in windows of 15 s, and a window counts if the series asked for have a sample in it. Hourly rollups know no
//! windows: those are looked up beside them as long as they are few. Where they are many, and where 15 s rollups have
//! expired, an hour counts as a whole.

use std::collections::BTreeSet;

use hotspan_lake::arrays;
use hotspan_lake::table::{HOUR, WINDOW_15S};
use hotspan_model::{Coverage, CoverageOf};

use crate::error::Result;
use crate::scan::ScannedRows;

/// Longer times have no end, for all that anybody stores: some two years, or half a megabyte.
const MOST_WINDOWS: i64 = 1 << 22;

/// The windows of a time in which samples were seen.
#[derive(Debug)]
pub(crate) struct SampledTime {
    range: (i64, i64),
    /// Hours inside the range of which no windows are told.
    whole_hours: (i64, i64),
    /// One bit a window, from the one in which the range starts; none if the range has no end.
    windows: Vec<u64>,
    /// Hours of which it is known that there are samples somewhere in them.
    hours: BTreeSet<i64>,
}

impl SampledTime {
    pub(crate) fn new(range: (i64, i64), whole_hours: (i64, i64)) -> Self {
        let mut noted = Self { range, whole_hours, windows: Vec::new(), hours: BTreeSet::new() };
        let (first, last) = noted.ends();
        if (0..MOST_WINDOWS).contains(&last.saturating_sub(first)) {
            noted.windows = vec![0; (last - first) as usize / 64 + 1];
        }
        noted
    }

    /// Notes the times of samples or of 15 s rollups.
    pub(crate) fn note(&mut self, rows: &ScannedRows<'_>, in_order: bool) -> Result<()> {
        self.note_each(rows, WINDOW_15S, in_order, Self::note_time)
    }

    /// Notes the times of hourly rollups.
    pub(crate) fn note_hours(&mut self, rows: &ScannedRows<'_>) -> Result<()> {
        self.note_each(rows, HOUR, true, Self::note_hour)
    }

    /// Notes that there are samples somewhere in the hour of this time.
    pub(crate) fn note_hour(&mut self, time: i64) {
        self.hours.insert(time.div_euclid(HOUR));
    }

    /// Notes the time of a sample.
    pub(crate) fn note_time(&mut self, time: i64) {
        if (self.whole_hours.0..self.whole_hours.1).contains(&time) {
            self.note_hour(time);
        } else {
            self.mark(time.div_euclid(WINDOW_15S));
        }
    }

    /// Rows of one step lie together, so that it is noted once for all of them; where windows are in order, most rows are
    /// not even looked at.
    fn note_each(
        &mut self,
        rows: &ScannedRows<'_>,
        step: i64,
        in_order: bool,
        note: impl Fn(&mut Self, i64),
    ) -> Result<()> {
        if self.windows.is_empty() {
            return Ok(());
        }
        let times = arrays::times(rows.batch, "time")?.values();
        for (_, run) in &rows.runs {
            let mut rest = &times[run.clone()];
            while let Some(time) = rest.first() {
                note(self, *time);
                let from = time.div_euclid(step).saturating_mul(step);
                let until = from.saturating_add(step);
                let length = match in_order {
                    true => length_before(rest, until),
                    false => rest.iter().take_while(|time| (from..until).contains(*time)).count(),
                };
                rest = &rest[length..];
            }
        }
        Ok(())
    }

    /// The word and bit of a window inside the range.
    fn place(&self, window: i64) -> Option<(usize, u32)> {
        let (first, last) = self.ends();
        let at = usize::try_from(window - first).ok().filter(|_| window <= last)?;
        Some((at / 64, (at % 64) as u32))
    }

    /// The windows in which the range starts and ends.
    fn ends(&self) -> (i64, i64) {
        (self.range.0.div_euclid(WINDOW_15S), self.range.1.saturating_sub(1).div_euclid(WINDOW_15S))
    }

    fn mark(&mut self, window: i64) {
        if let Some((word, bit)) = self.place(window)
            && let Some(word) = self.windows.get_mut(word)
        {
            *word |= 1 << bit;
        }
    }

    fn is_marked(&self, window: i64) -> bool {
        let word = self.place(window).and_then(|(word, bit)| Some(self.windows.get(word)? >> bit));
        word.is_some_and(|word| word & 1 == 1)
    }

    /// The share of the time that has samples; none if the time has no end.
    pub(crate) fn coverage(mut self) -> Option<Coverage> {
        if self.windows.is_empty() {
            return None;
        }
        for hour in std::mem::take(&mut self.hours) {
            let windows = || (hour * HOUR / WINDOW_15S..).take((HOUR / WINDOW_15S) as usize);
            if !windows().any(|window| self.is_marked(window)) {
                windows().for_each(|window| self.mark(window));
            }
        }
        let ((from, until), (first, last)) = (self.range, self.ends());
        let marked: u32 = self.windows.iter().map(|word| word.count_ones()).sum();
        let mut covered = i64::from(marked) * WINDOW_15S;
        // The range may begin and end inside a window.
        if self.is_marked(first) {
            covered -= from - first * WINDOW_15S;
        }
        if self.is_marked(last) {
            covered -= (last + 1) * WINDOW_15S - until;
        }
        Coverage::new(CoverageOf::Range, covered, until - from)
    }
}

/// How many of the first times, which are in order, lie before a moment; at least one, as the first does.
fn length_before(times: &[i64], until: i64) -> usize {
    let mut bound = 1;
    while times.get(bound).is_some_and(|time| *time < until) {
        bound *= 2;
    }
    let known = bound / 2 + 1;
    let unknown = &times[known.min(times.len())..bound.min(times.len())];
    known + unknown.partition_point(|time| *time < until)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: i64 = 60 * 1_000_000_000;
    const SECOND: i64 = 1_000_000_000;

    fn share(range: (i64, i64), whole_hours: (i64, i64), note: impl Fn(&mut SampledTime)) -> Option<f64> {
        let mut noted = SampledTime::new(range, whole_hours);
        note(&mut noted);
        noted.coverage().map(Coverage::share)
    }

    /// Scenario: samples in twenty minutes of an hour, in windows that the range cuts, beside the range, and nowhere.
    /// Guarantee: the part of the range that lies in windows with samples, and nothing of what lies beside.
    #[test]
    fn windows() {
        let nowhere = (0, 0);
        let twenty = |noted: &mut SampledTime| (0..20 * 60).for_each(|second| noted.note_time(HOUR + second * SECOND));
        assert_eq!(share((HOUR, 2 * HOUR), nowhere, twenty), Some(1.0 / 3.0));
        assert_eq!(share((HOUR, 2 * HOUR), nowhere, |_| ()), Some(0.0));
        let range = (-5 * SECOND, 25 * SECOND);
        assert_eq!(share(range, nowhere, |noted| noted.note_time(-1)), Some(5.0 / 30.0));
        assert_eq!(share(range, nowhere, |noted| noted.note_time(20 * SECOND)), Some(10.0 / 30.0));
        let beside = [-16 * SECOND, 30 * SECOND, HOUR];
        let note = |noted: &mut SampledTime| beside.into_iter().for_each(|time| noted.note_time(time));
        assert_eq!(share(range, nowhere, note), Some(0.0));
        assert_eq!(share((2 * SECOND, 5 * SECOND), nowhere, |noted| noted.note_time(3 * SECOND)), Some(1.0));
    }

    /// Scenario: hours of which windows are told, hours of which they are not, and a time without an end.
    /// Guarantee: windows count where there are any, else the hour as a whole; without an end nothing is said.
    #[test]
    fn hours() {
        let range = (0, 4 * HOUR);
        let told = |noted: &mut SampledTime| {
            noted.hours.extend([0, 2]);
            (0..15 * 4).for_each(|window| noted.note_time(window * WINDOW_15S));
        };
        assert_eq!(share(range, (0, 0), told), Some(1.25 / 4.0));
        let untold =
            |noted: &mut SampledTime| [MINUTE, 2 * MINUTE, 3 * HOUR].into_iter().for_each(|time| noted.note_time(time));
        assert_eq!(share(range, range, untold), Some(0.5));
        assert_eq!(share((0, i64::MAX), (0, 0), untold), None);
        assert_eq!(share((i64::MIN, i64::MAX), (0, 0), untold), None);
    }
    /// Scenario: runs of every length, at the start of longer ones. Guarantee: exactly their length.
    #[test]
    fn lengths_of_runs() {
        for length in 1..70 {
            for others in [0, 1, 5, 100] {
                let times: Vec<i64> = std::iter::repeat_n(3, length).chain(std::iter::repeat_n(9, others)).collect();
                assert_eq!(length_before(&times, 4), length, "{length} of {}", times.len());
            }
        }
    }
}
