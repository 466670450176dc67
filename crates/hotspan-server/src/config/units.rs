//! Lengths of time and sizes as people write them, and back again without loss.

use std::time::Duration;

/// Units of time in nanoseconds, longest first.
const TIME_UNITS: [(&str, u128); 7] = [
    ("d", 24 * 3600 * 1_000_000_000),
    ("h", 3600 * 1_000_000_000),
    ("m", 60 * 1_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// Units of size in bytes: of each magnitude first the binary one, which is shown where both fit.
const SIZE_UNITS: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("TB", 1_000_000_000_000),
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("kB", 1_000),
    ("B", 1),
];

/// A duration as [`crate::parse_duration`] reads it: `250ms`, `1h30m`, `14d`.
pub(super) fn duration_text(duration: Duration) -> String {
    let mut rest = duration.as_nanos();
    if rest == 0 {
        return "0s".to_owned();
    }
    let mut text = String::new();
    for (name, nanos) in TIME_UNITS {
        if rest >= nanos {
            text.push_str(&format!("{}{name}", rest / nanos));
            rest %= nanos;
        }
    }
    text
}

/// Bytes of a text such as `64MiB`, `1.5GB` or `4096`; none if it is no size.
pub(super) fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let number_length = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(number_length);
    let unit = unit.trim_start();
    let factor = match unit {
        "" => 1,
        unit => SIZE_UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit))?.1,
    };
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(factor);
    }
    let bytes = number.parse::<f64>().ok()? * factor as f64;
    // Half a byte is no size, and beyond 2^53 a float no longer counts bytes.
    (bytes.fract() == 0.0 && bytes < (1u64 << 53) as f64).then_some(bytes as u64)
}

/// A size as [`parse_size`] reads it, in the largest unit that it is a whole number of.
pub(super) fn size_text(bytes: u64) -> String {
    let fits = |(_, factor): &&(&str, u64)| bytes > 0 && bytes.is_multiple_of(*factor);
    match SIZE_UNITS.iter().find(fits) {
        Some((name, factor)) => format!("{}{name}", bytes / factor),
        None => "0B".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: sizes and durations of every magnitude. Guarantee: text and number lead to each other.
    #[test]
    fn text_and_number_agree() {
        for bytes in [0, 1, 999, 1000, 1024, 1500, 8 << 20, 10_000_000, 2 << 30, u64::MAX] {
            assert_eq!(parse_size(&size_text(bytes)), Some(bytes), "{}", size_text(bytes));
        }
        for (text, bytes) in [("64MiB", 64 << 20), ("10MB", 10_000_000), ("1.5 GiB", 3 << 29), ("7", 7), ("2kb", 2000)]
        {
            assert_eq!(parse_size(text), Some(bytes), "{text}");
        }
        for wrong in ["", "MiB", "64M", "-1", "1.0001kiB", "1e3", "20000000TiB", "5 MiB x"] {
            assert_eq!(parse_size(wrong), None, "{wrong}");
        }
        for nanos in [0, 1, 1_500, 250_000_000, 90_000_000_000, 86_400_000_000_000 * 400] {
            let duration = Duration::from_nanos(nanos);
            assert_eq!(crate::parse_duration(&duration_text(duration)), Some(duration));
        }
        assert_eq!(duration_text(Duration::from_secs(5400)), "1h30m");
    }
}
