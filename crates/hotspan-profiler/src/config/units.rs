//! Numbers with units, as people write them.

use std::time::Duration;

/// `250ms`, `1s`, `1.5m`: a time with its unit.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = split(text);
    let scale = match unit {
        "ns" => 1e-9,
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        "" => return Err(format!("`{text}` needs a unit: ms, s, m or h")),
        _ => return Err(format!("`{unit}` is not a unit of time; use ms, s, m or h")),
    };
    Duration::try_from_secs_f64(positive(number, text)? * scale).map_err(|_| format!("`{text}` is too long"))
}

/// `512KB`, `10MiB`, `4096B`: a size. K, M and G are powers of 1024, with or without the `i`.
pub(super) fn size(text: &str) -> Result<usize, String> {
    let (number, unit) = split(text);
    let scale = match unit.to_ascii_lowercase().as_str() {
        "b" => 1u64,
        "kb" | "kib" => 1 << 10,
        "mb" | "mib" => 1 << 20,
        "gb" | "gib" => 1 << 30,
        "" => return Err(format!("`{text}` needs a unit: B, KB, MB or GB")),
        _ => return Err(format!("`{unit}` is not a unit of size; use B, KB, MB or GB")),
    };
    let bytes = positive(number, text)? * scale as f64;
    if bytes < 1.0 || bytes > (1u64 << 40) as f64 {
        return Err(format!("`{text}` is not a size between 1B and 1024GB"));
    }
    Ok(bytes as usize)
}

/// `90%` or `90`: a percentage.
pub(super) fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim();
    let value = positive(number, text)?;
    if value > 100.0 { Err(format!("`{text}` is more than 100 %")) } else { Ok(value) }
}

/// `5%` or `0.05`: a share, as a number from 0 to 1.
pub(super) fn share(text: &str) -> Result<f64, String> {
    if text.ends_with('%') {
        return Ok(percent(text)? / 100.0);
    }
    let value = positive(text, text)?;
    if value > 1.0 { Err(format!("`{text}` is not a share; write {text}% or a number up to 1")) } else { Ok(value) }
}

fn split(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    (&text[..end], text[end..].trim())
}

fn positive(number: &str, text: &str) -> Result<f64, String> {
    let plain = !number.is_empty() && number.chars().all(|c| c.is_ascii_digit() || c == '.');
    number.parse().ok().filter(|_| plain).ok_or_else(|| format!("`{text}` is not a number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: values with every unit, without one, with a wrong one, and out of range.
    /// Guarantee: good ones mean what they say, the others are refused with a hint.
    #[test]
    fn units_are_strict() {
        assert_eq!(duration("1s"), Ok(Duration::from_secs(1)));
        assert_eq!(duration("1.5 m"), Ok(Duration::from_secs(90)));
        assert_eq!(size("512KB"), Ok(512 * 1024));
        assert_eq!(size("10MiB"), Ok(10 << 20));
        assert_eq!(percent("90%"), Ok(90.0));
        assert_eq!(share("5%"), Ok(0.05));
        assert_eq!(share("0.5"), Ok(0.5));
        for bad in ["10", "10 parsecs", "s", "-1s", "1e3s", "inf s", "99999999999999999999h"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
        for bad in ["512", "512Kb/s", "0B", "-1KB", "9999999GB"] {
            assert!(size(bad).is_err(), "{bad}");
        }
        assert!(percent("101%").is_err() && percent("x").is_err() && share("50").is_err());
    }
}
