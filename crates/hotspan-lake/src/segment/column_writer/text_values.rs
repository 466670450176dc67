//! Texts, which come as they are or in dictionaries.
//!
//! What comes in a dictionary is looked up once for each distinct text, not once for each row.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Int32Type};
use parquet::basic::{BoundaryOrder, Encoding};

use super::bounds::{Bounds, BoundsOf};
use super::dictionary::{TextDictionary, put_text};
use super::hybrid;
use super::values::Values;

/// The texts of a column chunk.
pub(super) struct TextValues {
    dictionary: Option<TextDictionary>,
    /// Those of the page, coded or not.
    codes: Vec<u32>,
    plain: Vec<u8>,
    /// The dictionary that texts came in last, and which code each of its codes has here.
    meanings: Option<(ArrayRef, Vec<u32>)>,
    bounds: Option<BoundsOf<Vec<u8>>>,
}

/// Stands for a code that was not looked up yet.
const UNKNOWN: u32 = u32::MAX;

impl TextValues {
    pub(super) fn new(with_dictionary: bool, has_bounds: bool) -> Self {
        Self {
            dictionary: with_dictionary.then(TextDictionary::default),
            codes: Vec::new(),
            plain: Vec::new(),
            meanings: None,
            bounds: has_bounds.then(BoundsOf::new),
        }
    }

    fn append_each<'t>(&mut self, rows: impl Iterator<Item = usize>, text_of: impl Fn(usize) -> &'t [u8]) {
        match &mut self.dictionary {
            Some(dictionary) => self.codes.extend(rows.map(|row| dictionary.code_of(text_of(row)))),
            None => rows.map(text_of).for_each(|text| {
                put_text(text, &mut self.plain);
                if let Some(bounds) = &mut self.bounds {
                    bounds.add_text(text);
                }
            }),
        }
    }

    fn append_coded<'t>(
        &mut self,
        distinct: &ArrayRef,
        codes: impl Iterator<Item = usize>,
        text_of: impl Fn(usize) -> &'t [u8],
    ) {
        let Some(dictionary) = &mut self.dictionary else { return self.append_each(codes, text_of) };
        let (_, meanings) = match &mut self.meanings {
            Some(known) if Arc::ptr_eq(&known.0, distinct) => known,
            others => others.insert((Arc::clone(distinct), vec![UNKNOWN; distinct.len()])),
        };
        self.codes.extend(codes.map(|code| {
            let meaning = &mut meanings[code];
            if *meaning == UNKNOWN {
                *meaning = dictionary.code_of(text_of(code));
            }
            *meaning
        }));
    }

    /// Adds the bounds of the codes of a page. Each distinct text is compared once.
    fn bound_codes(&mut self) {
        let (Some(dictionary), Some(bounds)) = (&self.dictionary, &mut self.bounds) else { return };
        let mut is_used = vec![false; dictionary.len()];
        self.codes.iter().for_each(|code| is_used[*code as usize] = true);
        let used = (0u32..).zip(is_used).filter(|(_, is_used)| *is_used);
        used.for_each(|(code, _)| bounds.add_text(dictionary.text(code)));
    }
}

impl Values for TextValues {
    fn append(&mut self, values: &dyn Array, range: Range<usize>, present: Option<&NullBuffer>) {
        macro_rules! append {
            ($append:expr) => {
                match present {
                    None => $append(range),
                    Some(present) => $append(present.valid_indices().map(|at| range.start + at)),
                }
            };
        }
        match values.data_type() {
            DataType::Dictionary(..) => {
                let coded = values.as_dictionary::<Int32Type>();
                let (distinct, codes) = (coded.values(), coded.keys().values());
                let texts = distinct.as_string::<i32>();
                let text_of = |code: usize| texts.value(code).as_bytes();
                match present {
                    None => self.append_coded(distinct, codes[range].iter().map(|code| *code as usize), text_of),
                    Some(present) => {
                        let codes = present.valid_indices().map(|at| codes[range.start + at] as usize);
                        self.append_coded(distinct, codes, text_of);
                    }
                }
            }
            DataType::Binary => {
                let bytes = values.as_binary::<i32>();
                append!(|rows| self.append_each(rows, |row| bytes.value(row)));
            }
            _ => {
                let texts = values.as_string::<i32>();
                append!(|rows| self.append_each(rows, |row| texts.value(row).as_bytes()));
            }
        }
    }

    fn page_bytes(&self) -> usize {
        self.plain.len()
    }

    fn end_page(&mut self, out: &mut Vec<u8>) -> (Encoding, Option<Bounds>) {
        self.bound_codes();
        let encoding = match &self.dictionary {
            Some(dictionary) => {
                let width = hybrid::width_of(dictionary.len());
                out.push(width as u8);
                hybrid::put_codes(&self.codes, width, out);
                Encoding::RLE_DICTIONARY
            }
            None => {
                out.extend_from_slice(&self.plain);
                Encoding::PLAIN
            }
        };
        self.codes.clear();
        self.plain.clear();
        let bounds = self.bounds.as_mut().and_then(BoundsOf::end_page);
        (encoding, bounds.map(|(least, greatest)| Bounds { least, greatest }))
    }

    fn dictionary_bytes(&self) -> Option<usize> {
        self.dictionary.as_ref().map(|dictionary| dictionary.page.len())
    }

    fn take_dictionary(&mut self) -> Option<(Vec<u8>, usize)> {
        self.meanings = None;
        let dictionary = self.dictionary.take()?;
        let distinct = dictionary.len();
        Some((dictionary.page, distinct))
    }

    fn chunk_bounds(&self) -> Option<(Bounds, BoundaryOrder)> {
        let bounds = self.bounds.as_ref()?;
        let (least, greatest) = bounds.of_chunk()?.clone();
        Some((Bounds { least, greatest }, bounds.order()))
    }
}
