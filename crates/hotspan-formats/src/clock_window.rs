//! Which times are taken: no older than what is kept, and no further ahead than clocks go wrong.
//!
//! What is older than its retention would be acknowledged and gone a moment later (R4), and what lies years ahead would stay
//! for years, in partitions of its own.

use std::time::Duration;

/// The times that spans and samples of a request may have; by default, all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClockWindow {
    now: i64,
    earliest: i64,
    latest: i64,
    age_setting: &'static str,
}

impl Default for ClockWindow {
    fn default() -> Self {
        Self { now: 0, earliest: i64::MIN, latest: i64::MAX, age_setting: "" }
    }
}

/// A time that is not taken. Written as the end of a sentence that starts with what has that time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OutsideWindow {
    /// Most probably it was never set.
    #[error("is not set")]
    NotSet,
    /// It is a time that would be taken, were it in nanoseconds.
    #[error("seems to be in {unit}; times are nanoseconds since 1970")]
    OtherUnit {
        /// What it seems to be in.
        unit: &'static str,
    },
    /// It would be removed at once.
    #[error("is {} old; no more than the last {} is kept ({setting})", time_text(*age), time_text(*most))]
    TooOld {
        /// How old it is, in nanoseconds.
        age: i64,
        /// How old it may be.
        most: i64,
        /// The setting that says so.
        setting: &'static str,
    },
    /// No clock is that wrong.
    #[error("is {} ahead of the server's clock, at most {} is taken (limits.max_ahead)", time_text(*ahead), time_text(*most))]
    TooFarAhead {
        /// How far ahead it is, in nanoseconds.
        ahead: i64,
        /// How far it may be.
        most: i64,
    },
}

impl ClockWindow {
    /// What is taken at a time, and the setting that decides how old it may be.
    pub fn new(now: i64, max_age: Duration, max_ahead: Duration, age_setting: &'static str) -> Self {
        let nanos = |length: Duration| i64::try_from(length.as_nanos()).unwrap_or(i64::MAX);
        let (earliest, latest) = (now.saturating_sub(nanos(max_age)), now.saturating_add(nanos(max_ahead)));
        Self { now, earliest, latest, age_setting }
    }

    /// The latest time that is taken.
    pub fn latest(&self) -> i64 {
        self.latest
    }

    /// Whether a time is taken, and if not, why.
    #[inline]
    pub fn check(&self, time: i64) -> Result<(), OutsideWindow> {
        if (self.earliest..=self.latest).contains(&time) { Ok(()) } else { Err(self.problem_of(time)) }
    }

    #[cold]
    fn problem_of(&self, time: i64) -> OutsideWindow {
        if time == 0 {
            return OutsideWindow::NotSet;
        }
        if time > self.latest {
            let (ahead, most) = (time.saturating_sub(self.now), self.latest.saturating_sub(self.now));
            return OutsideWindow::TooFarAhead { ahead, most };
        }
        let fits = |length: i64| time.checked_mul(length).is_some_and(|nanos| self.check(nanos).is_ok());
        if let Some((unit, _)) = OTHER_UNITS.into_iter().find(|(_, length)| fits(*length)) {
            return OutsideWindow::OtherUnit { unit };
        }
        let (age, most) = (self.now.saturating_sub(time), self.now.saturating_sub(self.earliest));
        OutsideWindow::TooOld { age, most, setting: self.age_setting }
    }
}

/// Units of clocks that are not OTLP's, and their nanoseconds.
const OTHER_UNITS: [(&str, i64); 3] = [("microseconds", 1000), ("milliseconds", 1_000_000), ("seconds", 1_000_000_000)];

/// A length of time, roughly, in the unit that people would use: 25 hours are not quite a day.
fn time_text(nanos: i64) -> String {
    const UNITS: [(&str, f64); 4] = [("days", 86_400e9), ("hours", 3600e9), ("minutes", 60e9), ("seconds", 1e9)];
    let nanos = nanos as f64;
    // Rounded as it is shown: a moment less than two days is no 48 hours.
    let is_told_by = |length: f64| (nanos / length * 10.0).round() >= 20.0 || nanos == length;
    let (name, length) = UNITS.into_iter().find(|(_, length)| is_told_by(*length)).unwrap_or(("seconds", 1e9));
    let text = format!("{:.1}", nanos / length);
    match text.strip_suffix(".0") {
        Some("1") => format!("1 {}", name.trim_end_matches('s')),
        Some(whole) => format!("{whole} {name}"),
        None => format!("{text} {name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 24 * 3600 * 1_000_000_000;

    /// Scenario: times around both ends of a window of a week behind and an hour ahead, and one that was never set.
    /// Guarantee: the ends belong to it, and what is outside is told how far, and which setting says so.
    #[test]
    fn the_window_and_its_words() {
        let now = 20_000 * DAY;
        let window =
            ClockWindow::new(now, Duration::from_secs(7 * 86_400), Duration::from_secs(3600), "retention.samples");
        for inside in [now, now - 7 * DAY, now + DAY / 24] {
            assert_eq!(window.check(inside), Ok(()));
        }
        let told = |time: i64| window.check(time).unwrap_err().to_string();
        assert_eq!(told(0), "is not set");
        assert_eq!(
            told(now - 20 * DAY - DAY / 2),
            "is 20.5 days old; no more than the last 7 days is kept (retention.samples)"
        );
        let ahead = "is 2 hours ahead of the server's clock, at most 1 hour is taken (limits.max_ahead)";
        assert_eq!(told(now + DAY / 12), ahead);
        let nearly = "is 2 days ahead of the server's clock, at most 1 hour is taken (limits.max_ahead)";
        assert_eq!(told(now + 2 * DAY - 1_000_000), nearly);
        let barely = "is 61 minutes ahead of the server's clock, at most 1 hour is taken (limits.max_ahead)";
        assert_eq!(told(now + DAY / 24 + DAY / 24 / 60), barely);
        for (unit, length) in [("seconds", 1_000_000_000), ("milliseconds", 1_000_000), ("microseconds", 1000)] {
            assert_eq!(told(now / length), format!("seems to be in {unit}; times are nanoseconds since 1970"));
        }
        assert!(window.check(now - 7 * DAY - 1).is_err() && window.check(now + DAY / 24 + 1).is_err());
        for any in [i64::MIN, 0, i64::MAX] {
            assert_eq!(ClockWindow::default().check(any), Ok(()));
            assert!(window.check(any).is_err());
        }
    }
}
