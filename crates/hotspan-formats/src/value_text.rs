//! Values as people read them: `1.52 s`, `3.1 MiB`, `1,204`.

/// Writes a value of this unit (`nanoseconds`, `bytes`, `count`, …) for a person.
pub fn value_text(value: i64, unit: &str) -> String {
    let scaled = |steps: &[(f64, &str)]| {
        let size = value.unsigned_abs() as f64;
        let (factor, name) =
            steps.iter().copied().find(|(factor, _)| size >= *factor).unwrap_or((1.0, steps[steps.len() - 1].1));
        let number = value as f64 / factor;
        let digits = if factor <= 1.0 || number.abs() >= 100.0 {
            0
        } else if number.abs() >= 10.0 {
            1
        } else {
            2
        };
        format!("{number:.digits$} {name}")
    };
    match unit {
        "nanoseconds" | "ns" => {
            scaled(&[(3.6e12, "h"), (6e10, "min"), (1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")])
        }
        "bytes" | "By" => scaled(&[
            (1_099_511_627_776.0, "TiB"),
            (1_073_741_824.0, "GiB"),
            (1_048_576.0, "MiB"),
            (1024.0, "KiB"),
            (1.0, "B"),
        ]),
        "" | "count" | "objects" | "samples" => grouped(value),
        other => format!("{} {other}", grouped(value)),
    }
}

/// The same for a value that need not be whole, such as one for each second or request.
pub fn rate_text(value: f64, unit: &str) -> String {
    if value.abs() >= 100.0 || value == 0.0 {
        return value_text(value.round() as i64, unit);
    }
    match unit {
        "nanoseconds" | "ns" => format!("{value:.2} ns"),
        "bytes" | "By" => format!("{value:.2} B"),
        "" | "count" | "objects" | "samples" => format!("{value:.2}"),
        other => format!("{value:.2} {other}"),
    }
}

/// A length of time.
pub fn duration_text(nanos: i64) -> String {
    value_text(nanos, "nanoseconds")
}

/// A number of things.
pub fn count_text(count: u64) -> String {
    grouped(i64::try_from(count).unwrap_or(i64::MAX))
}

/// So many things of a kind: `1 span`, `2,000 spans`. The plural is the noun with an s.
pub fn counted(count: u64, noun: &str) -> String {
    format!("{} {noun}{}", count_text(count), if count == 1 { "" } else { "s" })
}

/// A whole number with commas between groups of three digits.
fn grouped(value: i64) -> String {
    let digits = value.unsigned_abs().to_string();
    let mut text = String::from(if value < 0 { "-" } else { "" });
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Columns that values take one below the other: as many as most need, or more where counts are large or units long.
pub(crate) fn column_width<'v>(values: impl IntoIterator<Item = &'v str>) -> usize {
    values.into_iter().map(|value| value.chars().count()).fold(10, usize::max)
}

/// A name without what a terminal would take for a command: names come from strangers.
pub(crate) fn printable(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// A share in percent, with as many digits as make sense.
pub(crate) fn percent(part: i64, whole: i64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: values of each kind of unit. Guarantee: the unit steps that people expect.
    #[test]
    fn readable() {
        assert_eq!(value_text(1_520_000_000, "nanoseconds"), "1.52 s");
        assert_eq!(value_text(999, "nanoseconds"), "999 ns");
        assert_eq!(value_text(-3_250_586, "bytes"), "-3.10 MiB");
        assert_eq!(value_text(1_234_567, "count"), "1,234,567");
        assert_eq!(value_text(0, "bytes"), "0 B");
        assert_eq!([1500, -1_500_000, 1_260_000_000].map(duration_text), ["1.50 µs", "-1.50 ms", "1.26 s"]);
        assert_eq!([999, 1000].map(count_text), ["999", "1,000"]);
        assert_eq!([0, 1, 1000].map(|count| counted(count, "span")), ["0 spans", "1 span", "1,000 spans"]);
        assert_eq!((rate_text(0.254, "count"), rate_text(1520.4, "ns")), ("0.25".to_owned(), "1.52 µs".to_owned()));
        assert_eq!(value_text(i64::MIN, "locks"), "-9,223,372,036,854,775,808 locks");
    }
}
