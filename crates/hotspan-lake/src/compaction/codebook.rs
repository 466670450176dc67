//! One code for each text of a column, whatever codes the batches have that it comes in.
//!
//! Batches of one file share their texts: these are looked up once, and then only codes move.

use std::sync::Arc;

use arrow::array::{ArrayRef, StringArray};
use hashbrown::HashMap;

use crate::error::Result;
use crate::rows::TextColumn;

/// Bytes of texts that are kept for the next batches.
const MOST_BYTES: usize = 256 << 10;

/// Dictionaries whose meanings are kept for the next batches.
const MOST_KNOWN: usize = 256;

/// For each code of a batch the one in the codebook.
pub(super) type Meanings = Arc<[i32]>;

/// The codes of one column.
#[derive(Default)]
pub(super) struct Codebook {
    codes: HashMap<Box<str>, i32>,
    texts: TextColumn,
    /// All texts, as long as none is added.
    array: Option<ArrayRef>,
    known: Vec<(ArrayRef, Meanings)>,
}

impl Codebook {
    /// Forgets what has become too much. Codes that were given out before mean nothing any more.
    pub(super) fn begin(&mut self) {
        if self.texts.size() > MOST_BYTES || self.known.len() > MOST_KNOWN {
            *self = Self::default();
        }
    }

    /// What the codes of a batch mean, by the texts that they stand for.
    pub(super) fn meanings(&mut self, distinct: &ArrayRef, texts: &StringArray) -> Meanings {
        if let Some((_, meanings)) = self.known.iter().find(|(known, _)| Arc::ptr_eq(known, distinct)) {
            return Arc::clone(meanings);
        }
        let meanings: Meanings = texts.iter().map(|text| self.code_of(text.unwrap_or_default())).collect();
        self.known.push((Arc::clone(distinct), Arc::clone(&meanings)));
        meanings
    }

    fn code_of(&mut self, text: &str) -> i32 {
        if let Some(code) = self.codes.get(text) {
            return *code;
        }
        let code = self.texts.len() as i32;
        self.texts.push(text);
        self.codes.insert(text.into(), code);
        self.array = None;
        code
    }

    /// The text of each code.
    pub(super) fn texts(&mut self) -> Result<ArrayRef> {
        if let Some(array) = &self.array {
            return Ok(Arc::clone(array));
        }
        let array: ArrayRef = Arc::new(self.texts.clone().finish(false)?);
        self.array = Some(Arc::clone(&array));
        Ok(array)
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::AsArray;

    use super::*;

    /// Scenario: dictionaries that share texts, one of them twice, and then one that is too large to be kept.
    /// Guarantee: each text has one code, and what is known is used again; what is too much is forgotten with the next batch.
    #[test]
    fn one_code_for_each_text() {
        let dictionary = |texts: Vec<String>| -> ArrayRef { Arc::new(StringArray::from(texts)) };
        let few = |texts: &[&str]| dictionary(texts.iter().map(|text| (*text).to_owned()).collect());
        let (first, second) = (few(&["a", "b", ""]), few(&["c", "b", "a"]));
        let mut codebook = Codebook::default();
        codebook.begin();
        let meanings = codebook.meanings(&first, first.as_string());
        assert_eq!(*meanings, [0, 1, 2]);
        assert_eq!(*codebook.meanings(&second, second.as_string()), [3, 1, 0]);
        let texts = codebook.texts().unwrap();
        assert_eq!(texts.as_string::<i32>().iter().flatten().collect::<Vec<_>>(), ["a", "b", "", "c"]);
        codebook.begin();
        assert!(Arc::ptr_eq(&meanings, &codebook.meanings(&first, first.as_string())));
        assert!(Arc::ptr_eq(&texts, &codebook.texts().unwrap()));

        let many = dictionary((0..10_000).map(|number| format!("{number:030}")).collect());
        assert_eq!(codebook.meanings(&many, many.as_string())[0], 4);
        codebook.begin();
        assert_eq!(*codebook.meanings(&second, second.as_string()), [0, 1, 2]);
    }
}
