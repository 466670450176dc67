//! Tables for a terminal.

/// Which side of its column a cell stands at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Rows of cells under headings, in columns as wide as they need to be.
#[derive(Debug)]
pub(crate) struct Table {
    headings: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub(crate) fn new(headings: &[(&str, Align)]) -> Self {
        let headings = headings.iter().map(|(name, align)| ((*name).to_owned(), *align)).collect();
        Self { headings, rows: Vec::new() }
    }

    /// Adds a row. Control characters are shown as `?`: names come from anybody, and may hold escape sequences.
    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.cells(cells.into());
    }

    /// The same where it is not known before how many columns there are.
    pub(crate) fn cells(&mut self, cells: Vec<String>) {
        let clean = |cell: String| cell.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
        self.rows.push(cells.into_iter().map(clean).collect());
    }

    /// Whether there is no row.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table as lines.
    pub(crate) fn draw(&self) -> String {
        let headings: Vec<String> = self.headings.iter().map(|(name, _)| name.clone()).collect();
        let lines = || std::iter::once(&headings).chain(&self.rows);
        let width = |column: usize| lines().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
        let widths: Vec<usize> = (0..headings.len()).map(|column| width(column).unwrap_or(0)).collect();
        let mut text = String::new();
        for row in lines() {
            let cells = row.iter().zip(&widths).zip(&self.headings).map(|((cell, width), (_, align))| {
                // Not by a width in `format!`, which takes none beyond 65,535: cells may be longer.
                let room = " ".repeat(width - cell.chars().count());
                match align {
                    Align::Left => format!("{cell}{room}"),
                    Align::Right => format!("{room}{cell}"),
                }
            });
            text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
            text.push('\n');
        }
        text
    }
}

/// A length of time with three digits that count.
pub(crate) fn duration_text(nanos: i64) -> String {
    let size = nanos.unsigned_abs() as f64;
    let units = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
    let (unit, length) = units.into_iter().rev().find(|(_, length)| size >= *length).unwrap_or(("ns", 1.0));
    let scaled = nanos as f64 / length;
    let digits = match scaled.abs() {
        _ if unit == "ns" => 0,
        scaled if scaled >= 100.0 => 0,
        scaled if scaled >= 10.0 => 1,
        _ => 2,
    };
    format!("{scaled:.digits$}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: cells of different widths, one with an escape sequence.
    /// Guarantee: columns line up at their sides, and no control character comes through.
    #[test]
    fn columns_line_up() {
        let mut table = Table::new(&[("name", Align::Left), ("n", Align::Right)]);
        table.row(["a\u{1b}[31mb".to_owned(), "5".to_owned()]);
        table.row(["c".to_owned(), "1234".to_owned()]);
        assert_eq!(table.draw(), "name        n\na?[31mb     5\nc        1234\n");
    }

    /// Scenario: a cell of a hundred thousand characters, as collapsed stacks have. Guarantee: it is drawn whole.
    #[test]
    fn cells_of_any_width() {
        let long = "x".repeat(100_000);
        let mut table = Table::new(&[("stacks", Align::Left), ("n", Align::Right)]);
        table.row([long.clone(), "5".to_owned()]);
        assert_eq!(table.draw().lines().nth(1), Some(format!("{long}  5").as_str()));
    }

    /// Scenario: lengths of every size. Guarantee: three digits that count, and the unit that fits.
    #[test]
    fn durations() {
        let texts = [0, 999, 1500, 12_345_678, 999_000_000, 2_000_000_000, -1_500_000].map(duration_text);
        assert_eq!(texts, ["0ns", "999ns", "1.50us", "12.3ms", "999ms", "2.00s", "-1.50ms"]);
    }
}
