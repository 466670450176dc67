//! What follows from the texts of a column, found once for each distinct one.

use hotspan_lake::arrays::Texts;

/// Something about each text of a column of one batch. Batches repeat few texts, and tell by codes which are the same: then
/// nobody hashes or compares one twice.
#[derive(Debug)]
pub(crate) struct ByText<'b, T> {
    texts: Texts<'b>,
    /// By code, as far as asked for; empty where texts are not coded.
    found: Vec<Option<T>>,
}

impl<'b, T: Clone> ByText<'b, T> {
    pub(crate) fn new(texts: Texts<'b>) -> Self {
        Self { texts, found: vec![None; texts.codes().map_or(0, |(_, distinct)| distinct)] }
    }

    /// What belongs to the text of a row; `find` is asked for texts that are new.
    pub(crate) fn get(&mut self, row: usize, find: impl FnOnce(&'b str) -> T) -> T {
        let text = self.texts.get(row);
        match self.texts.codes() {
            Some((codes, _)) => self.found[codes[row] as usize].get_or_insert_with(|| find(text)).clone(),
            None => find(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{DictionaryArray, StringArray};
    use arrow::datatypes::Int32Type;
    use hotspan_lake::arrays::texts_of;

    use super::*;

    /// Scenario: the same texts plain, coded, and coded with one that is missing.
    /// Guarantee: every row gets what belongs to its text; where all are coded, each is asked for once.
    #[test]
    fn each_text_is_asked_for_once() {
        let rows = ["a", "b", "a", "", "b", "a"];
        let plain = StringArray::from(rows.to_vec());
        let coded: DictionaryArray<Int32Type> = rows.into_iter().collect();
        let gaps: DictionaryArray<Int32Type> =
            rows.into_iter().map(|text| (!text.is_empty()).then_some(text)).collect();
        for (array, asked_for) in [(&plain as &dyn arrow::array::Array, 6), (&coded, 3), (&gaps, 6)] {
            let (mut texts, mut asked) = (ByText::new(texts_of(array).unwrap()), 0);
            for (row, text) in rows.into_iter().enumerate() {
                let length = texts.get(row, |text| {
                    asked += 1;
                    text.to_owned()
                });
                assert_eq!(length, text);
            }
            assert_eq!(asked, asked_for);
        }
    }
}
