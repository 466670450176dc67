//! Tables for a terminal.

use hotspan_formats::shortened;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Column {
    /// Words: they stand left, and are cut where the screen is too narrow.
    Text,
    /// Ids and times, which people copy: they stand left, and whole.
    Id,
    /// Numbers: they stand right, and whole.
    Number,
}

/// Between two columns.
const GAP: &str = "  ";
/// Words are not cut to less than this.
const LEAST_TEXT: usize = 12;

/// Rows of cells under headings, in columns as wide as they need to be.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<Column>,
    /// The headings first.
    lines: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub(crate) fn new(headings: &[(&str, Column)]) -> Self {
        let columns = headings.iter().map(|(_, column)| *column).collect();
        Self { columns, lines: vec![headings.iter().map(|(name, _)| (*name).to_owned()).collect()] }
    }

    /// Adds a row. Control characters are shown as signs: names come from anybody, and may hold escape sequences.
    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.cells(cells);
    }

    /// The same where it is not known before how many columns there are.
    pub(crate) fn cells(&mut self, cells: impl IntoIterator<Item = String>) {
        let sign = |character: char| match character {
            '\n' => '↵',
            other if other.is_control() => '?',
            other => other,
        };
        self.lines.push(cells.into_iter().map(|cell| cell.chars().map(sign).collect()).collect());
    }

    /// Whether there is no row.
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.len() == 1
    }

    /// The table as lines. On a screen, words are cut until a row fits; where ids leave no room for them, they get a line of
    /// their own. Without a screen, nothing is cut.
    pub(crate) fn draw(&self, screen: Option<usize>) -> String {
        let all: Vec<usize> = (0..self.columns.len()).collect();
        let (texts, others): (Vec<usize>, Vec<usize>) =
            all.iter().partition(|column| self.columns[**column] == Column::Text);
        let widths = self.fitted(&all, screen);
        let takes: usize = widths.iter().sum::<usize>() + GAP.len() * all.len().saturating_sub(1);
        let is_too_wide = screen.is_some_and(|screen| takes > screen);
        if !(is_too_wide && self.columns.contains(&Column::Id)) {
            return self.lines.iter().map(|cells| self.line(cells, &all, &widths) + "\n").collect();
        }
        let (above, below) =
            (self.fitted(&others, screen), self.fitted(&texts, screen.map(|screen| screen.saturating_sub(GAP.len()))));
        let two_lines = |cells: &Vec<String>| {
            format!("{}\n{GAP}{}\n", self.line(cells, &others, &above), self.line(cells, &texts, &below))
        };
        self.lines.iter().map(two_lines).collect()
    }

    /// The widths of some columns. The widest words are cut, all to the same width, until everything fits.
    fn fitted(&self, columns: &[usize], screen: Option<usize>) -> Vec<usize> {
        let length = |column: usize| {
            self.lines.iter().filter_map(move |cells| cells.get(column)).map(|cell| cell.chars().count())
        };
        let mut widths: Vec<usize> = columns.iter().map(|column| length(*column).max().unwrap_or(0)).collect();
        let Some(screen) = screen else { return widths };
        let is_text = |at: usize| self.columns[columns[at]] == Column::Text;
        let gaps = GAP.len() * columns.len().saturating_sub(1);
        let cut_to = |most: usize, at: usize, width: usize| if is_text(at) { width.min(most) } else { width };
        let takes = |most: usize| widths.iter().enumerate().map(|(at, width)| cut_to(most, at, *width)).sum::<usize>();
        let most = (LEAST_TEXT..=screen).rev().find(|most| takes(*most) + gaps <= screen).unwrap_or(LEAST_TEXT);
        for (at, width) in widths.iter_mut().enumerate() {
            *width = cut_to(most, at, *width);
        }
        widths
    }

    fn line(&self, cells: &[String], columns: &[usize], widths: &[usize]) -> String {
        let cells = columns.iter().zip(widths).map(|(column, width)| {
            let cell = cells.get(*column).map_or_else(String::new, |cell| shortened(cell, *width));
            // Not by a width in `format!`, which takes none beyond 65,535: cells may be longer.
            let room = " ".repeat(width - cell.chars().count());
            if self.columns[*column] == Column::Number { format!("{room}{cell}") } else { format!("{cell}{room}") }
        });
        cells.collect::<Vec<_>>().join(GAP).trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: cells of different widths, one with an escape sequence.
    /// Guarantee: columns line up at their sides, and no control character comes through.
    #[test]
    fn columns_line_up() {
        let mut table = Table::new(&[("name", Column::Text), ("n", Column::Number)]);
        table.row(["a\u{1b}[31mb".to_owned(), "5".to_owned()]);
        table.row(["c\nd".to_owned(), "1234".to_owned()]);
        assert_eq!(table.draw(None), "name        n\na?[31mb     5\nc↵d      1234\n");
    }

    /// Scenario: a cell of a hundred thousand characters, as collapsed stacks have. Guarantee: it is drawn whole.
    #[test]
    fn cells_of_any_width() {
        let long = "x".repeat(100_000);
        let mut table = Table::new(&[("stacks", Column::Text), ("n", Column::Number)]);
        table.row([long.clone(), "5".to_owned()]);
        assert_eq!(table.draw(None).lines().nth(1), Some(format!("{long}  5").as_str()));
    }

    /// Scenario: a table with long words on a wide screen, on one where they must be cut, and on one that ids nearly fill.
    /// Guarantee: whole where there is room; the longest words are cut first; ids stay whole, and words get their own line.
    #[test]
    fn rows_fit_the_screen() {
        let mut table =
            Table::new(&[("id", Column::Id), ("name", Column::Text), ("n", Column::Number), ("why", Column::Text)]);
        let (id, why) = ("4bf92f3577b34da6a3ce929d0e0e4736", "because of a very long story that somebody told");
        table.row([id.to_owned(), "checkout".to_owned(), "7".to_owned(), why.to_owned()]);
        let line = |screen: Option<usize>, at: usize| table.draw(screen).lines().nth(at).unwrap_or_default().to_owned();
        let whole = format!("{id}  checkout  7  {why}");
        assert_eq!([line(None, 1), line(Some(200), 1)], [whole.clone(), whole]);
        assert_eq!(line(Some(70), 1), format!("{id}  checkout  7  because…t somebody told"));
        let below = "  checkout  because of a… story that somebody told".to_owned();
        assert_eq!([line(Some(50), 2), line(Some(50), 3)], [format!("{id}  7"), below]);
        for screen in [50, 60, 70, 80] {
            assert!(table.draw(Some(screen)).lines().all(|line| line.chars().count() <= screen), "{screen}");
        }
    }
}
