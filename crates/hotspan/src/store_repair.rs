//! `hotspan store repair`: what it says of what it did.

use hotspan_formats::count_text;
use hotspan_lake::repair::{KEPT_IN, RepairReport};
use hotspan_server::time_as_text;

/// A count of damaged places.
pub(crate) fn places(count: usize) -> String {
    if count == 1 { "1 place".to_owned() } else { format!("{} places", count_text(count as u64)) }
}

pub(crate) fn repair_text(report: &RepairReport) -> String {
    let mut text = String::new();
    for path in &report.rebuilt {
        text.push_str(&format!("rebuilt  {path}\n"));
    }
    for removed in &report.removed {
        let (path, table, rows, reason) = (&removed.path, &removed.table, count_text(removed.rows), &removed.reason);
        let (from, until) = (time_as_text(removed.min_time), time_as_text(removed.max_time));
        text.push_str(&format!(
            "removed  {path}: {reason}; lost are {rows} rows of {table}, from {from} until {until}\n"
        ));
    }
    for damage in &report.left {
        text.push_str(&format!("left     {}: {}\n", damage.path, damage.reason));
    }
    match (report.rebuilt.is_empty(), report.removed.is_empty(), report.left.is_empty()) {
        (true, true, true) => text.push_str("sound; nothing to mend\n"),
        (_, false, _) => text.push_str(&format!("what is left of the files that were removed lies in {KEPT_IN}\n")),
        _ => {}
    }
    text
}
