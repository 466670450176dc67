//! Steps of time: where each begins and ends.

use hotspan_lake::table::{HOUR, WINDOW_15S};

use crate::scan::Grain;

/// Where steps begin and end. They may begin before the first moment that a time can have, and end after the last, so that
/// each is as long as any other: hence the wide numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grid {
    origin: i128,
    step: i128,
    /// No step ends later than this; the last one has everything from its start on.
    last_point: i64,
}

impl Grid {
    /// Steps from a moment on. Those of whole windows of 15 s lie on the grid of such windows, so that rollups answer.
    pub(crate) fn new(from: impl Into<i128>, step: i64, last_point: Option<i64>) -> Self {
        let (from, step, window) = (from.into(), i128::from(step), i128::from(WINDOW_15S));
        let origin = if step % window == 0 { from.div_euclid(window) * window } else { from };
        Self { origin, step, last_point: last_point.unwrap_or(i64::MAX) }
    }

    pub(crate) fn grain(self) -> Grain {
        let whole = |window: i64| self.step % i128::from(window) == 0 && self.origin % i128::from(window) == 0;
        match (whole(HOUR), whole(WINDOW_15S)) {
            (true, _) => Grain::Hour,
            (_, true) => Grain::Window,
            _ => Grain::Sample,
        }
    }

    pub(crate) fn step_of(self, time: i64) -> i64 {
        self.number_at(time).min(self.number_at(self.last_point.saturating_sub(1)).max(0))
    }

    fn number_at(self, time: i64) -> i64 {
        within_time((i128::from(time) - self.origin).div_euclid(self.step))
    }

    pub(crate) fn start_of(self, step: i64) -> i64 {
        within_time(self.origin + i128::from(step) * self.step)
    }

    pub(crate) fn end_of(self, step: i64) -> i64 {
        self.start_of(step.saturating_add(1)).min(self.last_point)
    }
}

/// The number, or the one closest to it that a time can be.
fn within_time(number: i128) -> i64 {
    let limit = if number < 0 { i64::MIN } else { i64::MAX };
    i64::try_from(number).unwrap_or(limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    /// Scenario: steps of whole windows and others. Guarantee: the former lie on the grid of windows and may use
    /// rollups; a sample at the start of a step belongs to it.
    #[test]
    fn steps_and_grains() {
        let grid = |from: i64, step| Grid::new(from, step, None);
        let minute = grid(100 * SECOND, 60 * SECOND);
        assert_eq!((minute.start_of(0), minute.grain()), (90 * SECOND, Grain::Window));
        assert_eq!(minute.end_of(minute.step_of(90 * SECOND)), 150 * SECOND);
        assert_eq!(minute.end_of(minute.step_of(150 * SECOND)), 210 * SECOND);
        assert_eq!(grid(7 * HOUR, HOUR).grain(), Grain::Hour);
        assert_eq!(grid(100 * SECOND, 7 * SECOND).grain(), Grain::Sample);
        assert_eq!(grid(100 * SECOND, 7 * SECOND).start_of(0), 100 * SECOND);
    }

    /// Scenario: steps from the first moment there is, so that today lies farther away than a number of 64 bits can say.
    /// Guarantee: a time lies in its step, which is as long as any other; at both ends, steps end where time does.
    #[test]
    fn steps_from_the_first_moment_on() {
        let today = 1_800_000_000 * SECOND;
        for step in [SECOND / 1000, 7 * SECOND, 60 * SECOND, HOUR, 1_000_000_000 * SECOND] {
            let grid = Grid::new(i64::MIN, step, None);
            let (start, end) = (grid.start_of(grid.step_of(today)), grid.end_of(grid.step_of(today)));
            assert!(start <= today && today < end && end - start == step, "{step}: {start} to {end}");
            assert_eq!(grid.start_of(grid.step_of(i64::MIN)), i64::MIN, "{step}");
            assert!(grid.end_of(grid.step_of(i64::MAX - 1)) > i64::MAX - step, "{step}");
        }
        assert_eq!(Grid::new(i64::MIN, 60 * SECOND, None).grain(), Grain::Window);
    }

    /// Scenario: times up to an end that lies on the grid, between two steps of it, or at the start.
    /// Guarantee: no point is after the end, and what is at the end is in the step before it.
    #[test]
    fn no_point_is_after_the_end() {
        let point = |grid: Grid, second: i64| grid.end_of(grid.step_of(second * SECOND)) / SECOND;
        let minutes = |last: i64| Grid::new(90 * SECOND, 60 * SECOND, Some(last * SECOND));
        assert_eq!([149, 150, 209, 210].map(|second| point(minutes(210), second)), [150, 210, 210, 210]);
        assert_eq!([149, 150, 160].map(|second| point(minutes(160), second)), [150, 160, 160]);
        assert_eq!(point(minutes(90), 90), 90);
    }
}
