//! What to read for a scan: which segment, which part of its time, and what for.
//!
//! ```text
//! from                                                              until
//!  | samples | 15 s rollups |  hourly rollups  | 15 s rollups | samples |
//! ```
//!
//! Hourly rollups hold what 15 s rollups of level 2 and up hold, and those hold what samples of level 1 and up hold. Rows of
//! lower levels are read beside them, so that each sample counts once. Nothing is read to make a plan.

use std::sync::Arc;

use hashbrown::HashSet;
use hotspan_lake::table::{HOUR, WINDOW_15S};
use hotspan_lake::{Segment, Table};

use crate::scan::{Grain, Scan};
use crate::window_counts::HourCounts;

/// Hours of one series, those of all series together, whose windows are looked at where only hours are counted.
const MOST_WINDOWED_HOURS: usize = 48;
/// The same where windows are counted: beyond that they would not be remembered, and are told by the rows as they are read.
const MOST_TOLD_HOURS: usize = 256;

/// What rows are read for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Use {
    /// The rows count, and so do their times.
    Rows,
    /// The rows count. How many samples they stand for, and when, is told by windows.
    Sums,
    /// The same, and they have all there is to know of the windows of their file.
    SumsAndWindows,
    /// The rows count. Their times are whole hours.
    Hours,
    /// The rows count. All are of the one hour that is asked for.
    OneHour,
    /// To know how many samples there are in each window of a file.
    Windows,
}

impl Use {
    /// Whether the times of rows are looked at.
    pub(crate) fn needs_times(self) -> bool {
        matches!(self, Self::Rows | Self::SumsAndWindows | Self::Hours | Self::Windows)
    }

    /// Whether it is looked at how many samples the rows stand for.
    pub(crate) fn needs_counts(self) -> bool {
        self != Self::Sums
    }

    /// Whether the rows are all there is to know of the windows of their file.
    pub(crate) fn tells_windows(self) -> bool {
        matches!(self, Self::SumsAndWindows | Self::Windows)
    }
}

/// A part of a segment that is read.
#[derive(Debug)]
pub(crate) struct PlannedRead {
    pub(crate) segment: Arc<Segment>,
    /// Start and end of the time that is read, the end not included.
    pub(crate) range: (i64, i64),
    pub(crate) read_for: Use,
}

/// A part of a 15 s rollup whose samples are told by windows.
#[derive(Debug)]
pub(crate) struct ToldByWindows {
    pub(crate) segment: Arc<Segment>,
    pub(crate) range: (i64, i64),
    /// Whether its rows count. Otherwise their sums by the hour do, and it tells no more than in which windows they lie.
    pub(crate) is_counted: bool,
    /// What is remembered of the file; none if its windows are read.
    pub(crate) counts: Option<HourCounts>,
}

/// What a scan reads.
#[derive(Debug)]
pub(crate) struct ScanPlan {
    pub(crate) parts: TimeParts,
    pub(crate) reads: Vec<PlannedRead>,
    pub(crate) told: Vec<ToldByWindows>,
    /// Whether windows tell where in whole hours there are samples.
    windows_in_hours: bool,
    /// Whether windows tell what 15 s rollups that count stand for.
    windows_of_sums: bool,
}

impl ScanPlan {
    /// The plan for the segments of a snapshot. `remembered` are the windows of a file, where those of all series are known.
    pub(crate) fn new(
        scan: &Scan<'_>,
        segments: impl Fn(Table) -> Arc<Vec<Arc<Segment>>>,
        remembered: impl Fn(&Segment) -> Option<HourCounts>,
    ) -> Self {
        let parts = TimeParts::of(scan.range, scan.grain);
        let are_few = |hours: usize, most| scan.series.len().saturating_mul(hours) <= most;
        let mut plan = Self {
            parts,
            reads: Vec::new(),
            told: Vec::new(),
            windows_in_hours: are_few(parts.hour_count(), MOST_WINDOWED_HOURS),
            // The edges lie in two more hours.
            windows_of_sums: are_few(parts.hours_of_windows() + 2, MOST_TOLD_HOURS),
        };
        if scan.series.is_empty() {
            return plan;
        }
        for segment in segments(Table::Rollup1h).iter() {
            plan.read(segment, parts.hours, if parts.hour_count() == 1 { Use::OneHour } else { Use::Hours });
        }
        for segment in segments(Table::Rollup15s).iter().filter(|segment| is_touched(segment, parts.windows)) {
            plan.read_windows(segment, remembered(segment));
        }
        for segment in segments(Table::Samples).iter() {
            plan.read_samples(segment);
        }
        plan.look_up_windows();
        plan
    }

    /// Hours of which nobody looks up where in them there are samples.
    pub(crate) fn whole_hours(&self) -> (i64, i64) {
        let (first, last) = self.parts.hours;
        if self.windows_in_hours { (first, first) } else { (first, last) }
    }

    /// How many segments are read for their rows; one of which two parts are read counts twice.
    pub(crate) fn segments_read(&self) -> u64 {
        self.reads.iter().filter(|read| read.read_for != Use::Windows).count() as u64
    }

    /// Reads a part of a segment, if the segment has any of it.
    fn read(&mut self, segment: &Arc<Segment>, range: (i64, i64), read_for: Use) -> bool {
        let is_read = is_touched(segment, range);
        if is_read {
            self.reads.push(PlannedRead { segment: Arc::clone(segment), range, read_for });
        }
        is_read
    }

    /// Reads what counts of a 15 s rollup. Those of level 1 have not been summed into hours yet.
    fn read_windows(&mut self, segment: &Arc<Segment>, remembered: Option<HourCounts>) {
        let told =
            |range, is_counted| ToldByWindows { segment: Arc::clone(segment), range, is_counted, counts: remembered };
        let TimeParts { hours, .. } = self.parts;
        let [before, after] = self.parts.beside_hours();
        let beside = (segment.level == 1).then_some(hours);
        for range in [before, after].into_iter().chain(beside) {
            let is_whole = range.0 <= segment.min_time && segment.max_time < range.1;
            let read_for = match self.windows_of_sums {
                true if remembered.is_none() && is_whole => Use::SumsAndWindows,
                true => Use::Sums,
                false => Use::Rows,
            };
            if self.read(segment, range, read_for) && self.windows_of_sums {
                self.told.push(told(range, true));
            }
        }
        if beside.is_none() && self.windows_in_hours && is_touched(segment, hours) {
            self.told.push(told(hours, false));
        }
    }

    /// Reads what no rollup tells. Young segments have none yet.
    fn read_samples(&mut self, segment: &Arc<Segment>) {
        let (from, until) = self.parts.range;
        let ranges = if segment.level == 0 { [(from, until), (until, until)] } else { self.parts.beside_windows() };
        for range in ranges {
            self.read(segment, range, Use::Rows);
        }
    }

    /// Reads the windows of files that tell by them, where they are neither remembered nor read beside sums.
    fn look_up_windows(&mut self) {
        let known = self.reads.iter().filter(|read| read.read_for.tells_windows());
        let mut known: HashSet<i64> = known.map(|read| read.segment.id).collect();
        for ToldByWindows { segment, counts, .. } in &self.told {
            if counts.is_none() && known.insert(segment.id) {
                let (segment, range) = (Arc::clone(segment), (segment.min_time, segment.max_time.saturating_add(1)));
                self.reads.push(PlannedRead { segment, range, read_for: Use::Windows });
            }
        }
    }
}

fn is_touched(segment: &Segment, (from, until): (i64, i64)) -> bool {
    from < until && segment.overlaps(from, until)
}

/// A time, and what of it the rows of each grain can tell: whole hours inside whole windows inside the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimeParts {
    pub(crate) range: (i64, i64),
    pub(crate) windows: (i64, i64),
    pub(crate) hours: (i64, i64),
}

impl TimeParts {
    /// The parts of a time. Where rows of a grain are too coarse, or none of theirs fits in, their part is empty.
    fn of(range: (i64, i64), coarsest: Grain) -> Self {
        let inner = |(from, until), grain, length| {
            if coarsest < grain { (from, from) } else { inner_range(from, until, length) }
        };
        let windows = inner(range, Grain::Window, WINDOW_15S);
        Self { range, windows, hours: inner(windows, Grain::Hour, HOUR) }
    }

    /// What windows tell before and after the hours.
    fn beside_hours(&self) -> [(i64, i64); 2] {
        [(self.windows.0, self.hours.0), (self.hours.1, self.windows.1)]
    }

    /// What samples tell before and after the windows.
    fn beside_windows(&self) -> [(i64, i64); 2] {
        [(self.range.0, self.windows.0), (self.windows.1, self.range.1)]
    }

    fn hour_count(&self) -> usize {
        hours_in(self.hours)
    }

    /// About how many hours are told by windows.
    fn hours_of_windows(&self) -> usize {
        hours_in(self.windows) - self.hour_count()
    }
}

fn hours_in((from, until): (i64, i64)) -> usize {
    usize::try_from(until.saturating_sub(from) / HOUR).unwrap_or(usize::MAX)
}

/// The whole windows inside a range; empty, at the range's start, if there is none.
fn inner_range(from: i64, until: i64, window: i64) -> (i64, i64) {
    let first = from.saturating_add(window - 1).div_euclid(window).saturating_mul(window);
    let last = until.div_euclid(window).saturating_mul(window);
    if first < last { (first, last) } else { (from, from) }
}

#[cfg(test)]
mod tests {
    use hotspan_lake::Piece;
    use hotspan_model::TenantId;

    use super::*;
    use crate::window_counts::WINDOWS;

    const SECOND: i64 = 1_000_000_000;

    /// A segment whose rows begin in the first and the last of these hours.
    fn segment(id: i64, table: Table, level: u8, (first, last): (i64, i64)) -> Arc<Segment> {
        let length = match table {
            Table::Rollup1h => HOUR,
            Table::Rollup15s => WINDOW_15S,
            _ => 1,
        };
        let piece = Piece {
            table,
            level,
            partition: None,
            path: String::new(),
            range: 0..1,
            checksum: 0,
            rows: 1,
            min_time: first * HOUR,
            max_time: (last + 1) * HOUR - length,
            index: None,
            resident: None,
            resident_bytes: 0,
        };
        let tenant = TenantId::anonymous();
        Arc::new(Segment { id, tenant, version: 1, created_at: 0, data_version: 1, piece })
    }

    /// A store of some hours: samples of each level, and the rollups that there are of those.
    fn store(hours: (i64, i64)) -> Vec<Arc<Segment>> {
        let levels = [
            (Table::Samples, 0),
            (Table::Samples, 1),
            (Table::Samples, 2),
            (Table::Rollup15s, 1),
            (Table::Rollup15s, 2),
            (Table::Rollup1h, 1),
        ];
        levels.into_iter().zip(1..).map(|((table, level), id)| segment(id, table, level, hours)).collect()
    }

    fn plan(
        store: &[Arc<Segment>],
        range: (i64, i64),
        grain: Grain,
        series: u64,
        remembered: Option<HourCounts>,
    ) -> ScanPlan {
        let series = Arc::new((0..series).collect());
        let scan = Scan { range, series: &series, grain, columns: &[] };
        let segments = |table| Arc::new(store.iter().filter(|segment| segment.table == table).cloned().collect());
        ScanPlan::new(&scan, segments, |_| remembered)
    }

    /// What is read: table, level, range and use.
    fn reads(plan: &ScanPlan) -> Vec<(Table, u8, (i64, i64), Use)> {
        let read = |read: &PlannedRead| (read.segment.table, read.segment.level, read.range, read.read_for);
        plan.reads.iter().map(read).collect()
    }

    /// Scenario: ranges with and without whole windows inside. Guarantee: the three parts make up the range.
    #[test]
    fn inner_ranges() {
        assert_eq!(inner_range(0, 60, 15), (0, 60));
        assert_eq!(inner_range(1, 59, 15), (15, 45));
        assert_eq!(inner_range(1, 14, 15), (1, 1));
        assert_eq!(inner_range(16, 29, 15), (16, 16));
        assert_eq!(inner_range(-16, 16, 15), (-15, 15));
    }

    /// Scenario: a time that begins and ends between hours and between windows, asked for at each grain; and times without
    /// an end. Guarantee: hours inside windows inside the time, none where they are too coarse.
    #[test]
    fn hours_lie_inside_windows() {
        let range = (HOUR - 20 * SECOND, 3 * HOUR + 20 * SECOND);
        let (windows, hours) = ((HOUR - WINDOW_15S, 3 * HOUR + WINDOW_15S), (HOUR, 3 * HOUR));
        let by_hour = TimeParts::of(range, Grain::Hour);
        assert_eq!(by_hour, TimeParts { range, windows, hours });
        assert_eq!((by_hour.hour_count(), by_hour.hours_of_windows()), (2, 0));
        let by_window = TimeParts::of(range, Grain::Window);
        assert_eq!(by_window, TimeParts { range, windows, hours: (windows.0, windows.0) });
        assert_eq!((by_window.hour_count(), by_window.hours_of_windows()), (0, 2));
        let (start, nothing) = (range.0, (range.0, range.0));
        assert_eq!(TimeParts::of(range, Grain::Sample), TimeParts { range, windows: nothing, hours: nothing });
        let short = TimeParts::of((start, start + 1), Grain::Hour);
        assert_eq!((short.windows, short.hours), (nothing, nothing));
        for grain in [Grain::Sample, Grain::Window, Grain::Hour] {
            for range in [(0, i64::MAX), (i64::MIN, i64::MAX)] {
                let parts = TimeParts::of(range, grain);
                assert!(parts.windows.0 >= range.0 && parts.windows.1 <= range.1);
                assert!(parts.hours.0 >= parts.windows.0 && parts.hours.1 <= parts.windows.1);
            }
        }
    }

    /// Scenario: samples of each level in all of six hours; times that begin and end at hours, at windows and between them,
    /// at each grain, for few and for many series.
    /// Guarantee: whatever its level, each sample of the time is read once, and none beside it.
    #[test]
    fn each_sample_counts_once() {
        let store = store((0, 5));
        let edges = [0, 1, WINDOW_15S, WINDOW_15S + 1, HOUR - WINDOW_15S, HOUR - 1];
        let moments = || (0..5).flat_map(|hour| edges.map(|edge| hour * HOUR + edge));
        for grain in [Grain::Sample, Grain::Window, Grain::Hour] {
            for (from, until) in moments().flat_map(|from| moments().map(move |until| (from, until))) {
                for series in [1, 1000] {
                    let plan = plan(&store, (from, until), grain, series, None);
                    let reads = || plan.reads.iter().filter(|read| read.read_for != Use::Windows);
                    for (level, time) in (0..3).flat_map(|level| moments().map(move |time| (level, time))) {
                        // Samples of level 2 are those that hours are made from.
                        let holds = |segment: &Segment| match segment.table {
                            Table::Rollup1h => level == 2,
                            _ => segment.level == level,
                        };
                        let is_read =
                            |read: &&PlannedRead| holds(&read.segment) && (read.range.0..read.range.1).contains(&time);
                        let expected = usize::from((from..until).contains(&time));
                        let found = reads().filter(is_read).count();
                        assert_eq!(
                            found, expected,
                            "{time} of level {level} in {from}..{until} by {grain:?}: {plan:?}"
                        );
                    }
                }
            }
        }
    }

    /// Scenario: an hour and a bit before it. Guarantee: hours and what is not in them yet are read for it, older samples only
    /// for the edge that cuts a window; where in the hour there are samples is told by windows, as well of level 2, whose rows
    /// are not read again.
    #[test]
    fn an_hour_and_its_edge() {
        let store = store((1, 1));
        let hour = (HOUR, 2 * HOUR);
        let range = (HOUR - 1, hour.1);
        let fresh = plan(&store, range, Grain::Hour, 1, None);
        let expected = [
            (Table::Rollup1h, 1, hour, Use::OneHour),
            (Table::Rollup15s, 1, hour, Use::SumsAndWindows),
            (Table::Samples, 0, range, Use::Rows),
            (Table::Rollup15s, 2, (HOUR, 2 * HOUR - WINDOW_15S + 1), Use::Windows),
        ];
        assert_eq!(reads(&fresh), expected);
        assert_eq!((fresh.segments_read(), fresh.whole_hours()), (3, (HOUR, HOUR)));
        let told: Vec<(u8, bool)> = fresh.told.iter().map(|told| (told.segment.level, told.is_counted)).collect();
        assert_eq!(told, [(1, true), (2, false)]);
        let remembered = plan(&store, range, Grain::Hour, 1, Some([7; WINDOWS]));
        let (level_1, level_0) = ((Table::Rollup15s, 1, hour, Use::Sums), (Table::Samples, 0, range, Use::Rows));
        assert_eq!(reads(&remembered), [(Table::Rollup1h, 1, hour, Use::OneHour), level_1, level_0]);
        assert!(remembered.told.iter().all(|told| told.counts == Some([7; WINDOWS])));
    }

    /// Scenario: part of an hour in windows; then more hours, and more series, than windows are looked up for.
    /// Guarantee: of a file that is read in part, windows are read as a whole once, to be remembered; where they are too many
    /// they are told by rows, and hours count whole.
    #[test]
    fn windows_are_looked_up_while_they_are_few() {
        let store = [segment(1, Table::Rollup15s, 2, (1, 1)), segment(2, Table::Rollup1h, 1, (0, 100))];
        let (part, file) = ((HOUR, HOUR + WINDOW_15S), (HOUR, 2 * HOUR - WINDOW_15S + 1));
        let sums = (Table::Rollup15s, 2, part, Use::Sums);
        assert_eq!(reads(&plan(&store, part, Grain::Hour, 1, None)), [sums, (Table::Rollup15s, 2, file, Use::Windows)]);
        let many = plan(&store, part, Grain::Hour, 1000, None);
        assert_eq!((reads(&many), many.told.len()), (vec![(Table::Rollup15s, 2, part, Use::Rows)], 0));
        let long = plan(&store, (0, 49 * HOUR), Grain::Hour, 1, None);
        assert_eq!((reads(&long).len(), long.told.len(), long.whole_hours()), (1, 0, (0, 49 * HOUR)));
        let nobody = plan(&store, part, Grain::Hour, 0, None);
        assert_eq!((nobody.reads.len(), nobody.told.len()), (0, 0));
    }
}
