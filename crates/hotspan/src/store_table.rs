//! What a store holds, as a table for people and as JSON for machines.

use hotspan_formats::count_text;
use hotspan_lake::stats::{LevelStats, StoreStats};
use hotspan_server::time_as_text;
use serde_json::json;

const HEADINGS: [&str; 8] = ["table", "level", "segments", "rows", "bytes", "bytes/row", "from", "until"];
/// Columns of words stand to the left, numbers to the right.
const LEFT: [bool; 8] = [true, false, false, false, false, false, true, true];

/// Lines in aligned columns: one a table and level, then the sum of all.
pub(crate) fn as_text(stats: &StoreStats) -> String {
    let mut rows = vec![HEADINGS.map(str::to_owned)];
    rows.extend(stats.levels.iter().map(|level| row(&level.table, &format!("L{}", level.level), level)));
    let total = total(stats);
    if total.segments > 0 {
        rows.push(row("total", "", &total));
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..HEADINGS.len()).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let cells = row
            .iter()
            .zip(&widths)
            .zip(LEFT)
            .map(|((cell, width), left)| if left { format!("{cell:<width$}") } else { format!("{cell:>width$}") });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text.push_str(&format!("\ncatalog version {}, tenants {}\n", stats.version, stats.tenants));
    if stats.removed_segments > 0 {
        let size = size(stats.removed_bytes);
        text.push_str(&format!(
            "{} removed segments, {size}, wait to be deleted\n",
            count_text(stats.removed_segments)
        ));
    }
    text
}

fn row(table: &str, level: &str, stats: &LevelStats) -> [String; 8] {
    [
        table.to_owned(),
        level.to_owned(),
        count_text(stats.segments),
        count_text(stats.rows),
        size(stats.bytes + stats.index_bytes),
        bytes_per_row(stats).map_or_else(|| "-".to_owned(), |bytes| format!("{bytes:.1}")),
        time_as_text(stats.min_time),
        time_as_text(stats.max_time),
    ]
}

/// The same numbers as JSON.
pub(crate) fn as_json(stats: &StoreStats) -> String {
    let with_share = |level: &LevelStats| {
        let mut value = json!(level);
        value["bytes_per_row"] = json!(bytes_per_row(level));
        value
    };
    let mut value = json!(stats);
    value["levels"] = stats.levels.iter().map(with_share).collect();
    value["total"] = with_share(&total(stats));
    format!("{value:#}\n")
}

fn bytes_per_row(stats: &LevelStats) -> Option<f64> {
    (stats.rows > 0).then(|| (stats.bytes + stats.index_bytes) as f64 / stats.rows as f64)
}

fn total(stats: &StoreStats) -> LevelStats {
    let sum = |of: fn(&LevelStats) -> u64| stats.levels.iter().map(of).sum();
    LevelStats {
        table: "total".to_owned(),
        level: 0,
        segments: sum(|level| level.segments),
        rows: sum(|level| level.rows),
        bytes: sum(|level| level.bytes),
        index_bytes: sum(|level| level.index_bytes),
        min_time: stats.levels.iter().map(|level| level.min_time).min().unwrap_or(0),
        max_time: stats.levels.iter().map(|level| level.max_time).max().unwrap_or(0),
    }
}

/// A size for people: three digits that count, and a unit.
pub(crate) fn size(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut scaled = bytes as f64;
    let mut unit = 0;
    while scaled >= 1000.0 && unit + 1 < units.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    let digits = if unit == 0 || scaled >= 100.0 {
        0
    } else if scaled >= 10.0 {
        1
    } else {
        2
    };
    format!("{scaled:.digits$} {}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: two levels and a total of different widths.
    /// Guarantee: every column lines up, and the total adds rows, bytes and indexes.
    #[test]
    fn columns_line_up() {
        let level = |level, rows, bytes| LevelStats {
            table: "samples".to_owned(),
            level,
            segments: 1,
            rows,
            bytes,
            index_bytes: 24,
            min_time: 0,
            max_time: 1_700_000_000_000_000_000,
        };
        let levels = vec![level(0, 5, 1000), level(3, 1_000_000, 15_000_000)];
        let stats = StoreStats { version: 7, tenants: 1, levels, removed_segments: 0, removed_bytes: 0 };
        let text = as_text(&stats);
        let lines: Vec<&str> = text.lines().collect();
        let at = |line: &str, part: &str| line.find(part).unwrap_or_else(|| panic!("{line:?} lacks {part:?}"));
        assert_eq!(at(lines[0], "from"), at(lines[2], "1970-01-01"), "{text}");
        assert_eq!(at(lines[0], "until"), at(lines[3], "2023-11-14"), "{text}");
        assert!(lines[3].starts_with("total") && lines[3].contains("1,000,005"), "{text}");
        assert!(lines[1].contains("1.00 KiB") && lines[1].contains("204.8"), "{text}");
    }
}
