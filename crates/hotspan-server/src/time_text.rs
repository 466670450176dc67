//! Times as people and scripts write them: numbers of any unit, dates, and distances from now.

use std::time::Duration;

use jiff::Timestamp;

/// A text that is no time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TimeTextError {
    /// In no form that is known.
    #[error(
        "{0:?} is not a time; use seconds, milliseconds, microseconds or nanoseconds since 1970, \
         a date such as 2026-01-31T10:00:00Z, or a distance such as now-1h"
    )]
    Unknown(String),
    /// The clock of any place on earth.
    #[error("{0:?} does not say where the clock shows it; end it in Z for UTC, or in an offset such as +01:00")]
    NoZone(String),
}

const SECOND: i64 = 1_000_000_000;

/// Nanoseconds since 1970. Numbers are read by their size: 10 digits are seconds, 13 milliseconds, 16
/// microseconds, 19 nanoseconds, and 8 that make a day are that day in UTC, as in Pyroscope; it may have hyphens.
pub fn parse_time(text: &str, now: i64) -> Result<i64, TimeTextError> {
    let wrong = || TimeTextError::Unknown(text.to_owned());
    let trimmed = text.trim();
    if trimmed == "now" {
        return Ok(now);
    }
    if let Some(distance) = distance_from_now(trimmed) {
        let later = distance.trim_start();
        if let Some(length) = later.strip_prefix('-') {
            return parse_nanos(length).map(|length| now.saturating_sub(length)).ok_or_else(wrong);
        }
        // A plus sign that was not escaped in an address arrives as a space.
        let length = later.strip_prefix('+').or_else(|| distance.strip_prefix(' ')).and_then(parse_nanos);
        return length.map(|length| now.saturating_add(length)).ok_or_else(wrong);
    }
    let digits = trimmed.strip_prefix('-').unwrap_or(trimmed);
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        if let Some(day) = day(trimmed) {
            return Ok(day);
        }
        let number: i64 = trimmed.parse().map_err(|_| wrong())?;
        let factor = match digits.len() {
            0..=11 => SECOND,
            12..=14 => 1_000_000,
            15..=17 => 1_000,
            _ => 1,
        };
        return number.checked_mul(factor).ok_or_else(wrong);
    }
    if let Ok(seconds) = trimmed.parse::<f64>() {
        let nanos = seconds * SECOND as f64;
        // Not a number is in no range.
        let fits = nanos > i64::MIN as f64 && nanos < i64::MAX as f64;
        return if fits { Ok(nanos as i64) } else { Err(wrong()) };
    }
    if let Some(day) = day_with_hyphens(trimmed) {
        return Ok(day);
    }
    let no_stamp = |_| match trimmed.parse::<jiff::civil::DateTime>() {
        Ok(_) => TimeTextError::NoZone(text.to_owned()),
        Err(_) => wrong(),
    };
    let stamp: Timestamp = trimmed.parse().or_else(|_| with_plus(trimmed).parse()).map_err(no_stamp)?;
    i64::try_from(stamp.as_nanosecond()).map_err(|_| wrong())
}

/// What stands behind `now`, which need not be said before a sign: `-1h` has a unit, so that it is no number.
fn distance_from_now(text: &str) -> Option<&str> {
    let has_unit = || text.starts_with(['-', '+']) && text.ends_with(|c: char| c.is_ascii_alphabetic());
    text.strip_prefix("now").or_else(|| has_unit().then_some(text))
}

/// The text with its last space as the `+` of an offset: so `…T10:00:00+01:00` arrives from an address in which the sign
/// was not escaped.
fn with_plus(text: &str) -> String {
    text.rsplit_once(' ').map_or_else(String::new, |(time, offset)| format!("{time}+{offset}"))
}

/// The start of a day written as `20260131`; none if it is no such day, or none that could be meant.
fn day(digits: &str) -> Option<i64> {
    if digits.len() != 8 || !(1971..2200).contains(&digits[..4].parse::<i16>().ok()?) {
        return None;
    }
    let date: jiff::civil::Date = format!("{}-{}-{}", &digits[..4], &digits[4..6], &digits[6..]).parse().ok()?;
    let stamp = date.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp();
    i64::try_from(stamp.as_nanosecond()).ok()
}

/// The start of a day written as `2026-01-31`.
fn day_with_hyphens(text: &str) -> Option<i64> {
    let is_hyphen = |at: usize| text.as_bytes().get(at) == Some(&b'-');
    if text.len() == 10 && is_hyphen(4) && is_hyphen(7) { day(&text.replace('-', "")) } else { None }
}

/// A moment as a person reads it, to the second: `2026-01-31T10:00:00Z`, which [`parse_time`] takes.
pub fn time_as_text(nanos: i64) -> String {
    let second = nanos.div_euclid(SECOND);
    // The first second that there are nanoseconds for has no start among them.
    let stamp = second.checked_mul(SECOND).and_then(|_| Timestamp::from_second(second).ok());
    stamp.map_or_else(|| nanos.to_string(), |stamp| stamp.to_string())
}

/// A length such as `250ms`, `15m`, `1h30m` or `2d`.
pub fn parse_duration(text: &str) -> Option<Duration> {
    parse_nanos(text).and_then(|nanos| u64::try_from(nanos).ok()).map(Duration::from_nanos)
}

fn parse_nanos(text: &str) -> Option<i64> {
    let mut total = 0i64;
    let mut rest = text.trim();
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let number_length = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..number_length].parse().ok()?;
        rest = &rest[number_length..];
        let unit_length = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let unit = match &rest[..unit_length] {
            "ns" => 1,
            "us" | "µs" => 1_000,
            "ms" => 1_000_000,
            "s" | "sec" | "second" | "seconds" => SECOND,
            "m" | "min" | "minute" | "minutes" => 60 * SECOND,
            "h" | "hour" | "hours" => 3600 * SECOND,
            "d" | "day" | "days" => 24 * 3600 * SECOND,
            "w" | "week" | "weeks" => 7 * 24 * 3600 * SECOND,
            "M" | "mon" | "month" | "months" => 30 * 24 * 3600 * SECOND,
            "y" | "year" | "years" => 365 * 24 * 3600 * SECOND,
            _ => return None,
        };
        rest = &rest[unit_length..];
        total = total.checked_add((number * unit as f64) as i64)?;
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: one moment in every form. Guarantee: one number.
    #[test]
    fn all_forms_agree() {
        let expected = 1_700_000_000 * SECOND;
        let texts = [
            "1700000000",
            "1700000000000",
            "1700000000000000",
            "1700000000000000000",
            "1700000000.0",
            "2023-11-14T22:13:20Z",
            "2023-11-14T23:13:20+01:00",
            "2023-11-14T23:13:20 01:00",
            "2023-11-14 23:13:20 01:00",
        ];
        for text in texts {
            assert_eq!(parse_time(text, 0), Ok(expected), "{text}");
        }
        assert_eq!(parse_time("now-1h30m", 2 * 3600 * SECOND), Ok(1800 * SECOND));
        assert_eq!(parse_time("now", 7), Ok(7));
        assert_eq!(parse_time("now 1s", 7), Ok(SECOND + 7), "a plus sign that was not escaped");
        for text in ["now-2h", "-2h", "now - 2h", "now-2hours", "-120minutes", "now-1hour60min"] {
            assert_eq!(parse_time(text, 7200 * SECOND), Ok(0), "{text}");
        }
        for text in ["+1day", "now + 1d"] {
            assert_eq!(parse_time(text, 7), Ok(24 * 3600 * SECOND + 7), "{text}");
        }
        for day in ["20231114", "2023-11-14"] {
            assert_eq!(parse_time(day, 0), Ok(expected - (22 * 3600 + 13 * 60 + 20) * SECOND), "{day}");
        }
        for nowhere in ["2023-11-14 23:13:20", "2023-11-14T23:13", "2023-11-14 01:00"] {
            assert_eq!(parse_time(nowhere, 0), Err(TimeTextError::NoZone(nowhere.to_owned())));
        }
        // Eight digits that are no day are seconds.
        assert_eq!(parse_time("20231314", 0), Ok(20_231_314 * SECOND));
        assert_eq!(parse_time("-2023111", 0), Ok(-2_023_111 * SECOND));
        assert_eq!(time_as_text(expected), "2023-11-14T22:13:20Z");
        for end in [i64::MIN, i64::MIN + 1, i64::MAX] {
            let read = parse_time(&time_as_text(end), 0).map(|read| read.div_euclid(SECOND));
            assert_eq!(read, Ok(end.div_euclid(SECOND)), "{}", time_as_text(end));
        }
        let wrongs =
            ["", "yesterday", "now-", "now-1", "now*1h", "now1h", "now--1h", "1h", "-h", "12x", "99999999999999999999"];
        let no_numbers = ["nan", "inf", "-infinity", "1e300", "2023-13-14", "2023-1114-", "20-2311-14"];
        for wrong in wrongs.into_iter().chain(no_numbers) {
            assert!(parse_time(wrong, 0).is_err(), "{wrong}");
        }
    }
}
